"""Properties of judging: it never raises, an overlay never loosens, and the index finds what a scan finds."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.core.constraint import CONSTRAINT_FIELDS
from windlass.core.glob import Glob
from windlass.core.verdict import Decision, Edge, OutputDecision
from windlass.policy.canonical import canonical, document_hash
from windlass.policy.document import PolicyDocument, PolicyTier
from windlass.policy.explain import explain
from windlass.policy.judge import judge
from windlass.policy.output import judge_output
from windlass.policy.question import CallerFacts, ContentFacts, DelegationChain, FindingFact, Question
from windlass.policy.reader import read_policy
from windlass.policy.rules import compile_policy
from windlass.policy.testing import mutate, run_tests
from windlass.policy.topic_index import TopicIndex

NAMES = st.sampled_from(["a", "b", "A", " b "])
LISTS = st.lists(NAMES, min_size=1, max_size=2)
TOPICS = st.lists(st.sampled_from(["job.a", "job.a.*", "job.*", "job.?", "job.b.*.c", "*"]), min_size=1, max_size=2)
WHENS = st.sampled_from(
    ["true", "false", "job.depth > 1", "job.inputs.n > 1", "caller.tier == 'a'", "job.labels.a == 'b'", "job.inputs.x"]
)
MATCH = st.fixed_dictionaries(
    {},
    optional={
        "topics": TOPICS,
        "tenants": LISTS,
        "capabilities": LISTS,
        "risk_tags": LISTS,
        "requires": LISTS,
        "labels": st.dictionaries(NAMES.map(str.strip), NAMES.map(str.strip), min_size=1, max_size=2),
        "label_threshold": st.fixed_dictionaries({"n": st.integers(-5, 5)}),
        "label_allowlist": st.fixed_dictionaries({"a": LISTS}),
        "secrets_present": st.booleans(),
        "mcp": st.fixed_dictionaries({}, optional={"allow_tools": LISTS, "deny_servers": LISTS}),
        "delegation": st.fixed_dictionaries({}, optional={"max_depth": st.integers(0, 2), "issuers": LISTS}),
    },
)
CONSTRAINTS = st.sampled_from(
    [
        {"budgets": {"max_retries": 1}},
        {"budgets": {"max_retries": 3}},
        {"allowed_destinations": ["*.a", "b"]},
        {"max_output_bytes": 9},
    ]
)


@st.composite
def rules(draw: Any, at: int) -> dict[str, Any]:
    decision = draw(st.sampled_from(["allow", "deny", "throttle", "require_approval"]))
    rule: dict[str, Any] = {"id": f"r{at}", "decision": decision, "match": draw(MATCH)}
    if draw(st.booleans()):
        rule["when"] = draw(WHENS)
    if decision != "deny" and draw(st.booleans()):
        rule["constraints"] = draw(CONSTRAINTS)
    kind = draw(st.sampled_from(["plain", "plain", "shadow", "velocity"]))
    if kind == "shadow":
        rule["mode"] = "shadow"
    elif kind == "velocity":
        rule["velocity"] = {
            "max_requests": 1,
            "window_seconds": 60,
            "key": draw(st.sampled_from(["tenant", "labels.a"])),
        }
    rule["at"] = draw(
        st.lists(st.sampled_from(["submit", "dispatch", "provider"]), min_size=1, max_size=2, unique=True)
    )
    return rule


@st.composite
def documents(draw: Any, tier: str = "global") -> PolicyDocument:
    body: dict[str, Any] = {"rules": [draw(rules(at)) for at in range(draw(st.integers(0, 4)))]}
    if draw(st.booleans()):
        body["default_decision"] = draw(st.sampled_from(["allow", "deny"]))
    if draw(st.booleans()):
        body["tenants"] = {"a": {"max_concurrent_jobs": 2, "allow_topics": draw(TOPICS), "deny_topics": draw(TOPICS)}}
    if draw(st.booleans()):
        body["input_rules"] = [{"id": "i", "decision": "deny", "match": {"scanners": ["secret"]}}]
        body["output_rules"] = [{"id": "o", "decision": "redact", "match": {"scanners": ["secret"]}}]
    if tier != "global":
        body |= {"tier": tier, "selector": {"tenant_id": "a"}}
    body["rules"] = body["rules"] or None
    return read_policy(msgspec.json.encode({key: value for key, value in body.items() if value is not None}))


# Values that rules compare, and values that no honest caller has.
HOSTILE = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["a", "b", "", "nan", "1e999", "\ud800", "a\x00b", "İ", "ａ"]),
)
QUESTIONS = st.builds(
    Question,
    edge=st.sampled_from(Edge),
    topic=st.one_of(st.sampled_from(["job.a", "job.a.x", "job.b.x.c", "job.z", "job.", "a"]), HOSTILE),
    recipe=HOSTILE,
    tenant=st.one_of(st.sampled_from(["a", "b", ""]), HOSTILE),
    caller=st.builds(CallerFacts, id=HOSTILE, tier=HOSTILE, scopes=st.frozensets(HOSTILE, max_size=2)),
    labels=st.dictionaries(
        st.sampled_from(["a", "b", "n", "mcp.tool", "secrets_present", "repo_url"]), HOSTILE, max_size=3
    ),
    inputs=st.dictionaries(
        st.sampled_from(["n", "x"]),
        st.one_of(st.none(), st.integers(), st.floats(), HOSTILE, st.lists(st.integers(), max_size=3)),
        max_size=2,
    ),
    depth=st.integers(0, 3),
    capability=HOSTILE,
    risk_tags=st.frozensets(HOSTILE, max_size=2),
    requires=st.frozensets(HOSTILE, max_size=2),
    delegation=st.one_of(st.none(), st.builds(DelegationChain, depth=st.integers(0, 3), issuers=st.just(("a",)))),
    content=st.one_of(
        st.none(),
        st.builds(ContentFacts, findings=st.sampled_from([(), (FindingFact("secret"),)]), scanners=st.none()),
    ),
)


@given(documents(), documents("tenant"), QUESTIONS, st.data())
def test_an_overlay_never_loosens(above: PolicyDocument, below: PolicyDocument, question: Question, data: Any) -> None:
    alone, together = judge(compile_policy(above), question), judge(compile_policy([above, below]), question)
    counters = sorted(check.counter for check in together.checks)
    exceeded = data.draw(st.sets(st.sampled_from(counters)) if counters else st.just(set()))
    before, after = alone.given(exceeded), together.given(exceeded)
    assert after.decision.rank >= before.decision.rank
    if after.decision.admits:
        for name in CONSTRAINT_FIELDS:
            assert getattr(before.constraints, name) is None or getattr(after.constraints, name) is not None
        assert before.constraints.meet(after.constraints) == after.constraints


@given(documents(), QUESTIONS)
def test_the_judge_is_total(document: PolicyDocument, question: Question) -> None:
    policy = compile_policy(document)
    told = judge(policy, question)
    assert isinstance(told.verdict.decision, Decision)
    assert told.verdict.rule and told.verdict.reason
    for check in told.checks:
        assert isinstance(told.given([check.counter]).decision, Decision)
    assert isinstance(judge_output(policy, question).verdict.decision, OutputDecision)
    assert judge(policy, question) == told


@given(documents(), QUESTIONS)
def test_an_explanation_agrees_with_the_verdict(document: PolicyDocument, question: Question) -> None:
    policy = compile_policy(document)
    told = explain(policy, question)
    if question.edge is not Edge.OUTPUT:
        assert told.verdict == judge(policy, question).verdict
    deciding = {
        one.rule for trace in told.documents for one in trace.rules if one.fate in ("decides", "cannot be decided")
    }
    known = {rule.id for rule in (*document.rules, *document.input_rules, *document.output_rules)}
    if told.verdict.rule in known and told.documents:
        assert told.verdict.rule in deciding


@given(st.lists(st.lists(st.text("ab*?.", max_size=5), max_size=2), max_size=6), st.text("ab.", max_size=5))
def test_the_index_finds_what_a_scan_finds(globs: list[list[str]], topic: str) -> None:
    compiled = [tuple(Glob(text) for text in each) for each in globs]
    wanted = [at for at, each in enumerate(compiled) if not each or any(glob.matches(topic) for glob in each)]
    index = TopicIndex(range(len(globs)), compiled)
    assert list(index.find(topic)) == list(index.find(topic)) == wanted


@given(documents())
def test_the_canonical_form_of_a_document_is_stable(document: PolicyDocument) -> None:
    assert canonical(document) == canonical(document)
    assert len(document_hash(document)) == 64
    assert document.tier is PolicyTier.GLOBAL


@given(documents())
@settings(max_examples=50)
def test_testing_any_document_ends(document: PolicyDocument) -> None:
    assert run_tests(document).passed == 0
    assert all(not one.is_noticed for one in mutate(document))
