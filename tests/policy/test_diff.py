"""Two policies are compared by their rules and by their verdicts about the requests of their tests."""

from __future__ import annotations

from tests.policy.make import document
from windlass.policy.diff import diff_policies

BEFORE = """
default_decision: deny
rules:
  - {id: a, match: {topics: [job.a]}, decision: deny}
  - {id: b, match: {topics: [job.b]}, decision: allow}
  - {id: c, match: {topics: [job.c]}, decision: allow}
output_rules: [{id: o, match: {scanners: [secret]}, decision: redact}]
tests:
  - {request: {topic: job.a}, expect: {decision: deny}}
  - {name: bees, request: {topic: job.b}, expect: {decision: allow}}
  - {request: {topic: job.a, edge: output, content: {findings: [{scanner: secret}]}}, expect: {decision: redact}}
"""


def test_equal_policies_have_no_differences() -> None:
    found = diff_policies(document(BEFORE), document("# a comment\n" + BEFORE))
    assert (found.is_equal, found.changes, found.verdicts) == (True, (), ())


def test_rules_are_added_removed_changed_and_moved() -> None:
    after = document("""
default_decision: allow
rules:
  - {id: c, match: {topics: [job.c]}, decision: allow}
  - {id: a, match: {topics: [job.a]}, decision: allow, reason: fine}
  - {id: d, decision: throttle}
output_rules: [{id: o, match: {scanners: [secret]}, decision: allow}]
tests:
  - {request: {topic: job.b}, expect: {decision: throttle}}
""")
    found = diff_policies(document(BEFORE), after)
    assert not found.is_equal
    assert [(one.kind, one.place, one.detail) for one in found.changes] == [
        ("changed", "default_decision", "nothing → allow"),
        ("changed", "tests", "3 → 1 tests"),
        ("removed", "rules.b", "allow"),
        ("changed", "rules.a", "decision, reason"),
        ("added", "rules.d", "throttle"),
        ("moved", "rules.c", "before a"),
        ("changed", "output_rules.o", "decision"),
    ]
    assert [(one.name, one.topic, one.before, one.after, one.is_looser) for one in found.verdicts] == [
        ("", "job.a", "deny", "allow", True),
        ("", "job.a", "redact", "allow", True),
        ("bees", "job.b", "allow", "throttle", False),
    ]


def test_an_overlay_is_compared_by_itself() -> None:
    test = "{request: {topic: job.x, tenant: a}, expect: {decision: allow}}"
    text = f"tier: tenant\nselector: {{tenant_id: a}}\ntests: [{test}]\n"
    found = diff_policies(document(text), document(text + "default_decision: deny"))
    assert [(one.before, one.after) for one in found.verdicts] == [("allow", "deny")]
