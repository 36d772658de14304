"""The two protocols of kernels, as they are on the wire."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from typing import Any

import grpc
import pytest

from tests.policy.certificates import certificate
from tests.policy.kernel_servers import GrpcServer, OpaServer
from windlass.core.errors import SafetyUnavailable
from windlass.core.verdict import KERNEL_UNKNOWN, Decision, Edge
from windlass.policy.kernel import ANSWER_BYTES_MAX
from windlass.policy.kernel_answer import KernelAnswer
from windlass.policy.kernels.opa import OpaKernel
from windlass.policy.kernels.safety_kernel import SafetyKernel, trusting
from windlass.policy.kernels.safety_messages import ENUMS, MESSAGES
from windlass.policy.question import CallerFacts, Question
from windlass.policy.reader import read_question

ALLOW = KernelAnswer("allow")
FULL = Question(
    Edge.DISPATCH,
    "job.mail.send",
    recipe="mail",
    step="send",
    job_id="j1",
    tenant="acme",
    caller=CallerFacts("ada", "service", "gold", "user", frozenset({"b", "a"})),
    labels={"env": "prod"},
    inputs={"to": ["x"], "count": 3},
    priority=100,
    depth=2,
    capability="mail",
    risk_tags=frozenset({"write", "network"}),
    requires=frozenset({"smtp"}),
    pack_id="p",
    cost=Decimal("0.50"),
)


@pytest.fixture
async def opa() -> AsyncIterator[OpaServer]:
    server = OpaServer()
    await server.start()
    server.say(ALLOW)
    yield server
    await server.stop()


@pytest.fixture
async def safety() -> AsyncIterator[GrpcServer]:
    server = GrpcServer()
    await server.start()
    server.say(ALLOW)
    yield server
    await server.stop()


async def ask(kernel: OpaKernel | SafetyKernel, question: Question = FULL) -> Any:
    try:
        return await kernel.check(question)
    finally:
        await kernel.close()


async def ask_opa(opa: OpaServer, status: int, text: bytes) -> Any:
    opa.raw = (status, text)
    return await ask(OpaKernel(opa.url))


async def test_opa_is_sent_every_part_of_the_question(opa: OpaServer) -> None:
    await ask(OpaKernel(opa.url))
    sent = opa.requests[0]
    assert read_question(sent) == FULL
    assert sent["caller"]["scopes"] == ["a", "b"], "sets are in order, so equal questions are equal texts"


async def test_the_token_of_a_kernel_is_sent_with_each_request(opa: OpaServer, safety: GrpcServer) -> None:
    await ask(OpaKernel(opa.url, token="t0ken"))
    assert "Authorization: Bearer t0ken" in opa.heads[0]
    await ask(SafetyKernel(safety.address, token="t0ken"))
    assert safety.metadata[0]["authorization"] == "Bearer t0ken"


@pytest.mark.parametrize(
    ("result", "decision"),
    [
        ("true", "allow"),
        ("false", "deny"),
        ('"Permit"', "allow"),
        ('"require-approval"', "require_approval"),
        ('{"allow": true}', "allow"),
        ('{"allow": true, "constraints": {"budgets": {"max_retries": 1}}}', "allow_with_constraints"),
        ('{"decision": "throttle"}', "throttle"),
    ],
)
async def test_the_forms_of_a_decision_in_opa(opa: OpaServer, result: str, decision: str) -> None:
    verdict = await ask_opa(opa, 200, f'{{"result": {result}, "decision_id": "d"}}'.encode())
    assert verdict.decision == decision


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        '{"result": null}',
        '{"result": 1}',
        '{"result": ["allow"]}',
        '{"result": {}}',
        '{"result": {"allow": "yes"}}',
        '{"result": {"decision": "allow", "allow": false}}',
        '{"result": {"allow": true, "constrains": {"budgets": {"max_retries": 1}}}}',
        '{"result": {"allow": true, "constraints": {"budgets": {"max_moons": 1}}}}',
        '{"result": {"allow": true, "constraints": []}}',
        '{"result": {"allow": true, "constraints": [1]}}',
        '{"result": {"allow": true, "reason": 7}}',
    ],
)
async def test_an_answer_of_opa_that_is_no_allowance_denies(opa: OpaServer, answer: str) -> None:
    verdict = await ask_opa(opa, 200, answer.encode())
    assert verdict.decision is Decision.DENY
    assert verdict.kernel == "opa"


async def test_an_undefined_document_of_opa_is_no_decision(opa: OpaServer) -> None:
    verdict = await ask_opa(opa, 200, b'{"decision_id": "d"}')
    assert (verdict.decision, verdict.rule) == (Decision.DENY, KERNEL_UNKNOWN)


@pytest.mark.parametrize(
    ("status", "text", "is_silent"),
    [
        (503, b"", True),
        (502, b"", True),
        (500, b"{}", False),
        (401, b"{}", False),
        (404, b"{}", False),
        (307, b"", False),
        (200, b"not json", False),
        (200, b"[]", False),
        (200, b"[" * 100_000, False),
        (200, b'{"result": "' + b"x" * ANSWER_BYTES_MAX + b'"}', False),
    ],
)
async def test_an_answer_of_opa_that_is_an_error_is_no_verdict(
    opa: OpaServer, status: int, text: bytes, is_silent: bool
) -> None:
    with pytest.raises(SafetyUnavailable) as raised:
        await ask_opa(opa, status, text)
    assert raised.value.is_silent is is_silent
    assert opa.asked == 1, "a redirection is not followed"


async def test_the_safety_kernel_is_sent_the_fields_of_the_protocol(safety: GrpcServer) -> None:
    await ask(SafetyKernel(safety.address))
    sent, metadata = safety.requests[0], safety.metadata[0]
    assert (sent.job_id, sent.topic, sent.tenant, sent.principal_id) == ("j1", "job.mail.send", "acme", "ada")
    assert (sent.priority, sent.estimated_cost, dict(sent.labels)) == (3, 0.5, {"env": "prod"})
    assert (sent.meta.tenant_id, sent.meta.actor_id, sent.meta.actor_type) == ("acme", "ada", 2)
    assert (list(sent.meta.risk_tags), list(sent.meta.requires)) == (["network", "write"], ["smtp"])
    assert (sent.input_content, sent.input_content_type) == (b'{"to":["x"],"count":3}', "application/json")
    assert sent.input_size_bytes == len(sent.input_content)
    assert metadata["windlass-edge"] == "dispatch"


@pytest.mark.parametrize(("priority", "number"), [(-1, 2), (0, 1), (99, 1), (100, 3)])
async def test_the_priorities_of_the_protocol(safety: GrpcServer, priority: int, number: int) -> None:
    await ask(SafetyKernel(safety.address), replace(FULL, priority=priority))
    assert safety.requests[0].priority == number


async def test_the_remediations_of_a_refusal_are_left_out_and_of_an_approval_kept(safety: GrpcServer) -> None:
    safer = {"id": "dry", "title": "Dry run", "add_labels": {"dry": "1"}, "remove_labels": ["force"]}
    safety.say(replace(ALLOW, decision="require_approval", remediations=(safer,)))
    verdict = await ask(SafetyKernel(safety.address))
    assert [one.id for one in verdict.remediations] == ["dry"]
    assert verdict.remediations[0].add_labels == {"dry": "1"}


@pytest.mark.covers("COR-74")
async def test_a_certificate_that_is_trusted_is_accepted_and_another_is_not() -> None:
    key, chain = certificate("localhost")
    _, other = certificate("localhost")
    server = GrpcServer(grpc.ssl_server_credentials([(key, chain)]))
    await server.start()
    try:
        server.say(ALLOW)
        verdict = await ask(SafetyKernel(server.address, tls=trusting(chain), within_s=60))
        assert verdict.decision is Decision.ALLOW
        for tls in (trusting(other), None):
            with pytest.raises(SafetyUnavailable):
                await ask(SafetyKernel(server.address, tls=tls))
        assert server.asked == 1
    finally:
        await server.stop()


def test_the_proto_file_has_the_messages_that_are_built() -> None:
    text = files("windlass.policy.kernels").joinpath("safety_kernel.proto").read_text(encoding="utf-8")
    found = {
        name: {
            field: (kind, int(number))
            for kind, field, number in re.findall(r"^  ((?:repeated )?[\w<>, ]+?) (\w+) = (\d+);", body, re.MULTILINE)
        }
        for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    }
    assert found == MESSAGES
    enums = {
        name: tuple(re.findall(r"^  [A-Z]+_[A-Z]+_(\w+) = \d+;", body, re.MULTILINE))
        for name, body in re.findall(r"^enum (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    }
    assert enums == ENUMS
