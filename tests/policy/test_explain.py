"""An explanation names, for each rule, what came of it and its first condition that failed."""

from __future__ import annotations

import pytest

from tests.policy.make import policy, question
from windlass.core.verdict import Decision, OutputDecision
from windlass.policy.explain import RuleFate, explain
from windlass.policy.judge import judge

TEXT = """
default_decision: deny
rules:
  - {id: edge, at: [provider], decision: deny}
  - {id: topic, match: {topics: [job.pay]}, decision: deny}
  - {id: tenant, match: {tenants: [acme]}, decision: deny}
  - {id: label, match: {labels: {env: prod}}, decision: deny}
  - {id: cel, when: job.inputs.n > 5, decision: deny}
  - {id: shadow, mode: shadow, decision: deny}
  - {id: counts, velocity: {max_requests: 9, window_seconds: 60, key: tenant}, decision: throttle}
  - {id: yes, decision: allow}
  - {id: later, decision: deny}
input_rules:
  - {id: size, match: {input_size_gt: 5}, decision: deny}
"""


def test_each_rule_has_its_fate() -> None:
    told = explain(
        policy(TEXT), question("job.mail", inputs={"n": 1}, labels={"env": "test"}, content={"size_bytes": 1})
    )
    assert (told.verdict.decision, told.verdict.rule) == (Decision.ALLOW, "yes")
    [document] = told.documents
    assert [(one.rule, one.fate.value, one.condition) for one in document.rules] == [
        ("edge", "fails", "at"),
        ("topic", "fails", "topics"),
        ("tenant", "fails", "tenants"),
        ("label", "fails", "labels"),
        ("cel", "fails", "when"),
        ("shadow", "would decide", ""),
        ("counts", "counts", "velocity"),
        ("yes", "decides", ""),
        ("later", "not reached", ""),
        ("size", "fails", "content"),
    ]
    details = {one.rule: one.detail for one in document.rules}
    assert details["tenant"] == "'default' is not one of acme"
    assert details["label"] == "the label env is 'test', not 'prod'"
    assert details["cel"] == "`job.inputs.n > 5` is false"
    assert details["topic"] == "'job.mail' is not matched by job.pay"
    assert [one.rule for one in told.would] == ["shadow"]


def test_an_exceeded_limit_decides() -> None:
    found, asked = policy(TEXT), question("job.mail", inputs={"n": 1})
    [check] = judge(found, asked).checks
    told = explain(found, asked, [check.counter])
    assert told.verdict.rule == "counts"
    fates = {one.rule: one.fate for one in told.documents[0].rules}
    assert (fates["counts"], fates["yes"], fates["size"]) == (
        RuleFate.DECIDES,
        RuleFate.NOT_REACHED,
        RuleFate.NOT_REACHED,
    )


def test_a_condition_that_cannot_be_decided_is_named() -> None:
    told = explain(policy(TEXT), question("job.mail"))
    trace = next(one for one in told.documents[0].rules if one.rule == "cel")
    assert (trace.fate, trace.condition) == (RuleFate.UNDECIDED, "when")
    assert told.verdict.rule == "cel" and "Key not found" in trace.detail
    assert [one.fate for one in told.documents[0].rules[-2:]] == [RuleFate.NOT_REACHED] * 2


def test_a_document_of_another_tenant_says_why_it_does_not_apply() -> None:
    found = policy("default_decision: allow", "tier: tenant\nselector: {tenant_id: acme}\ndefault_decision: deny")
    told = explain(found, question(tenant="beta"))
    assert [(one.tier, one.mismatch) for one in told.documents] == [("global", None), ("tenant", "tenant_id")]


def test_rules_about_content_are_explained() -> None:
    found = policy("""
default_decision: allow
output_rules:
  - {id: other, match: {topics: [job.pay]}, decision: deny}
  - {id: shadow, mode: shadow, match: {scanners: [secret]}, decision: deny}
  - {id: words, match: {keywords: [x]}, decision: redact}
  - {id: later, decision: deny}
""")
    told = explain(
        found, question("job.mail", "output", content={"keywords": ["x"], "findings": [{"scanner": "secret"}]})
    )
    assert told.verdict.decision is OutputDecision.REDACT
    assert [one.fate for one in told.documents[0].rules] == [
        RuleFate.FAILS,
        RuleFate.WOULD,
        RuleFate.DECIDES,
        RuleFate.NOT_REACHED,
    ]
    silent = explain(found, question("job.mail", "output"))
    assert [one.fate for one in silent.documents[0].rules][1:] == [
        RuleFate.UNDECIDED,
        RuleFate.UNDECIDED,
        RuleFate.NOT_REACHED,
    ]


@pytest.mark.parametrize(
    ("match", "fields", "detail"),
    [
        ("{tenants: [a]}", {}, "'default' is not one of a"),
        ("{capabilities: [a]}", {}, "nothing is not one of a"),
        ("{risk_tags: [a, b]}", {"risk_tags": ["c"]}, "c has none of a, b"),
        ("{requires: [a, b]}", {"requires": ["b"]}, "a is not required"),
        ("{labels: {x: y}}", {}, "the label x is missing, not 'y'"),
        ("{secrets_present: true}", {}, "secrets are not present"),
        ("{secrets_present: false}", {"risk_tags": ["secrets"]}, "secrets are present"),
        ("{label_allowlist: {x: [y]}}", {}, "every label that the request has is in its list"),
        ("{label_threshold: {x: 1}}", {}, "no label of the request is above its threshold"),
        ("{mcp: {deny_tools: [rm]}}", {"labels": {"mcp.tool": "rm"}}, "the MCP tool 'rm' is denied"),
        ("{mcp: {allow_tools: [ls]}}", {"labels": {"mcp.tool": "rm"}}, "the MCP tool 'rm' is not one of ls"),
        ("{delegation: {max_depth: 1}}", {"delegation": {"depth": 2}}, "the chain has 2 links, more than 1"),
        ("{delegation: {forbid_delegated: true}}", {"delegation": {"depth": 1}}, "the request is delegated"),
        ("{delegation: {issuers: [a]}}", {"delegation": {"depth": 1, "issuers": ["b"]}}, "an issuer is not one of a"),
        ("{delegation: {require_issuer: a}}", {"delegation": {"depth": 1}}, "the first issuer is not 'a'"),
        ("{delegation: {required_scope: [a]}}", {"delegation": {"depth": 1}}, "the chain lacks a scope of a"),
        ("{predicate: delegation.depth > 3}", {}, "`delegation.depth > 3` does not hold"),
        (
            "{actor_ids: [a, b, c, d, e, f, g, h, i, j]}",
            {"actor_id": "x" * 99},
            f"'{'x' * 57}…' is not one of a, b, c, d, e, f, g, h and 2 more",
        ),
    ],
)
def test_every_failure_is_a_sentence(match: str, fields: dict[str, object], detail: str) -> None:
    told = explain(policy(f"rules: [{{id: r, match: {match}, decision: deny}}]"), question(**fields))
    assert told.documents[0].rules[0].detail == detail


def test_a_hard_refusal_needs_no_rules() -> None:
    assert explain(None, question()).documents == ()
    assert explain(policy(TEXT), question("mail")).verdict.rule == "windlass:topic"
