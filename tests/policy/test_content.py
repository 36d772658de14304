"""Rules about content: inputs that only tighten, outputs that are shown, redacted or hidden, and silent scanners."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.make import ask, decided, policy, question
from windlass.core.verdict import FAULT, NO_POLICY, NO_RULE, Decision, Edge, OutputDecision
from windlass.policy.content import ScanWants, _is_below
from windlass.policy.judge import judge, scan_wants
from windlass.policy.output import judge_output
from windlass.policy.question import Question
from windlass.policy.rules import Policy

SECRET = {"scanner": "secret", "type": "secret_leak", "severity": "high", "confidence": 0.9, "path": "$.mails[3].body"}


def inputs(match: str, extra: str = "", rules: str = "[{id: a, decision: allow}]") -> Policy:
    return policy(f"rules: {rules}\ninput_rules: [{{id: i, match: {match}, decision: deny}}]\n{extra}")


def outputs(match: str, decision: str = "quarantine", extra: str = "") -> Policy:
    return policy(f"default_decision: allow\noutput_rules: [{{id: o, match: {match}, decision: {decision}}}]\n{extra}")


def shown(found: Policy | None, content: dict[str, Any] | None = None, **fields: Any) -> tuple[str, str]:
    given = {} if content is None else {"content": content}
    verdict = judge_output(found, question("job.mail.send", "output", **given, **fields)).verdict
    return str(verdict.decision), verdict.rule


MATCHES = [
    ("{scanners: [secret]}", {"findings": [SECRET]}, True),
    ("{scanners: [secret]}", {"findings": [{"scanner": "pii"}]}, False),
    ("{scanners: [secret, pii]}", {"findings": [{"scanner": "pii"}]}, True),
    ("{scanners: [secret], detectors: [Secret_Leak]}", {"findings": [SECRET]}, True),
    ("{scanners: [secret], detectors: [pii]}", {"findings": [SECRET]}, False),
    ("{detectors: [secret_leak]}", {"findings": [SECRET]}, True),
    ("{scanners: [secret], path: 'mails[*].body'}", {"findings": [SECRET]}, True),
    ("{scanners: [secret], path: '$.mails[3]'}", {"findings": [SECRET]}, True),
    ("{scanners: [secret], path: '$.mails[1]'}", {"findings": [SECRET]}, False),
    ("{scanners: [secret], path: '$.mail'}", {"findings": [SECRET]}, False),
    # A finding whose place says no path may lie anywhere, so a rule about a path counts it.
    ("{scanners: [secret], path: '$.mails'}", {"findings": [{**SECRET, "path": "$"}]}, True),
    ("{keywords: [Password]}", {"keywords": ["password"]}, True),
    ("{keywords: [password]}", {"keywords": ["other"]}, False),
    ("{content_patterns: ['a+']}", {"patterns": ["a+"]}, True),
    ("{content_patterns: ['a+']}", {}, False),
    ("{content_types: [text/html]}", {"content_type": "Text/HTML; charset=utf-8"}, True),
    ("{content_types: [text/html]}", {"content_type": "text/plain"}, False),
    ("{scanners: [secret], keywords: [a]}", {"findings": [SECRET]}, False),
]


@pytest.mark.parametrize(("match", "content", "is_match"), MATCHES)
def test_conditions_on_content_mean_the_same_for_inputs_and_outputs(
    match: str, content: dict[str, Any], is_match: bool
) -> None:
    assert decided(inputs(match), content=content) == (("deny", "i") if is_match else ("allow", "a"))
    assert shown(outputs(match), content) == (("quarantine", "o") if is_match else ("allow", NO_RULE))


def test_sizes_and_errors_are_conditions_too() -> None:
    assert decided(inputs("{input_size_gt: 10}"), content={"size_bytes": 11})[0] == "deny"
    assert decided(inputs("{max_input_bytes: 10}"), content={"size_bytes": 10})[0] == "allow"
    assert shown(outputs("{output_size_gt: 10}"), {"size_bytes": 11})[0] == "quarantine"
    assert shown(outputs("{has_error: true}"), {"has_error": True})[0] == "quarantine"
    assert shown(outputs("{has_error: true}"), {})[0] == "allow"
    assert shown(outputs("{has_error: false}"), {"has_error": True})[0] == "allow"


def test_a_rule_about_content_may_be_for_some_requests() -> None:
    found = inputs("{scanners: [secret], tenants: [acme], topics: [job.mail], capabilities: [c], risk_tags: [t]}")
    given: dict[str, Any] = {"tenant": "acme", "capability": "c", "risk_tags": ["t"], "content": {"findings": [SECRET]}}
    assert decided(found, **given)[0] == "deny"
    assert decided(found, "job.other", **given)[0] == "allow"
    assert decided(found, **{**given, "tenant": "beta"})[0] == "allow"


def test_input_rules_run_after_an_allow_only() -> None:
    found = inputs("{scanners: [secret]}", rules="[{id: a, decision: throttle}]")
    assert decided(found, content={"findings": [SECRET]}) == ("throttle", "a")
    found = inputs("{scanners: [secret]}", rules="[{id: a, decision: allow, constraints: {max_output_bytes: 1}}]")
    assert decided(found, content={"findings": [SECRET]}) == ("deny", "i")
    assert decided(found, content={}) == ("allow_with_constraints", "a")


def test_inputs_that_were_not_scanned_do_not_pass_unless_the_fail_mode_is_open() -> None:
    closed, opened = inputs("{scanners: [secret]}"), inputs("{scanners: [secret]}", "input_policy: {fail_mode: open}")
    assert decided(closed) == decided(closed, content={"scanners": ["pii"]}) == ("deny", "i")
    assert "was not scanned" in ask(closed).reason
    assert "no answer from the scanner secret" in ask(closed, content={"scanners": ["pii"]}).reason
    assert decided(opened) == decided(opened, content={"scanners": ["pii"]}) == ("allow", "a")
    assert decided(opened, content={"findings": [SECRET]}) == ("deny", "i")


def test_input_rules_can_be_turned_off() -> None:
    assert decided(inputs("{scanners: [secret]}", "input_policy: {enabled: false}")) == ("allow", "a")
    off = policy("default_decision: allow\ninput_rules: [{id: i, enabled: false, decision: deny}]")
    assert decided(off) == ("allow", "windlass:default")


def test_input_rules_are_asked_at_a_provider_if_its_body_was_scanned() -> None:
    found = inputs("{scanners: [secret]}", "", "[{id: a, at: [submit, provider, dispatch], decision: allow}]")
    assert decided(found, edge="provider") == ("allow", "a")
    assert decided(found, edge="provider", content={"findings": [SECRET]}) == ("deny", "i")
    assert decided(found, edge="dispatch", content={"findings": [SECRET]}) == ("allow", "a")
    assert decided(found, edge="claim") == ("deny", "i")
    silent = inputs("{scanners: [secret]}")
    assert decided(silent, edge="provider", content={"findings": [SECRET]}) == ("deny", "i")
    assert decided(silent, edge="provider", content={}) == ("allow", NO_RULE)


def test_a_shadow_rule_about_inputs_is_told() -> None:
    found = policy("default_decision: allow\ninput_rules: [{id: i, mode: shadow, decision: deny}]")
    told = judge(found, question())
    assert (told.verdict.decision, [one.rule for one in told.would]) == (Decision.ALLOW, ["i"])


@pytest.mark.parametrize(
    ("human", "finding", "fields", "decision"),
    [
        ("{min_severity_for_deny: high}", {"severity": "medium"}, {}, "require_approval"),
        ("{min_severity_for_deny: high}", {"severity": "high"}, {}, "deny"),
        ("{min_confidence_for_deny: 0.8}", {"confidence": 0.7}, {}, "require_approval"),
        ("{min_confidence_for_deny: 0.8}", {"confidence": 0.8}, {}, "deny"),
        ("{downgrade_when_prompt_only: true}", {}, {}, "require_approval"),
        ("{downgrade_when_prompt_only: true}", {}, {"host": "a.example"}, "deny"),
        ("{downgrade_when_prompt_only: true}", {}, {"labels": {"mcp.tool": "x"}}, "deny"),
    ],
)
def test_a_weak_finding_asks_a_person(
    human: str, finding: dict[str, Any], fields: dict[str, Any], decision: str
) -> None:
    found = inputs("{scanners: [secret]}", f"require_human: {human}")
    content = {"findings": [{"scanner": "secret", **finding}, {"scanner": "pii", "severity": "critical"}]}
    assert decided(found, content=content, **fields) == (decision, "i")


def test_the_severity_of_the_rule_counts_too_and_silence_stays_a_refusal() -> None:
    found = policy("""
default_decision: allow
require_human: {min_severity_for_deny: high}
input_rules: [{id: i, severity: low, match: {keywords: [x]}, decision: deny}]
""")
    assert decided(found, content={"keywords": ["x"]}) == ("require_approval", "i")
    assert decided(found) == ("deny", "i")


SCOPE = """{scope: {instruction_path: request.text, items_path: $.cart, aliases: {giftcard: gift card},
  allowed_categories: {groceries: [food, household], presents: [gift-card]}%s}}"""


@pytest.mark.parametrize(
    ("text", "cart", "decision"),
    [
        ("buy Groceries!", [{"category": "food"}, {"category": "HOUSEHOLD"}], "allow"),
        ("buy groceries", [{"category": "food"}, {"category": "gift_card"}], "deny"),
        ("buy groceries and presents", [{"category": "food"}, {"category": "GiftCard"}], "allow"),
        ("buy groceries", [{"name": "food"}], "allow"),
        ("buy groceries", [{"name": ""}], "deny"),
        ("buy groceries", ["food"], "deny"),
        ("buy groceries", [], "allow"),
        ("buy grocerieses", [{"category": "food"}], "deny"),
        (7, [], "deny"),
        ("buy groceries", {}, "deny"),
    ],
)
def test_items_outside_of_an_instructions_scope_are_refused(text: Any, cart: Any, decision: str) -> None:
    given = {"request": {"text": text}, "cart": cart}
    assert decided(inputs(SCOPE % ""), inputs=given)[0] == decision


def test_what_cannot_be_compared_may_be_let_pass() -> None:
    lenient = inputs(SCOPE % ", on_missing_input: allow, on_ambiguous: allow")
    assert decided(lenient, inputs={})[0] == "allow"
    assert decided(lenient, inputs={"request": {"text": "hm"}, "cart": [{"category": "x"}]})[0] == "allow"


def test_the_first_output_rule_decides_and_the_strictest_tier_wins() -> None:
    found = policy(
        """
default_decision: allow
output_rules:
  - {id: keep, match: {keywords: [public]}, decision: allow}
  - {id: hide, match: {scanners: [secret]}, decision: redact, reason: a secret}
""",
        """
tier: tenant
selector: {tenant_id: acme}
output_rules: [{id: t, match: {keywords: [public]}, decision: deny}]
""",
    )
    assert shown(found, {"keywords": ["public"], "findings": [SECRET]}) == ("allow", "keep")
    assert shown(found, {"findings": [SECRET]}) == ("redact", "hide")
    assert shown(found, {"keywords": ["public"]}, tenant="acme") == ("deny", "t")
    assert shown(found, {"findings": [SECRET]}, tenant="acme") == ("redact", "hide")


def test_an_output_that_was_not_scanned_is_quarantined_unless_the_fail_mode_is_open() -> None:
    found = outputs("{scanners: [secret]}", "redact")
    told = judge_output(found, question("job.a", "output"))
    assert (told.verdict.decision, told.verdict.rule) == (OutputDecision.QUARANTINE, "o")
    assert told.undecided == ("the content was not scanned",)
    assert shown(outputs("{scanners: [secret]}", "redact", "output_policy: {fail_mode: open}")) == ("allow", NO_RULE)
    assert shown(outputs("{scanners: [secret]}", "redact", "output_policy: {enabled: false}")) == ("allow", NO_RULE)


def test_a_silent_scanner_does_not_matter_once_another_has_found_something() -> None:
    found = outputs("{scanners: [secret, pii]}")
    assert shown(found, {"scanners": ["pii"], "findings": [{"scanner": "pii"}]}) == ("quarantine", "o")
    told = judge_output(found, question("job.a", "output", content={"scanners": ["pii"]}))
    assert told.undecided == ("no answer from the scanner secret",)


def test_shadow_rules_about_outputs_are_told() -> None:
    found = policy("""
default_decision: allow
output_rules:
  - {id: s, mode: shadow, match: {scanners: [secret]}, decision: deny}
  - {id: o, match: {keywords: [x]}, decision: redact}
""")
    told = judge_output(found, question("job.a", "output", content={"keywords": ["x"], "findings": [SECRET]}))
    assert (told.verdict.rule, [one.rule for one in told.would], told.undecided) == ("o", ["s"], ())
    silent = judge_output(found, question("job.a", "output"))
    assert (silent.verdict.rule, [one.rule for one in silent.would]) == ("o", ["s"])


def test_without_a_policy_or_after_a_fault_an_output_is_quarantined() -> None:
    assert shown(None, {}) == ("quarantine", NO_POLICY)
    found = outputs("{scanners: [secret], tenants: [a]}")
    broken = Question(Edge.OUTPUT, "job.a", tenant=7)  # type: ignore[arg-type]
    verdict = judge_output(found, broken).verdict
    assert (verdict.decision, verdict.rule) == (OutputDecision.QUARANTINE, FAULT)
    assert judge_output(found, Question(Edge.OUTPUT, "")).verdict.decision is OutputDecision.QUARANTINE


def test_a_reviewed_quarantine_says_so() -> None:
    found = policy("output_rules: [{id: o, severity: critical, decision: quarantine, review: true}]")
    verdict = judge_output(found, question("job.a", "output", content={})).verdict
    assert (verdict.is_reviewed, verdict.severity) == (True, "critical")


def test_it_is_known_what_must_be_scanned() -> None:
    found = policy("""
default_decision: allow
input_rules:
  - {id: i1, match: {scanners: [secret], keywords: [k]}, decision: deny}
  - {id: i2, match: {topics: [job.other], scanners: [pii]}, decision: deny}
output_rules: [{id: o, match: {content_patterns: [p]}, decision: deny}]
""")
    assert scan_wants(found, question("job.a")) == ScanWants(frozenset({"secret"}), frozenset(), frozenset({"k"}))
    assert scan_wants(found, question("job.other")).scanners == {"secret", "pii"}
    assert scan_wants(found, question("job.a", "output")) == ScanWants(patterns=frozenset({"p"}))


@pytest.mark.parametrize("place", ["offset 17", "$['mails'][0].body", "$"])
def test_a_place_that_is_no_plain_path_counts_for_every_path(place: str) -> None:
    """A scanner names such places for texts that are not JSON, and for keys that it must not repeat."""
    assert _is_below(place, "$.mails")
    assert not _is_below("$.other", "$.mails")
