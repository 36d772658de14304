"""Verdicts: the first rule of a document, the strictest of all tiers, and a refusal whenever something is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.make import ask, decided, policy, question, rule
from windlass.core.constraint import Constraints
from windlass.core.verdict import BAD_TOPIC, FAULT, NO_POLICY, NO_RULE, Decision, Edge
from windlass.policy.judge import judge, simulate
from windlass.policy.question import Question
from windlass.policy.rules import Policy, compile_policy
from windlass.policy.velocity import VelocityCheck

ALLOW = "default_decision: allow"


def test_without_a_policy_nothing_passes() -> None:
    for none in (None, compile_policy([])):
        assert (ask(none).decision, ask(none).rule) == (Decision.DENY, NO_POLICY)
    overlay = policy("tier: tenant\nselector: {tenant_id: acme}\ndefault_decision: allow")
    assert ask(overlay, tenant="acme").rule == NO_POLICY


@pytest.mark.parametrize("topic", ["", "mail", "Job.mail", " job.mail", "job.", "sys.job.mail", "job." + "x" * 997])
def test_a_topic_that_is_not_of_a_job_is_denied(topic: str) -> None:
    found = judge(policy(ALLOW), Question(Edge.SUBMIT, topic)).verdict
    assert (found.decision, found.rule) == (Decision.DENY, BAD_TOPIC)


class Broken:
    """A mapping that fails, as a bug in a caller's code would."""

    def get(self, name: str, default: Any = None) -> Any:
        raise RuntimeError("boom")


def test_a_fault_of_the_evaluator_denies_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    found = rule("match: {labels: {a: b}}\ndecision: deny")
    verdict = judge(found, Question(Edge.SUBMIT, "job.a", labels=Broken())).verdict  # type: ignore[arg-type]
    assert (verdict.decision, verdict.rule, verdict.policy) == (Decision.DENY, FAULT, found.hash)
    assert "boom" not in verdict.reason
    assert "a request was denied" in caplog.text and "boom" in caplog.text


def test_the_first_rule_that_matches_decides() -> None:
    found = policy("""
rules:
  - {id: first, match: {topics: ["job.a*"]}, decision: allow}
  - {id: second, match: {topics: [job.ab]}, decision: deny}
  - {id: third, match: {topics: ["job.*"]}, decision: throttle}
""")
    assert decided(found, "job.ab") == ("allow", "first")
    assert decided(found, "job.b") == ("throttle", "third")


def test_without_a_rule_the_default_decides_and_a_missing_default_denies() -> None:
    assert decided(policy(ALLOW)) == ("allow", "windlass:default")
    assert decided(policy("version: a")) == ("deny", "windlass:default")


def test_a_verdict_says_everything_about_its_rule() -> None:
    found = rule("""
decision: require_approval
reason: ask a lead
approval: {need: 2, who: {roles: [lead]}}
constraints: {budgets: {max_retries: 1}}
remediations: [{id: smaller, title: Take less, add_labels: {size: s}}]
""")
    verdict = ask(found)
    assert (verdict.rule, verdict.reason, verdict.tier, verdict.policy) == ("r", "ask a lead", "global", found.hash)
    assert len(verdict.rule_hash) == 64
    assert verdict.approval is not None and verdict.approval.need == 2
    assert verdict.constraints == Constraints(max_retries=1)
    assert verdict.remediations[0].add_labels == {"size": "s"}


TENANT = "tier: tenant\nselector: {tenant_id: Acme}\n"


@pytest.mark.parametrize(
    ("overlay", "fields", "decision"),
    [
        (TENANT + "default_decision: deny", {"tenant": "acme"}, "deny"),
        (TENANT + "default_decision: deny", {"tenant": "beta"}, "allow"),
        (TENANT + "rules: [{id: x, match: {topics: [job.mail]}, decision: throttle}]", {"tenant": "acme"}, "throttle"),
        (TENANT + "rules: [{id: x, match: {topics: [job.other]}, decision: deny}]", {"tenant": "acme"}, "allow"),
        ("tier: workflow\nselector: {workflow_id: Mail}\ndefault_decision: deny", {"recipe": "mail"}, "deny"),
        ("tier: workflow\nselector: {workflow_id: Mail}\ndefault_decision: deny", {"recipe": "pay"}, "allow"),
        ("tier: job\nselector: {job_id: '7'}\ndefault_decision: deny", {"job_id": "7"}, "deny"),
        ("tier: job\nselector: {job_id: '7'}\ndefault_decision: deny", {"job_id": "8"}, "allow"),
        ("tier: job\nselector: {session_id: s1}\ndefault_decision: deny", {"labels": {"session_id": "s1"}}, "deny"),
        ("tier: job\nselector: {session_id: s1}\ndefault_decision: deny", {}, "allow"),
        (
            "tier: workflow\nselector: {workflow_id: mail, tenant_id: acme}\ndefault_decision: deny",
            {"recipe": "mail", "tenant": "beta"},
            "allow",
        ),
    ],
)
def test_a_lower_tier_applies_to_its_requests_and_tightens(overlay: str, fields: dict[str, Any], decision: str) -> None:
    for texts in ((ALLOW, overlay), (overlay, ALLOW)):
        assert decided(policy(*texts), **fields)[0] == decision


def test_a_lower_tier_cannot_loosen() -> None:
    found = policy("default_decision: deny", TENANT + "default_decision: allow\nrules: [{id: x, decision: allow}]")
    assert decided(found, tenant="acme") == ("deny", "windlass:default")


def test_constraints_of_all_tiers_meet() -> None:
    found = policy(
        "rules: [{id: a, decision: allow, constraints: {budgets: {max_retries: 3, max_runtime_ms: 9}}}]",
        TENANT + "rules: [{id: b, decision: allow, constraints: {budgets: {max_retries: 1}, max_output_bytes: 5}}]",
    )
    verdict = ask(found, tenant="acme")
    assert verdict.decision is Decision.ALLOW_WITH_CONSTRAINTS
    assert verdict.constraints == Constraints(max_retries=1, max_runtime_ms=9, max_output_bytes=5)


def test_several_documents_have_one_hash() -> None:
    one, two = policy(ALLOW), policy(ALLOW, TENANT + "default_decision: deny")
    assert one.hash != two.hash
    assert ask(two, tenant="acme").policy == two.hash


EDGES = """
default_decision: deny
rules:
  - {id: start, match: {topics: ["job.mail*"]}, decision: allow}
  - {id: steps, at: [dispatch], match: {topics: ["job.mail.send"]}, decision: require_approval}
  - {id: calls, at: [provider], when: job.host == "evil", decision: deny}
  - {id: again, at: [claim], match: {topics: [job.old]}, decision: allow}
"""


def test_a_rule_is_asked_at_its_edges() -> None:
    found = policy(EDGES)
    assert decided(found, "job.mail") == ("allow", "start")
    assert decided(found, "job.mail.send") == ("allow", "start")
    assert decided(found, "job.mail.send", "dispatch") == ("require_approval", "steps")
    assert decided(found, "job.mail.send", "provider", host="evil") == ("deny", "calls")


def test_the_default_is_for_submits_and_claims() -> None:
    found = policy(EDGES)
    assert decided(found, "job.pay") == ("deny", "windlass:default")
    assert decided(found, "job.pay", "claim") == ("deny", "windlass:default")
    assert decided(found, "job.pay", "dispatch") == ("allow", NO_RULE)
    assert decided(found, "job.pay", "provider", host="good") == ("allow", NO_RULE)


def test_a_claim_asks_the_question_of_the_submit_again() -> None:
    found = policy(EDGES)
    assert decided(found, "job.mail", "claim") == ("allow", "start")
    assert decided(found, "job.old", "claim") == ("allow", "again")
    assert decided(found, "job.old", "submit") == ("deny", "windlass:default")


def test_it_is_known_which_steps_are_asked_about() -> None:
    found = policy(EDGES)
    assert found.is_asked(Edge.DISPATCH, "job.mail.send")
    assert not found.is_asked(Edge.DISPATCH, "job.mail.other")
    assert found.is_asked(Edge.SUBMIT, "job.anything")
    assert found.is_asked(Edge.PROVIDER, "job.x")
    assert not policy(ALLOW).is_asked(Edge.PROVIDER, "job.x")


def test_outputs_are_not_judged_by_rules_about_jobs() -> None:
    assert ask(policy(ALLOW), edge="output").rule == FAULT


def test_shadow_rules_are_told_and_change_nothing() -> None:
    found = policy("""
default_decision: allow
rules:
  - {id: s1, mode: shadow, decision: deny}
  - {id: s2, mode: shadow, match: {tenants: [other]}, decision: deny}
  - {id: s3, mode: shadow, when: job.inputs.nope == 1, decision: throttle}
  - {id: real, match: {topics: [job.mail]}, decision: throttle}
  - {id: s4, mode: shadow, decision: deny}
""")
    told = judge(found, question())
    assert (told.verdict.decision, told.verdict.rule) == (Decision.THROTTLE, "real")
    assert [(one.rule, one.decision) for one in told.would] == [("s1", Decision.DENY), ("s3", Decision.DENY)]
    other = judge(found, question("job.pay"))
    assert (other.verdict.rule, [one.rule for one in other.would]) == ("windlass:default", ["s1", "s3", "s4"])


VELOCITY = """
default_decision: deny
rules:
  - {id: v1, match: {topics: ["job.a*"]}, velocity: {max_requests: 2, window_seconds: 60, key: "tenant:labels.team"},
     decision: throttle}
  - {id: v2, velocity: {max_requests: 5, window_seconds: 3600, key: caller}, decision: require_approval}
  - {id: open, match: {topics: ["job.a*"]}, decision: allow}
"""


def test_a_rule_with_velocity_fires_past_its_limit_only() -> None:
    told = judge(policy(VELOCITY), question("job.a", tenant="acme", labels={"team": "x"}, caller={"id": "ada"}))
    assert told.verdict.rule == "open"
    first, second = told.checks
    assert (first.rule, first.counter, first.limit.max_requests) == ("v1", "global:v1:acme:x", 2)
    assert second.counter == "global:v2:ada"
    assert told.given([first.counter]).rule == "v1"
    assert told.given([second.counter]).rule == "v2"
    assert told.given([first.counter, second.counter]).rule == "v1"
    assert told.given([]).rule == told.given(["else"]).rule == "open"


def test_a_request_that_does_not_pass_is_not_counted() -> None:
    told = judge(policy(VELOCITY), question("job.a"))
    assert told.counted([]) == told.checks
    assert told.counted([told.checks[1].counter]) == ()
    refused = judge(policy(VELOCITY), question("job.b"))
    assert [check.rule for check in refused.checks] == ["v2"]
    assert refused.verdict.decision is Decision.DENY
    assert refused.counted([]) == ()


def test_checks_behind_an_exceeded_one_are_not_counted() -> None:
    found = policy("""
rules:
  - {id: v1, velocity: {max_requests: 1, window_seconds: 60, key: tenant}, decision: allow}
  - {id: v2, velocity: {max_requests: 1, window_seconds: 60, key: topic}, decision: deny}
""")
    told = judge(found, question())
    assert told.given([told.checks[0].counter]).decision is Decision.ALLOW
    assert told.counted([told.checks[0].counter]) == ()


def test_a_claim_counts_nothing() -> None:
    told = judge(policy(VELOCITY), question("job.a", "claim"))
    assert (told.checks, told.verdict.rule) == ((), "open")


def test_tiers_count_apart() -> None:
    limit = "velocity: {max_requests: 1, window_seconds: 60, key: tenant}"
    found = policy(
        f"default_decision: allow\nrules: [{{id: v, {limit}, decision: throttle}}]",
        f"{TENANT}rules: [{{id: v, {limit}, decision: deny}}]",
    )
    told = judge(found, question(tenant="acme"))
    above, below = (check.counter for check in told.checks)
    assert above != below
    assert told.given([above]).decision is Decision.THROTTLE
    assert told.given([above, below]).decision is Decision.DENY


@pytest.mark.parametrize(
    ("left", "right"),
    [({"a": "x:y", "b": "z"}, {"a": "x", "b": "y:z"}), ({"a": "%3A"}, {"a": ":"}), ({}, {"a": "x"})],
)
def test_two_keys_are_never_one_counter(left: dict[str, str], right: dict[str, str]) -> None:
    found = rule('velocity: {max_requests: 1, window_seconds: 60, key: "labels.a:labels.b"}\ndecision: deny')
    counters = {judge(found, question(labels=labels)).checks[0].counter for labels in (left, right)}
    assert len(counters) == 2


def test_a_counter_is_short_and_can_be_shown() -> None:
    found = rule("velocity: {max_requests: 1, window_seconds: 60, key: labels.a}\ndecision: deny")
    for text in ("x" * 100_000, "a\nb", "\ud800"):
        counter = judge(found, Question(Edge.SUBMIT, "job.a", labels={"a": text})).checks[0].counter
        assert len(counter) < 300 and counter.isprintable()


class Counts:
    """Counts that a test sets."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def count(self, check: VelocityCheck) -> int:
        return self.counts[check.rule]


def test_a_simulation_counts_and_a_broken_counter_denies() -> None:
    found = policy(VELOCITY)
    assert simulate(found, question("job.a"), Counts(v1=1, v2=4)).rule == "open"
    assert simulate(found, question("job.a"), Counts(v1=2, v2=4)).rule == "v1"
    assert simulate(found, question("job.a"), Counts(v1=0, v2=5)).rule == "v2"
    assert simulate(found, question("job.a"), Counts()).rule == FAULT
    assert simulate(None, question("job.a"), Counts()).rule == NO_POLICY


TENANTS = """
default_decision: deny
tenants:
  Acme: {deny_topics: ["job.mail.*"], allow_topics: ["job.*"], max_concurrent_jobs: 3, mcp: {deny_tools: [rm]},
         allowed_repo_hosts: [git.example], denied_repo_hosts: [evil.example]}
  beta: {allow_topics: [job.pay]}
"""


def test_without_rules_the_topics_of_tenants_decide() -> None:
    found = policy(TENANTS)
    assert decided(found, "job.mail.send", tenant="ACME") == ("deny", "tenant:acme:deny:1")
    assert decided(found, "job.pay", tenant="acme") == ("allow_with_constraints", "tenant:acme:allow:1")
    assert decided(found, "job.pay", tenant="beta") == ("allow", "tenant:beta:allow:1")
    assert decided(found, "job.mail", tenant="beta") == ("deny", "windlass:default")


def test_with_rules_the_topics_of_tenants_do_not_decide() -> None:
    found = policy(TENANTS + "rules: [{id: a, decision: allow}]")
    assert decided(found, "job.mail.send", tenant="acme") == ("allow_with_constraints", "a")
    assert decided(found, "job.mail.send", tenant="gamma") == ("allow", "a")


@pytest.mark.parametrize(
    ("labels", "decision", "name"),
    [
        ({"mcp.tool": "RM"}, "deny", "tenant:acme:mcp"),
        ({"mcp.tool": "ls"}, "allow_with_constraints", "a"),
        ({"repo_host": "Evil.example"}, "deny", "tenant:acme:repo_host"),
        ({"repo_host": "other.example"}, "deny", "tenant:acme:repo_host"),
        ({"repo_host": "GIT.example"}, "allow_with_constraints", "a"),
        ({"repo_url": "https://git.example/x.git"}, "allow_with_constraints", "a"),
        ({"repo_url": "https://user@evil.example:8080/x"}, "deny", "tenant:acme:repo_host"),
        ({"repo_url": "git.example/x"}, "deny", "tenant:acme:repo_host"),
        ({"repo_url": "http://[bad"}, "deny", "tenant:acme:repo_host"),
        ({}, "allow_with_constraints", "a"),
    ],
)
def test_a_tenants_limits_apply_after_its_rules(labels: dict[str, str], decision: str, name: str) -> None:
    found = policy(TENANTS + "rules: [{id: a, decision: allow}]")
    assert decided(found, tenant="acme", labels=labels) == (decision, name)
    assert decided(found, tenant="other", labels=labels)[0] == "allow"


def test_a_tenants_places_are_a_constraint() -> None:
    found = policy(TENANTS + "rules: [{id: a, decision: allow, constraints: {budgets: {max_concurrent_jobs: 9}}}]")
    assert ask(found, tenant="acme").constraints == Constraints(max_concurrent_jobs=3)
    assert ask(found, tenant="beta").constraints == Constraints(max_concurrent_jobs=9)


def test_a_policy_with_thousands_of_rules_finds_the_one() -> None:
    rules = "".join(f"  - {{id: r{at}, match: {{topics: ['job.app{at}.*']}}, decision: deny}}\n" for at in range(3_000))
    found = policy(f"default_decision: allow\nrules:\n{rules}")
    assert decided(found, "job.app2999.x") == ("deny", "r2999")
    assert decided(found, "job.app29.x") == ("deny", "r29")
    assert decided(found, "job.app3000.x") == ("allow", "windlass:default")


def test_many_topics_do_not_fill_the_memory() -> None:
    found: Policy = rule("match: {topics: ['job.a*']}\ndecision: deny")
    index = found.documents[0]._by_edge[Edge.SUBMIT]
    for at in range(10_005):
        assert decided(found, f"job.a{at}")[0] == "deny"
    assert len(index._kept) < 10_000
