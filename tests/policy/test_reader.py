"""Documents are read strictly: what is misspelt, doubtful or over a limit is refused, with its line."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from windlass.core.constraint import Constraints
from windlass.core.errors import BadPolicy
from windlass.core.verdict import ApprovalTerms, Decision, Edge, OutputDecision, VelocityLimit, Voters
from windlass.policy.document import PolicyDocument, PolicyTier, RuleMode
from windlass.policy.reader import POLICY_BYTES_MAX, read_policy, read_question

WHOLE = """
version: 7
default_decision: deny
output_policy: {fail_mode: closed, scan_at: engine}
rules:
- id: prod-mail
  at: [submit, dispatch]
  match: {topics: ["job.mail.*"], tenants: [acme], labels: {env: prod}}
  when: job.inputs.count > 100 && caller.tier != "gold"
  velocity: {max_requests: 50, window_seconds: 3600, key: "tenant:labels.team"}
  decision: require-human
  approval: {need: 2, who: {roles: [lead]}, expires: 24h, escalate: {after: 4h, to: [cto]}}
  constraints: {budgets: {max_retries: 1, max_cost: "2.50"}, allowed_destinations: [SMTP.acme.example]}
output_rules:
- {id: keys, match: {scanners: [secret], output_size_gt: 9, max_output_bytes: 5}, decision: redact}
tests:
- {request: {topic: job.mail.send}, expect: {decision: block}}
"""

LIMIT = "{max_requests: 1, window_seconds: 9, key: topic}"


def error(text: str | bytes) -> BadPolicy:
    with pytest.raises(BadPolicy) as caught:
        read_policy(text)
    return caught.value


def test_a_document_becomes_typed_values() -> None:
    found = read_policy(WHOLE)
    assert (found.version, found.tier, found.default_decision) == ("7", PolicyTier.GLOBAL, Decision.DENY)
    [rule] = found.rules
    assert rule.decision is Decision.REQUIRE_APPROVAL
    assert rule.at == {Edge.SUBMIT, Edge.DISPATCH}
    assert rule.velocity == VelocityLimit(50, 3600, ("tenant", "labels.team"))
    group = Voters(frozenset({"lead"}), frozenset(), 14_400.0, frozenset({"cto"}))
    assert rule.approval == ApprovalTerms(2, (group,), 86_400.0)
    assert rule.constraints == Constraints(
        max_retries=1, max_cost=Decimal("2.50"), allowed_destinations=frozenset({"smtp.acme.example"})
    )
    assert (rule.mode, rule.line) == (RuleMode.ENFORCE, 6)
    [output] = found.output_rules
    assert (output.decision, output.match.size_gt) == (OutputDecision.REDACT, 5)
    assert (found.output_policy.is_enabled, found.output_policy.scan_at) == (True, "engine")
    assert found.input_policy.is_enabled is False
    [test] = found.tests
    assert (test.question.topic, test.expect.decision) == ("job.mail.send", Decision.DENY)


def test_the_smallest_document_denies() -> None:
    assert read_policy("version: a") == PolicyDocument(version="a", default_decision=Decision.DENY)


def test_json_is_a_document_too() -> None:
    text = json.dumps({"default_decision": "permit", "rules": [{"id": "a", "decision": "deny"}]})
    assert read_policy(text).rules[0].decision is Decision.DENY


def test_an_allow_with_constraints_is_called_so() -> None:
    text = "rules: [{id: a, decision: allow, constraints: {diff: {max_files: 0}}}]"
    assert read_policy(text).rules[0].decision is Decision.ALLOW_WITH_CONSTRAINTS
    text = "rules: [{id: a, decision: allow, constraints: {sandbox: {isolated: false}}}]"
    assert read_policy(text).rules[0].decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("old", "new", "said", "line"),
    [
        ("match:", "mach:", "did you mean match?", 8),
        ("default_decision: deny", "default_decison: deny", "did you mean default_decision?", 3),
        ("default_decision: deny", "default_decision: dney", "did you mean deny?", 3),
        ("default_decision: deny", "default_decision: throttle", "is not known here", 3),
        ("require-human", "require_humans", "did you mean require_human?", 11),
        ("[secret]", "[secrets]", "there is no scanner 'secrets': did you mean secret?", 15),
        ("id: keys", "id: prod-mail", "is taken by the rule on line 6", 15),
        ("id: keys", "id: a:b", "is not an id", 15),
        ("id: keys, ", "", "has no `id`", 15),
        ("decision: redact", "decision: quarantined", "did you mean quarantine?", 15),
        ("job.mail.*", "mail.*", "every topic begins with `job.`", 8),
        ("job.mail.*", "job.[ab]", "is not a glob", 8),
        ("job.mail.*", "job.*********", "more than 8 wildcards", 8),
        ("[acme]", "acme", "must be a list", 8),
        ("[acme]", "[]", "is an empty list", 8),
        ("tenants: [acme]", "tenants: ", "has no value", 8),
        ("[acme]", "[7]", "is not text", 8),
        ("{env: prod}", "{env: 7}", "is not text", 8),
        ("{env: prod}", "{}", "is an empty map", 8),
        ("100 &&", "100 &", "unexpected '&'", 9),
        ("job.inputs.count", "job.input.count", "did you mean inputs?", 9),
        ("50, window", "0, window", "whole number from 1", 10),
        ("3600", "86401", "whole number from 1 to 86,400", 10),
        ("labels.team", "label.team", "cannot be counted", 10),
        ("[submit, dispatch]", "[submit, claim]", "would count twice", 7),
        ("[submit, dispatch]", "[output]", "is not known here", 7),
        ("24h", "soon", "is not a length of time", 12),
        ("24h", "0s", "shorter than a second", 12),
        ("need: 2", "need: 0", "whole number from 1", 12),
        ("need: 2", "need: .inf", "whole number from 1", 12),
        ("{after: 4h, to: [cto]}", "{after: 4h}", "has neither `to` nor `callers`", 12),
        ("who: {roles: [lead]}, ", "", "all people may vote already", 12),
        ('"2.50"', "nan", "is not an amount of money", 13),
        ('"2.50"', "-1", "is not an amount of money", 13),
        ("SMTP.acme.example", "http://x", "is not a host", 13),
        ("closed", "shut", "is not known here", 4),
        ("decision: block", "decision: redact", "is no decision at the edge submit", 17),
        ("{decision: block}", "{decision: block, rule: prod-male}", "did you mean prod-mail?", 17),
        ("{decision: block}", "{decision: block, rule: 'windlass:defualt'}", "did you mean windlass:default?", 17),
        ("{decision: block}", "{decision: block, would: [prod-mail]}", "no rule 'prod-mail' is in shadow mode", 17),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, said: str, line: int) -> None:
    assert old in WHOLE
    found = error(WHOLE.replace(old, new, 1))
    assert said in str(found), str(found)
    assert found.line == line
    assert found.code == "bad_policy"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the policy is empty"),
        ("- a", "must be a map"),
        ("rules: {}", "must be a list"),
        ("rules: [7]", "must be a map"),
        ("rules: [{id: a, decision: deny, constraints: {max_output_bytes: 1}}]", "no use for constraints"),
        ("rules: [{id: a, decision: allow_with_constraints}]", "has no constraints"),
        ("rules: [{id: a, decision: allow, approval: {need: 1}}]", "only `decision: require_approval` has it"),
        ("rules: [{id: a, decision: allow, constraints: {max_output_bytes: 16777217}}]", "to 16,777,216"),
        ("rules: [{id: a, decision: allow, constraints: {redaction_level: high}}]", "is not known here"),
        (f"rules: [{{id: a, decision: deny, mode: shadow, velocity: {LIMIT}}}]", "cannot be a shadow"),
        ("rules: [{id: a, decision: deny, remediations: [{id: x}, {id: x}]}]", "have the same id"),
        ("rules: [{id: a, decision: deny, match: {predicate: delegation.deep}}]", "is not a predicate"),
        ("rules: [{id: a, decision: deny, match: {label_threshold: {n: .nan}}}]", "is not a number"),
        ("rules: [{id: a, decision: deny, match: {label_threshold: {n: 1e999}}}]", "is not a number"),
        ("rules: [{id: a, decision: deny, when: 7}]", "is not an expression"),
        ("output_rules: [{id: a, decision: redact, review: true}]", "only a quarantined output is reviewed"),
        ("output_rules: [{id: a, decision: redact, match: {path: a..b}}]", "is not a path"),
        ("input_rules: [{id: a, decision: allow}]", "is not known here"),
        ("tier: tenant", "needs selector.tenant_id"),
        ("tier: job", "needs selector.job_id or selector.session_id"),
        ("selector: {tenant_id: a}", "the global tier applies to all requests"),
        ("tenants: {A: {max_concurrent_jobs: 1}, a: {max_concurrent_jobs: 2}}", "is written twice"),
        ("a: &x 1\nb: *x", "anchors and aliases"),
        ("tests: [{request: {topic: t, inputs: {a: 99999999999999999999}}, expect: {decision: deny}}]", "64 bits"),
        ("tests: [{request: {topic: t}, counts: {r: 1}, expect: {decision: deny}}]", "no rule 'r' has `velocity`"),
        ('version: "a\\u0000b"', "cannot be shown"),
        ("version: !!python/object:os.system x", "the tag"),
        ("version: a\nversion: b", "written twice"),
    ],
)
def test_a_doubtful_document_is_refused(text: str, said: str) -> None:
    assert said in str(error(text)), str(error(text))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("a" * 257, "has 257 characters"),
        ("(a+)+", "repeats a group"),
        ("((a*)b)*", "repeats a group"),
        ("(a|b{2,3})+", "repeats a group"),
        ("a|b|c|d|e|f|g", "more than 5 alternations"),
        ("(?=a)", "looks around"),
        (r"(a)\1", "looks around"),
        ("(", "cannot be read"),
        ("a{99999999999}", "cannot be read"),
    ],
)
def test_a_dangerous_regular_expression_is_refused(pattern: str, said: str) -> None:
    text = json.dumps({"output_rules": [{"id": "a", "decision": "deny", "match": {"content_patterns": [pattern]}}]})
    assert said in str(error(text))


@pytest.mark.parametrize("pattern", [r"[(+]+x", r"\(a\+\)+", "(ab)+c*", "(?i)secret[0-9]{4}", "a|b|c|d|e|f", "[|]+"])
def test_an_ordinary_regular_expression_is_fine(pattern: str) -> None:
    text = json.dumps({"output_rules": [{"id": "a", "decision": "deny", "match": {"content_patterns": [pattern]}}]})
    assert read_policy(text).output_rules[0].match.content_patterns == {pattern}


def test_a_document_of_ten_megabytes_is_refused_at_once() -> None:
    assert "at most 2,097,152 are allowed" in str(error(b"#" * (10 << 20)))
    assert "at most 2,097,152 are allowed" in str(error("é" * POLICY_BYTES_MAX))


def test_a_document_with_too_many_rules_is_refused() -> None:
    text = "rules:\n" + "".join(f"- {{id: r{at}, decision: deny}}\n" for at in range(10_001))
    assert "at most 10,000" in str(error(text))


def test_deep_nesting_and_billions_of_laughs_are_refused() -> None:
    assert "nested deeper" in str(error("[" * 5_000 + "]" * 5_000))
    assert "nested deeper" in str(error('{"a":' * 5_000 + "1" + "}" * 5_000))
    laughs = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + at)}: &{chr(98 + at)} [*{chr(97 + at)}, *{chr(97 + at)}]\n" for at in range(20)
    )
    assert "anchors and aliases" in str(error(laughs))
    deep = {"topic": "t", "inputs": {"a": []}}
    inner = deep["inputs"]["a"]  # type: ignore[index]
    for _ in range(60):
        inner.append([])
        inner = inner[0]
    found = {"tests": [{"request": deep, "expect": {"decision": "deny"}}]}
    assert "nested deeper than 32" in str(error(json.dumps(found)))


@pytest.mark.parametrize(
    "when",
    [
        "x" * 1_025,
        "(" * 40 + "true" + ")" * 40,
        "job.inputs.a.all(x, job.inputs.b.all(y, job.inputs.c.all(z, true)))",
        "job.inputs.a.all(x, x + x == x)",
        "job.inputs.a.map(x, x) == []",
        "job.inputs.a.matches(job.inputs.b)",
        "job.inputs.a.all(x, job.host.matches('a'))",
        "job.inputs.a.all(x, job.inputs.b.all(y, x.matches('a')))",
        "[" * 30 + "]" * 30,
        "1",
        "'a'",
        "frob(1)",
        "1 +",
        "inputs.n > 1",
        "true ? true",
        "\ud800",
    ],
)
def test_a_bomb_or_a_slip_in_a_condition_is_refused_at_load(when: str) -> None:
    assert error(json.dumps({"rules": [{"id": "a", "decision": "deny", "when": when}]})).place.startswith("rules[0]")


def test_random_bytes_are_read_or_refused() -> None:
    chance = random.Random(7)
    for _ in range(300):
        size = chance.randrange(40)
        text = bytes(chance.choice(b"{}[]:,-\"'#&*!|> \n\tabrules\xc3\xa9\xff\x00") for _ in range(size))
        try:
            read_policy(text)
        except BadPolicy as found:
            assert str(found)


def test_a_request_is_read_as_strictly_as_a_test() -> None:
    found = read_question(
        {"recipe": "mail", "step": "send", "cost": "0.5", "delegation": {"depth": 2, "issuers": ["b", "a"]}}
    )
    assert (found.topic, found.cost) == ("job.mail.send", Decimal("0.5"))
    assert found.delegation is not None and found.delegation.issuers == ("b", "a")
    with pytest.raises(BadPolicy, match=r"request\.topc: there is no key `topc` here: did you mean topic"):
        read_question({"topc": "job.a"})
    with pytest.raises(BadPolicy, match="must be a map"):
        read_question([])
    with pytest.raises(BadPolicy, match="there is no scanner"):
        read_question({"topic": "job.a", "content": {"findings": [{"scanner": "x"}]}})


def test_scanners_of_plug_ins_may_be_named() -> None:
    text = "output_rules: [{id: a, match: {scanners: [mine]}, decision: deny}]"
    assert read_policy(text, scanners={"mine"}).output_rules[0].match.scanners == {"mine"}
