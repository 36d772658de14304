"""Conditions of rules: what each field of a match means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.make import ask, decided, question, rule
from windlass.core.caller import CallerContext, Scope
from windlass.core.verdict import Decision
from windlass.policy.judge import judge
from windlass.policy.question import CallerFacts, Question, caller_facts, topic_of


def fires(match: str, **fields: Any) -> bool:
    """Whether a rule with this match denies the question."""
    found, name = decided(rule(f"match: {match}\ndecision: deny"), **fields)
    assert name == ("r" if found == "deny" else "windlass:default")
    return found == "deny"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("tenants", "tenant"),
        ("capabilities", "capability"),
        ("pack_ids", "pack_id"),
        ("actor_ids", "actor_id"),
        ("actor_types", "actor_type"),
        ("agent_risk_tiers", "agent_risk_tier"),
    ],
)
def test_a_value_is_in_a_list_without_regard_to_case(name: str, field: str) -> None:
    assert fires(f"{{{name}: [Alpha, beta]}}", **{field: "ALPHA"})
    assert fires(f'{{{name}: [" alpha "]}}', **{field: " alpha"})
    assert not fires(f"{{{name}: [alpha]}}", **{field: "alphabet"})
    assert not fires(f"{{{name}: [alpha]}}")


def test_a_request_without_a_tenant_belongs_to_the_default_tenant() -> None:
    assert fires("{tenants: [default]}")
    assert not fires("{tenants: [default]}", tenant="acme")


@pytest.mark.parametrize("name", ["risk_tags", "agent_data_classifications"])
def test_one_of_a_list_suffices(name: str) -> None:
    assert fires(f"{{{name}: [a, b]}}", **{name: ["c", "B"]})
    assert not fires(f"{{{name}: [a, b]}}", **{name: ["c"]})
    assert not fires(f"{{{name}: [a, b]}}")


def test_all_requirements_must_be_there() -> None:
    assert fires("{requires: [gpu, net]}", requires=["net", "GPU", "disk"])
    assert not fires("{requires: [gpu, net]}", requires=["gpu"])


def test_topics_are_globs() -> None:
    assert fires('{topics: ["job.*.send", job.pay]}', topic="job.mail.send")
    assert fires('{topics: ["job.*.send", job.pay]}', topic="job.pay")
    assert not fires('{topics: ["job.*.send", job.pay]}', topic="job.payment")
    assert not fires('{topics: ["job.Mail"]}', topic="job.mail")


def test_labels_are_equal_to_the_letter() -> None:
    assert fires("{labels: {env: prod, eu: ''}}", labels={"env": "prod", "eu": "", "x": "y"})
    assert not fires("{labels: {env: prod}}", labels={"env": "Prod"})
    assert not fires("{labels: {env: ''}}")


def test_an_allowlist_fires_for_a_label_outside_of_its_list() -> None:
    match = "{label_allowlist: {region: [eu, us], size: [s]}}"
    assert fires(match, labels={"region": "cn"})
    assert fires(match, labels={"region": "EU", "size": "xl"})
    assert not fires(match, labels={"region": " eu "})
    assert not fires(match, labels={"other": "cn"})


def test_a_threshold_fires_for_a_number_above_it() -> None:
    match = "{label_threshold: {amount: 100}}"
    assert fires(match, labels={"amount": "100.5"})
    assert fires(match, labels={"amount": " 1e9 "})
    assert not fires(match, labels={"amount": "100"})
    assert not fires(match, labels={"amount": "-1e3"})
    assert not fires(match)


@pytest.mark.parametrize("text", ["much", "nan", "inf", "1_000", "٣٣٣٣", "0x99", "1e9999"])
def test_a_label_that_is_not_a_number_is_refused_and_not_let_through(text: str) -> None:
    found = ask(rule("match: {label_threshold: {amount: 100}}\ndecision: deny"), labels={"amount": text})
    assert found.decision is Decision.DENY
    assert "cannot be decided: the label amount is" in found.reason


@pytest.mark.parametrize(
    ("fields", "is_present"),
    [
        ({"labels": {"secrets_present": "YES"}}, True),
        ({"labels": {"secrets_present": "1"}}, True),
        ({"labels": {"secrets_present": "no"}}, False),
        ({"risk_tags": ["Secrets"]}, True),
        ({}, False),
    ],
)
def test_secrets_are_declared_by_a_label_or_a_tag(fields: dict[str, Any], is_present: bool) -> None:
    assert fires("{secrets_present: true}", **fields) is is_present
    assert fires("{secrets_present: false}", **fields) is not is_present


@pytest.mark.parametrize(
    ("lists", "labels", "is_match"),
    [
        ("{allow_servers: [git]}", {}, True),
        ("{allow_servers: [git]}", {"mcp.server": "GIT"}, True),
        ("{allow_servers: [git]}", {"mcp_server": "mail"}, False),
        ("{allow_servers: [git], deny_servers: [git]}", {"mcpServer": "git"}, False),
        ("{deny_tools: [rm]}", {"mcp.server": "git", "mcp.tool": "rm"}, False),
        ("{deny_tools: [rm]}", {"mcp.server": "git", "mcp.tool": "ls"}, True),
        ("{allow_tools: [ls]}", {"mcp.server": "git"}, False),
        ("{deny_resources: [x], deny_actions: [y]}", {"mcp.resource": "x"}, False),
        ("{deny_resources: [x], deny_actions: [y]}", {"mcp.action": "y"}, False),
    ],
)
def test_mcp_calls_pass_lists(lists: str, labels: dict[str, str], is_match: bool) -> None:
    assert fires(f"{{mcp: {lists}}}", labels=labels) is is_match


CHAIN = {"depth": 2, "issuers": ["payroll", "bank"], "scope": ["read"]}


@pytest.mark.parametrize(
    ("wanted", "is_match"),
    [
        ("{max_depth: 2}", True),
        ("{max_depth: 1}", False),
        ("{issuers: [payroll, bank, other]}", True),
        ("{issuers: [payroll]}", False),
        ("{require_issuer: Payroll}", True),
        ("{require_issuer: bank}", False),
        ("{required_scope: [READ]}", True),
        ("{required_scope: [read, write]}", False),
        ("{forbid_delegated: true}", False),
    ],
)
def test_a_chain_of_delegation_meets_conditions_and_a_direct_request_meets_all(wanted: str, is_match: bool) -> None:
    assert fires(f"{{delegation: {wanted}}}", delegation=CHAIN) is is_match
    assert fires(f"{{delegation: {wanted}}}")


def test_a_chain_without_issuers_has_no_first_issuer() -> None:
    assert not fires("{delegation: {require_issuer: a}}", delegation={"depth": 1})
    assert not fires("{predicate: 'delegation.issuer == \"a\"'}", delegation={"depth": 1})


@pytest.mark.parametrize(
    ("predicate", "is_match"),
    [
        ("delegation.depth > 1", True),
        ("delegation.depth >= 2", True),
        ("delegation.depth == 2", True),
        ("delegation.depth < 2", False),
        ("delegation.depth <= 1", False),
        ('delegation.issuer == "PAYROLL"', True),
        ("delegation.issuer == 'bank'", False),
        ("delegation.scope.contains('read')", True),
        ("delegation.scope.contains('write')", False),
    ],
)
def test_predicates_look_at_the_chain(predicate: str, is_match: bool) -> None:
    quoted = predicate.replace("'", "''")
    assert fires(f"{{predicate: '{quoted}'}}", delegation=CHAIN) is is_match
    assert not fires(f"{{predicate: '{quoted}'}}")


def test_all_conditions_of_a_match_must_hold() -> None:
    match = "{topics: [job.mail], tenants: [acme], labels: {env: prod}}"
    given = {"tenant": "acme", "labels": {"env": "prod"}}
    assert fires(match, **given)
    for missing in given:
        assert not fires(match, **{key: value for key, value in given.items() if key != missing})


@pytest.mark.parametrize(
    ("when", "fields", "is_true"),
    [
        ("job.inputs.count > 100", {"inputs": {"count": 101}}, True),
        ("job.inputs.count > 100", {"inputs": {"count": 100}}, False),
        ('caller.tier == "gold" && "admin" in caller.scopes', {"caller": {"tier": "gold", "scopes": ["admin"]}}, True),
        ('has(job.labels.env) && job.labels.env == "prod"', {}, False),
        ("job.depth > 2 || job.priority >= 90", {"priority": 90}, True),
        ("job.cost > 0.5", {"cost": "0.75"}, True),
        ("job.cost == null", {}, True),
        ('job.provider == "fal" && job.model.startsWith("flux")', {"provider": "fal", "model": "flux/dev"}, True),
        ('"a" in job.risk_tags && "b" in job.requires', {"risk_tags": ["a"], "requires": ["b"]}, True),
        ('job.inputs.hosts.all(h, h.matches("^api[.]"))', {"inputs": {"hosts": ["api.a", "api.b"]}}, True),
        ('job.inputs["odd name"] == 1', {"inputs": {"odd name": 1}}, True),
        ("size(job.inputs) == 2", {"inputs": {"a": 1, "b": 2}}, True),
        ('job.edge == "submit" && job.recipe == "mail" && job.id == "7"', {"recipe": "mail", "job_id": "7"}, True),
        ("job.inputs.n == 1.5", {"inputs": {"n": 1.5}}, True),
        ('job.tenant == "acme"', {"tenant": "ACME"}, True),
        ('job.tenant == "default"', {}, True),
        ("true", {}, True),
    ],
)
def test_a_condition_in_cel_sees_the_question(when: str, fields: dict[str, Any], is_true: bool) -> None:
    quoted = when.replace("'", "''")
    assert (decided(rule(f"when: '{quoted}'\ndecision: deny"), **fields)[0] == "deny") is is_true


@pytest.mark.parametrize(
    ("when", "inputs", "reason"),
    [
        ("job.inputs.count > 1", {}, "Key not found in map"),
        ("job.inputs.count > 1", {"count": "many"}, "No matching overloads"),
        ("1 / job.inputs.n > 0", {"n": 0}, "divide by zero"),
        ("job.inputs.flag", {"flag": "yes"}, "is 'yes', not true or false"),
        ("job.inputs.a.all(x, job.inputs.a.all(y, true))", {"a": [0] * 200}, "Iteration budget"),
        ("job.inputs.a == 1", {"a": [0] * 3_000}, "conditions read inputs of more than"),
        ("job.inputs.a == 1", {"a": "x" * 70_000}, "conditions read inputs of more than"),
    ],
)
def test_a_condition_that_cannot_be_decided_denies(when: str, inputs: dict[str, Any], reason: str) -> None:
    found = ask(rule(f"when: {when}\ndecision: allow", default="allow"), inputs=inputs)
    assert (found.decision, found.rule) == (Decision.DENY, "r")
    assert f"rule r cannot be decided: {reason}"[:24] in found.reason and reason in found.reason


def nested(levels: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(levels):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    "value",
    [10**30, -(10**30), object(), b"x", {1: 2}, "\ud800", nested(100_000), {"x": {"y": {"z": {1, 2}}}}],
)
def test_inputs_that_are_not_json_deny_and_end_nothing(value: Any) -> None:
    found = rule("when: job.inputs.a == 1\ndecision: allow")
    asked = Question(question().edge, "job.mail", inputs={"a": value})
    assert judge(found, asked).verdict.decision is Decision.DENY


def test_inputs_that_no_condition_reads_cost_nothing() -> None:
    found = rule("when: job.inputs.small == 1\ndecision: deny")
    asked = Question(question().edge, "job.mail", inputs={"small": 1, "large": nested(100_000), "b": "x" * 10**6})
    assert judge(found, asked).verdict.rule == "r"


def test_a_callers_context_becomes_facts() -> None:
    ctx = CallerContext("ada", "user", "gold", frozenset({Scope.ADMIN}))
    assert caller_facts(ctx) == CallerFacts("ada", "user", "gold", "admin", frozenset({"admin"}))
    assert caller_facts(CallerContext("bob")).tier == ""
    assert (topic_of("mail"), topic_of("mail", "send")) == ("job.mail", "job.mail.send")
