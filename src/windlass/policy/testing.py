"""Runs the tests of a document, and checks the tests themselves.

`run_tests` judges the requests of `tests` by the same code that judges jobs. It also reports rules that no request can
reach, rules that no test shows, and topics and labels that no test has, which are often misspelt.

`mutate` changes one rule at a time and expects a test to fail. A rule whose change no test notices is not tested.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from windlass.core.constraint import NO_CONSTRAINTS
from windlass.core.expression import nearest
from windlass.core.glob import Glob
from windlass.core.verdict import DEFAULT, Decision, Edge, OutputDecision, OutputVerdict, Verdict
from windlass.policy.content import content_failure, is_for
from windlass.policy.document import (
    AnyRule,
    InputRule,
    OutputRule,
    PolicyDocument,
    PolicyTest,
    PolicyTier,
    Rule,
    RuleMode,
)
from windlass.policy.facts import Facts
from windlass.policy.judge import judge
from windlass.policy.output import judge_output
from windlass.policy.reach import is_default_reachable, unreachable_rules
from windlass.policy.rules import (
    CompiledDocument,
    CompiledInputRule,
    CompiledOutputRule,
    Policy,
    compile_policy,
)
from windlass.policy.velocity import LABEL_PART, VelocityCheck
from windlass.policy.when import Undecided, compile_when

R = TypeVar("R", InputRule, OutputRule)

HINT_NAMES_MAX = 500

# An overlay is tested under a document that lets everything pass, so that only the overlay tightens.
ALLOW_ALL = PolicyDocument(default_decision=Decision.ALLOW)
# It is asked at no edge. A document without any rule would follow the topics of its tenants.
_INERT = Rule("windlass:inert", Decision.DENY, at=frozenset())


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test whose request got another verdict."""

    name: str
    line: int | None
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """Something that is wrong with the rules or their tests. `rule` is empty if it concerns no single rule."""

    kind: str
    message: str
    rule: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """The result of a document's tests."""

    passed: int
    failed: tuple[FailedTest, ...]
    problems: tuple[PolicyProblem, ...]

    @property
    def is_good(self) -> bool:
        """Return whether every test passed and nothing is wrong."""
        return not self.failed and not self.problems


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed rule, and whether a test noticed."""

    rule: str
    change: str
    is_noticed: bool
    line: int | None = None


@dataclass(frozen=True, slots=True)
class _Told:
    """What the judge told about a test's request."""

    verdict: Verdict | OutputVerdict
    would: frozenset[str]


def run_tests(
    document: PolicyDocument, *, others: Sequence[PolicyDocument] = (), topics: Collection[str] | None = None
) -> PolicyReport:
    """Run the tests of a document together with `others` that are in force. `topics` are all topics that exist."""
    policy = compile_policy([document, *_under(document, others)])
    told = [(test, _ask(policy, test)) for test in document.tests]
    failed = tuple(_failed(test, found) for test, found in told if not _is_met(test, found))
    problems = [
        *_unreachable(document),
        *_untested(document, [found for _, found in told]),
        *_unseen_topics(document, topics),
        *_unseen_labels(document),
    ]
    return PolicyReport(len(told) - len(failed), failed, tuple(problems))


def mutate(document: PolicyDocument, *, others: Sequence[PolicyDocument] = ()) -> list[Mutant]:
    """Change each rule in turn, and the default, and return whether a test noticed each change."""
    under = _under(document, others)
    policy = compile_policy([document, *under])
    compiled = policy.documents[0]
    touching: dict[str, list[PolicyTest]] = {}
    for test in document.tests:
        for name in _touched(policy, test):
            touching.setdefault(name, []).append(test)
    found = []
    for rule in _active(document):
        tests = touching.get(rule.id, [])
        for change, changed in _changes(rule):
            small = _only(document, compiled, tests, rule, changed)
            found.append(Mutant(rule.id, change, _is_noticed([small, *under], tests), rule.line))
    if document.default_decision is not None and is_default_reachable(document):
        tests = touching.get(DEFAULT, [])
        other = Decision.DENY if document.default_decision is Decision.ALLOW else Decision.ALLOW
        small = replace(_only(document, compiled, tests), default_decision=other)
        found.append(Mutant(DEFAULT, f"becomes {other}", _is_noticed([small, *under], tests)))
    return found


def _under(document: PolicyDocument, others: Sequence[PolicyDocument]) -> list[PolicyDocument]:
    has_global = any(one.tier is PolicyTier.GLOBAL for one in (document, *others))
    return [*others, *([] if has_global else [ALLOW_ALL])]


def _ask(policy: Policy, test: PolicyTest) -> _Told:
    question = test.question
    if question.edge is Edge.OUTPUT:
        output = judge_output(policy, question)
        return _Told(output.verdict, frozenset(one.rule for one in output.would))
    judgement = judge(policy, question)
    exceeded = {check.counter for check in judgement.checks if _is_exceeded(test, check)}
    return _Told(judgement.given(exceeded), frozenset(one.rule for one in judgement.would))


def _is_exceeded(test: PolicyTest, check: VelocityCheck) -> bool:
    return test.counts.get(check.rule, 0) >= check.limit.max_requests


def _is_met(test: PolicyTest, told: _Told) -> bool:
    expect = test.expect
    return (
        told.verdict.decision == expect.decision
        and (expect.rule is None or told.verdict.rule == expect.rule)
        and (expect.would is None or told.would == expect.would)
    )


def _failed(test: PolicyTest, told: _Told) -> FailedTest:
    expect = test.expect
    expected = str(expect.decision) + (f" by {expect.rule}" if expect.rule is not None else "")
    found = f"{told.verdict.decision} by {told.verdict.rule} ({told.verdict.reason})"
    if expect.would is not None and expect.would != told.would:
        expected += f", would: {_listed(expect.would)}"
        found += f", would: {_listed(told.would)}"
    return FailedTest(test.name or test.question.topic, test.line, expected, found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _active(document: PolicyDocument) -> Iterator[AnyRule]:
    yield from document.rules
    yield from (rule for rule in document.input_rules if rule.is_enabled)
    yield from (rule for rule in document.output_rules if rule.is_enabled)


def _unreachable(document: PolicyDocument) -> Iterator[PolicyProblem]:
    for one in unreachable_rules(document):
        message = f"rule {one.rule} is never reached: rule {one.by} matches everything that it matches"
        yield PolicyProblem("unreachable", message, one.rule, one.line)


def _untested(document: PolicyDocument, told: list[_Told]) -> Iterator[PolicyProblem]:
    shown = {found.verdict.rule for found in told}.union(*(found.would for found in told))
    hidden = {one.rule for one in unreachable_rules(document)}
    for rule in _active(document):
        if rule.id not in shown and rule.id not in hidden:
            wanted = "has it in `would`" if rule.mode is RuleMode.SHADOW else "is decided by it"
            yield PolicyProblem("untested", f"rule {rule.id} has no test: no request {wanted}", rule.id, rule.line)


def _unseen_topics(document: PolicyDocument, topics: Collection[str] | None) -> Iterator[PolicyProblem]:
    asked = {test.question.topic for test in document.tests}
    named = [(rule.id, rule.line, text) for rule in _active(document) for text in sorted(rule.match.topics)]
    named += [
        ("", None, text)
        for tenant in document.tenants.values()
        for text in sorted(tenant.allow_topics | tenant.deny_topics)
    ]
    tested, existing = _Topics(asked), _Topics(topics or ())
    for rule, line, text in named:
        if topics is not None and not existing.has(text):
            message = f"no recipe has a topic like {text}{_hint(text, topics)}"
            yield PolicyProblem("topic", message, rule, line)
        elif not tested.has(text):
            message = f"no test has a topic like {text}{_hint(text, asked)}"
            yield PolicyProblem("topic", message, rule, line)


def _hint(word: str, known: Collection[str]) -> str:
    """Return the nearest known name. Among very many names the search takes too long for each of many problems."""
    return "" if len(known) > HINT_NAMES_MAX else f": {nearest(word, known)}"


class _Topics:
    """Topics in order, so that only those with the prefix of a glob are compared with it."""

    def __init__(self, topics: Collection[str]) -> None:
        self._sorted = sorted(topics)

    def has(self, text: str) -> bool:
        """Return whether a glob matches one of the topics."""
        glob = Glob(text)
        for topic in self._sorted[bisect_left(self._sorted, glob.prefix) :]:
            if not topic.startswith(glob.prefix):
                return False
            if glob.matches(topic):
                return True
        return False


def _unseen_labels(document: PolicyDocument) -> Iterator[PolicyProblem]:
    seen = {name for test in document.tests for name in test.question.labels}
    for rule in document.rules:
        for name in sorted(_labels_of(rule) - seen):
            message = f"no test has the label {name} of rule {rule.id}{_hint(name, seen)}"
            yield PolicyProblem("label", message, rule.id, rule.line)


def _labels_of(rule: Rule) -> set[str]:
    match = rule.match
    names = {*match.labels, *match.label_allowlist, *match.label_threshold}
    if rule.velocity is not None:
        names |= {part.removeprefix(LABEL_PART) for part in rule.velocity.key if part.startswith(LABEL_PART)}
    if rule.when:
        names |= compile_when(rule.when).reads.labels or frozenset()
    return names


def _touched(policy: Policy, test: PolicyTest) -> set[str]:
    """Return the rules that matched a test's request, up to the deciding rule, and the default if it was reached."""
    facts = Facts(test.question, policy.default_tenant, policy.reads)
    exceeded = {check.rule for check in judge(policy, test.question).checks if _is_exceeded(test, check)}
    found: set[str] = set()
    for document in policy.applying(facts):
        found |= _matched(document, facts, exceeded)
        is_output = test.question.edge is Edge.OUTPUT
        for rule in document.output_rules if is_output else document.input_rules:
            if _content_matches(rule, facts):
                found.add(rule.rule.id)
                if rule.rule.mode is RuleMode.ENFORCE:
                    break
    return found


def _matched(document: CompiledDocument, facts: Facts, exceeded: set[str]) -> set[str]:
    found = set()
    for rule in document.candidates(facts.question.edge, facts.question.topic):
        try:
            is_match = all(holds(facts) for holds in rule.holds)
        except Undecided:
            is_match = True
        if is_match:
            found.add(rule.rule.id)
            if not rule.is_shadow and (rule.rule.velocity is None or rule.rule.id in exceeded):
                return found
    return found | {DEFAULT}


def _content_matches(rule: CompiledInputRule | CompiledOutputRule, facts: Facts) -> bool:
    try:
        return is_for(rule.globs, rule.conditions, facts) and content_failure(rule.rule.match, facts) is None
    except Undecided:
        return True


def _only(
    document: PolicyDocument,
    compiled: CompiledDocument,
    tests: list[PolicyTest],
    gone: AnyRule | None = None,
    instead: AnyRule | None = None,
) -> PolicyDocument:
    """Return the document with the rules that these tests can meet, and one rule replaced.

    For these tests the small document means the same, and it is compiled in no time.
    """
    kept = {rule.rule.id for test in tests for rule in compiled.candidates(test.question.edge, test.question.topic)}
    topics = {test.question.topic for test in tests}
    return replace(
        document,
        rules=(*_replaced([rule for rule in document.rules if rule.id in kept], gone, instead), _INERT),
        input_rules=tuple(_replaced(_for_topics(document.input_rules, topics), gone, instead)),
        output_rules=tuple(_replaced(_for_topics(document.output_rules, topics), gone, instead)),
        tests=(),
    )


def _for_topics(rules: Sequence[R], topics: set[str]) -> list[R]:
    return [
        rule
        for rule in rules
        if not rule.match.topics or any(Glob(text).matches(topic) for text in rule.match.topics for topic in topics)
    ]


def _replaced(rules: Sequence[Any], gone: AnyRule | None, instead: AnyRule | None) -> list[Any]:
    if gone is None:
        return list(rules)
    return [found for rule in rules if (found := instead if rule.id == gone.id else rule) is not None]


def _is_noticed(documents: list[PolicyDocument], tests: list[PolicyTest]) -> bool:
    policy = compile_policy(documents)
    return any(not _is_met(test, _ask(policy, test)) for test in tests)


def _changes(rule: AnyRule) -> Iterator[tuple[str, AnyRule | None]]:
    """Return the changes of a rule: it is gone, its decision is turned around, its constraints are gone."""
    yield "is dropped", None
    if rule.mode is RuleMode.SHADOW:
        # A test names the shadow rules that match, and not their decisions.
        return
    if isinstance(rule, OutputRule):
        other = OutputDecision.QUARANTINE if rule.decision is OutputDecision.ALLOW else OutputDecision.ALLOW
        yield f"becomes {other}", replace(rule, decision=other, is_reviewed=False)
    elif isinstance(rule, InputRule):
        turned = Decision.REQUIRE_APPROVAL if rule.decision is Decision.DENY else Decision.DENY
        yield f"becomes {turned}", replace(rule, decision=turned, approval=None)
    else:
        turned = Decision.DENY if rule.decision.admits else Decision.ALLOW
        plain = replace(rule, approval=None, constraints=NO_CONSTRAINTS)
        yield f"becomes {turned}", replace(plain, decision=turned)
        if rule.decision is Decision.ALLOW_WITH_CONSTRAINTS:
            yield "loses its constraints", replace(plain, decision=Decision.ALLOW)
