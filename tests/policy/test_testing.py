"""Tests of policies are tested: rules out of reach, rules without a test, slips, and changes that no test notices."""

from __future__ import annotations

import pytest

from tests.policy.make import document
from windlass.policy.reach import is_default_reachable, unreachable_rules
from windlass.policy.reader import read_policy
from windlass.policy.shipped import SHIPPED, shipped_policy
from windlass.policy.testing import mutate, run_tests

GOOD = """
default_decision: deny
rules:
  - {id: stop, match: {topics: ["job.mail.*"], labels: {env: prod}}, decision: deny}
  - {id: busy, velocity: {max_requests: 5, window_seconds: 60, key: labels.team}, decision: throttle}
  - {id: quiet, mode: shadow, match: {tenants: [acme]}, decision: deny}
  - {id: go, match: {topics: ["job.mail.*"]}, decision: allow, constraints: {budgets: {max_retries: 1}}}
output_rules:
  - {id: keys, match: {scanners: [secret]}, decision: redact}
  - {id: off, enabled: false, decision: deny}
tests:
  - {request: {topic: job.mail.a, labels: {env: prod}}, expect: {decision: deny, rule: stop}}
  - {request: {topic: job.mail.a, labels: {team: x}}, counts: {busy: 5}, expect: {decision: throttle}}
  - {request: {topic: job.mail.a}, expect: {decision: allow_with_constraints, rule: go, would: []}}
  - {request: {topic: job.mail.a, tenant: acme}, expect: {decision: allow_with_constraints, would: [quiet]}}
  - {request: {topic: job.pay}, expect: {decision: deny, rule: "windlass:default"}}
  - {request: {edge: output, topic: job.mail.a, content: {findings: [{scanner: secret}]}}, expect: {decision: redact}}
"""


def problems(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.rule) for one in run_tests(document(text)).problems]


def test_good_tests_pass_and_notice_every_change() -> None:
    report = run_tests(document(GOOD))
    assert (report.passed, report.failed, report.problems, report.is_good) == (6, (), (), True)
    assert [one for one in mutate(document(GOOD)) if not one.is_noticed] == []
    assert len(mutate(document(GOOD))) == 11


def test_a_failed_test_says_what_was_expected_and_what_was_found() -> None:
    text = GOOD.replace("decision: deny, rule: stop", "decision: allow, rule: go").replace(
        "would: []", "would: [quiet]"
    )
    first, second = run_tests(document(text)).failed
    assert (first.name, first.line, first.expected) == ("job.mail.a", 12, "allow by go")
    assert first.found == "deny by stop (rule stop)"
    assert second.expected.endswith("would: quiet") and second.found.endswith("would: nothing")


def test_a_rule_without_a_test_is_found() -> None:
    for line, rule in ((12, "stop"), (13, "busy"), (15, "quiet"), (17, "keys")):
        lines = GOOD.splitlines()
        del lines[line - 1]
        kinds = problems("\n".join(lines))
        assert ("untested", rule) in kinds, kinds


def hidden(first: str, second: str, kind: str = "rules") -> bool:
    """Whether the second of two rules is out of reach."""
    found = unreachable_rules(document(f"{kind}:\n- {{id: a, {first}}}\n- {{id: b, {second}}}\n"))
    assert [(one.rule, one.by, one.line) for one in found] in ([], [("b", "a", 3)])
    return bool(found)


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        ("{}", "{}", True),
        ("{topics: ['job.*']}", "{}", True),
        ("{topics: ['job.m*']}", "{topics: [job.mail]}", True),
        ("{topics: ['job.m*', job.b]}", "{topics: [job.b, job.ma]}", True),
        ("{topics: ['job.m*', job.b]}", "{topics: [job.b, job.c]}", False),
        ("{topics: ['job.mail.*']}", "{topics: ['job.*']}", False),
        ("{tenants: [x, y]}", "{tenants: [Y]}", True),
        ("{tenants: [x]}", "{tenants: [x, y]}", False),
        ("{tenants: [x]}", "{}", False),
        ("{risk_tags: [x, y]}", "{risk_tags: [x]}", True),
        ("{requires: [x]}", "{requires: [x, y]}", True),
        ("{requires: [x, y]}", "{requires: [x]}", False),
        ("{labels: {x: y}}", "{labels: {x: y, z: w}}", True),
        ("{labels: {x: y, z: w}}", "{labels: {x: y}}", False),
        ("{label_allowlist: {x: [y]}}", "{label_allowlist: {x: [y, z]}}", True),
        ("{label_allowlist: {x: [y, z]}}", "{label_allowlist: {x: [y]}}", False),
        ("{label_allowlist: {x: [y]}}", "{}", False),
        ("{label_threshold: {x: 1}}", "{label_threshold: {x: 2}}", True),
        ("{label_threshold: {x: 2}}", "{label_threshold: {x: 1}}", False),
        ("{label_threshold: {x: 2}}", "{}", False),
        ("{secrets_present: true}", "{secrets_present: true}", True),
        ("{secrets_present: true}", "{secrets_present: false}", False),
        ("{mcp: {allow_tools: [x]}}", "{mcp: {allow_tools: [x]}}", True),
        ("{mcp: {allow_tools: [x]}}", "{}", False),
        ("{predicate: delegation.depth > 1}", "{}", False),
        ("{delegation: {max_depth: 1}}", "{}", False),
    ],
)
def test_a_rule_behind_a_wider_one_is_out_of_reach(wide: str, narrow: str, is_covered: bool) -> None:
    assert hidden(f"match: {wide}, decision: allow", f"match: {narrow}, decision: deny") is is_covered


def test_conditions_edges_and_modes_count_for_reach() -> None:
    deny = "decision: deny"
    assert hidden(f"when: job.depth > 1, {deny}", f"when: job.depth>1, match: {{tenants: [x]}}, {deny}")
    assert not hidden(f"when: job.depth > 1, {deny}", f"when: job.depth > 2, {deny}")
    assert hidden(f"at: [submit], {deny}", f"at: [claim], {deny}")
    assert not hidden(f"at: [submit], {deny}", f"at: [provider], {deny}")
    assert not hidden(f"mode: shadow, {deny}", deny)
    assert not hidden(f"velocity: {{max_requests: 1, window_seconds: 1, key: topic}}, {deny}", deny)


@pytest.mark.parametrize(
    ("first", "second", "is_covered"),
    [
        ("decision: deny", "match: {scanners: [pii]}, decision: allow", True),
        ("match: {scanners: [pii]}, decision: deny", "decision: deny", False),
        ("match: {output_size_gt: 5}, decision: deny", "match: {output_size_gt: 9}, decision: deny", True),
        ("match: {output_size_gt: 9}, decision: deny", "match: {output_size_gt: 5}, decision: deny", False),
        ("match: {has_error: true}, decision: deny", "decision: deny", False),
        ("match: {path: a}, decision: deny", "match: {path: b}, decision: deny", False),
        ("enabled: false, decision: deny", "decision: deny", False),
    ],
)
def test_rules_about_content_can_be_out_of_reach_too(first: str, second: str, is_covered: bool) -> None:
    assert hidden(first, second, "output_rules") is is_covered


def test_one_of_thousands_of_rules_is_out_of_reach() -> None:
    globs = [*(f"job.a{at}" for at in range(2_000)), "job.a1*", "job.a1z"]
    rules = "".join(
        f"- {{id: r{at}, match: {{topics: ['{glob}']}}, decision: deny}}\n" for at, glob in enumerate(globs)
    )
    text = f"rules:\n{rules}"
    assert [(one.rule, one.by) for one in unreachable_rules(read_policy(text))] == [("r2001", "r2000")]


def test_a_catch_all_hides_the_default() -> None:
    assert not is_default_reachable(document("rules: [{id: a, match: {topics: ['job.*']}, decision: deny}]"))
    assert is_default_reachable(document("rules: [{id: a, match: {topics: ['job.a*']}, decision: deny}]"))
    text = "rules: [{id: a, decision: deny}]\ntests: [{request: {topic: job.x}, expect: {decision: deny, rule: a}}]"
    assert {one.rule for one in mutate(document(text))} == {"a"}


def test_a_misspelt_label_or_topic_is_found() -> None:
    text = GOOD.replace(
        "labels: {env: prod}}, decision: deny}", "label_allowlist: {env: [test], regoin: [eu]}}, decision: deny}"
    )
    found = [one for one in run_tests(document(text)).problems if one.kind == "label"]
    assert [one.message for one in found] == ["no test has the label regoin of rule stop: there is env, team"]
    text = GOOD.replace(
        '{id: go, match: {topics: ["job.mail.*"]}', '{id: go, match: {topics: ["job.mail.*", "job.mial.b"]}'
    )
    found = [one for one in run_tests(document(text)).problems if one.kind == "topic"]
    assert [one.message for one in found] == ["no test has a topic like job.mial.b: did you mean job.mail.a?"]
    text = GOOD.replace("key: labels.team", "key: labels.taem").replace("team: x", "team: x, env: y")
    assert ("label", "busy") in problems(text)
    text = GOOD.replace("{id: stop, match", "{id: stop, when: 'job.labels.evn == \"x\"', match")
    assert ("label", "stop") in problems(text)


def test_topics_are_those_of_known_recipes() -> None:
    topics = {"job.mail", "job.mail.a", "job.pay"}
    assert run_tests(document(GOOD), topics=topics).is_good
    found = run_tests(document(GOOD), topics={"job.male.a"}).problems
    assert {one.kind for one in found} == {"topic"}
    assert "no recipe has a topic like job.mail.*: did you mean job.male.a?" in found[0].message


def test_topics_of_tenants_are_checked() -> None:
    text = "tenants: {a: {allow_topics: [job.x]}}\ntests: [{request: {topic: job.y}, expect: {decision: deny}}]"
    assert problems(text) == [("topic", "")]


def test_a_change_that_no_test_notices_is_named() -> None:
    text = """
default_decision: deny
rules: [{id: a, match: {tenants: [x]}, decision: deny}]
input_rules: [{id: i, match: {keywords: [k]}, decision: require_approval}]
tests: [{request: {topic: job.a, tenant: x}, expect: {decision: deny}}]
"""
    found = [(one.rule, one.change) for one in mutate(document(text)) if not one.is_noticed]
    assert found == [
        ("a", "is dropped"),
        ("i", "is dropped"),
        ("i", "becomes deny"),
        ("windlass:default", "becomes allow"),
    ]


def test_an_overlay_is_tested_under_a_policy_that_allows() -> None:
    text = """
tier: tenant
selector: {tenant_id: acme}
rules: [{id: a, match: {topics: [job.a]}, decision: deny}]
tests:
  - {request: {topic: job.a, tenant: acme}, expect: {decision: deny, rule: a}}
  - {request: {topic: job.b, tenant: acme}, expect: {decision: allow}}
  - {request: {topic: job.a, tenant: beta}, expect: {decision: allow}}
"""
    assert run_tests(document(text)).is_good
    assert all(one.is_noticed for one in mutate(document(text)))
    above = document("rules: [{id: x, match: {topics: [job.a]}, decision: allow}]")
    assert [one.name for one in run_tests(document(text), others=[above]).failed] == ["job.b"]


def test_dropping_the_last_rule_does_not_wake_the_topics_of_tenants() -> None:
    text = """
default_decision: deny
tenants: {acme: {allow_topics: ["job.*"]}}
rules: [{id: a, match: {topics: [job.a]}, decision: allow}]
tests:
  - {request: {topic: job.a, tenant: acme}, expect: {decision: allow}}
  - {request: {topic: job.b, tenant: acme}, expect: {decision: deny}}
"""
    assert all(one.is_noticed for one in mutate(document(text)))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_policies_pass_their_own_tests_and_notice_every_change(name: str) -> None:
    found = read_policy(shipped_policy(name))
    report = run_tests(found)
    assert report.is_good, report
    assert [one for one in mutate(found) if not one.is_noticed] == []


def test_the_starter_allows_and_the_strict_policy_denies() -> None:
    starter, strict = (read_policy(shipped_policy(name)) for name in SHIPPED)
    assert (starter.default_decision, starter.rules) == ("allow", ())
    assert strict.default_decision == "deny"
