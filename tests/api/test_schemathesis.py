"""What the OpenAPI document says, tried by machine: cases that fit it, cases that do not, and chains along its links.

No answer may be a 5xx, have a status or a shape that the document does not have, or lack its request id.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.asgi_adapter import ADDRESS, session
from tests.api.rig import Rig, rig
from windlass.api.app import create
from windlass.core.caller import Scope

CASES_MIN = 1_000
EXAMPLES = 16
CHAINS = 6
SEEDS = 5
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# What no HTTP client would put on the wire.
UNSENDABLE = (
    requests.exceptions.InvalidHeader,
    requests.exceptions.InvalidURL,
    UnicodeEncodeError,
)


def tries(count: int) -> settings:
    """The same cases in every run."""
    return settings(
        max_examples=count, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), stateful_step_count=16,
    )  # fmt: skip


class Bench:
    """The API on the test's loop, and what was found wrong with it."""

    def __init__(self, api: Rig, runner: asyncio.Runner) -> None:
        self.session = session(create(api.parts), runner)
        self._runner = runner
        self._api = api
        self.renew()
        document = self.session.get(f"{ADDRESS}/openapi.json").json()
        self.schema: BaseSchema = schemathesis.openapi.from_dict(document)
        self.cases: Counter[str] = Counter()
        self.faults: dict[str, str] = {}

    def renew(self) -> None:
        """A key that is good: a case may have revoked the last one."""
        key = self._runner.run(self._api.key("tester", scopes=frozenset({Scope.ADMIN})))
        self.session.headers["X-API-Key"] = key

    def operations(self) -> Iterator[APIOperation]:
        for found in self.schema.get_all_operations():
            assert isinstance(found, Ok), found
            yield found.ok()

    def judge(self, case: schemathesis.Case, answer: schemathesis.Response) -> None:
        self.cases[case.operation.label] += 1
        if answer.status_code == 401:
            self.renew()
        # The document has a stream as one text; Schemathesis would hold each event against that.
        is_stream = answer.headers.get("content-type", [""])[0].startswith("text/event-stream")
        checks = [check for check in CHECKS if not is_stream or check is not response_schema_conformance]
        try:
            case.validate_response(answer, checks=checks)
        except FailureGroup as group:
            for failure in group.exceptions:
                title = f"{case.operation.label}: {answer.status_code}: {type(failure).__name__}"
                self.faults.setdefault(title, f"{failure}\n{case.as_curl_command()[:600]}\n{answer.text[:300]}")
        if "x-request-id" not in answer.headers:
            self.faults.setdefault(f"{case.operation.label}: no request id", case.as_curl_command()[:600])

    def ask(self, case: schemathesis.Case) -> None:
        try:
            answer = case.call(base_url=ADDRESS, session=self.session)
        except UNSENDABLE:
            return
        self.judge(case, answer)


@pytest.fixture
def bench(dsn: str, tmp_path: Path, loop_runner: asyncio.Runner) -> Iterator[Bench]:
    with ExitStack() as closing:
        stack = AsyncExitStack()
        closing.callback(lambda: loop_runner.run(stack.aclose()))
        api = loop_runner.run(stack.enter_async_context(rig(dsn, tmp_path, webhook_loopback=True)))
        loop_runner.run(stack.enter_async_context(api.working()))
        yield Bench(api, loop_runner)


def told(bench: Bench) -> str:
    return "\n\n".join(f"{title}\n{text}" for title, text in sorted(bench.faults.items()))


@pytest.mark.slow
def test_no_case_breaks_what_the_document_says(bench: Bench) -> None:
    for operation in bench.operations():
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            @tries(EXAMPLES)
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case: schemathesis.Case) -> None:
                bench.ask(case)

            try:
                check()
            except Unsatisfiable:
                # Nothing can be wrong with a request that has no parts.
                assert mode is schemathesis.GenerationMode.NEGATIVE, operation.label
    assert not bench.faults, told(bench)
    assert bench.cases.total() >= CASES_MIN, bench.cases
    assert min(bench.cases.values()) > 0


@pytest.mark.slow
def test_no_chain_of_requests_breaks_what_the_document_says(bench: Bench) -> None:
    machine = bench.schema.as_state_machine()

    class Chain(machine):  # type: ignore[misc,valid-type]
        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            return {"session": bench.session, "base_url": ADDRESS}

        def before_call(self, case: schemathesis.Case) -> None:
            # A chain begins with a job, and random text never names a registered recipe.
            if case.operation.label == "POST /jobs" and isinstance(case.body, dict):
                case.body = {**case.body, "recipe": "hello", "inputs": {}, "webhook": None, "version": None}
                case.body.pop("idempotency_key", None)

        def validate_response(self, response: Any, case: schemathesis.Case, **_: Any) -> None:
            bench.judge(case, response)

    whole = 0
    for number in range(SEEDS):
        # What a list holds by now leads a chain elsewhere than before. Hypothesis takes that amiss, and ends this seed.
        with suppress(FlakyStrategyDefinition):
            seed(number)(Chain).run(settings=tries(CHAINS))
            whole += 1
    assert not bench.faults, told(bench)
    assert whole >= 3, "most seeds were cut short"
    linked = {label for label in bench.cases if label.startswith(("GET /jobs/{job_id}", "POST /jobs/{job_id}"))}
    assert len(linked) >= 8, bench.cases
