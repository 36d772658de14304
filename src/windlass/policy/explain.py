"""Explains a verdict: for each rule of each document, what came of it, and its first condition that failed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from windlass.core.glob import Glob
from windlass.core.verdict import Edge, OutputVerdict, Verdict
from windlass.policy.content import content_failure
from windlass.policy.document import RuleMode
from windlass.policy.facts import Facts
from windlass.policy.judge import hard_fault, judge
from windlass.policy.match import Condition
from windlass.policy.output import judge_output
from windlass.policy.question import Question
from windlass.policy.rules import CompiledDocument, CompiledInputRule, CompiledOutputRule, CompiledRule, Policy
from windlass.policy.velocity import check_of
from windlass.policy.when import Undecided


class RuleFate(StrEnum):
    """What came of a rule."""

    DECIDES = "decides"
    # A shadow rule that matches before the deciding rule.
    WOULD = "would decide"
    # A rule with a velocity limit that is not exceeded.
    COUNTS = "counts"
    FAILS = "fails"
    UNDECIDED = "cannot be decided"
    # An earlier rule decides.
    NOT_REACHED = "not reached"


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """One rule: what came of it, the condition that failed, and why."""

    rule: str
    fate: RuleFate
    condition: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DocumentTrace:
    """One document: its rules in order, or the part of its selector that does not choose the request."""

    tier: str
    mismatch: str | None
    rules: tuple[RuleTrace, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict with all that led to it."""

    verdict: Verdict | OutputVerdict
    would: tuple[Verdict | OutputVerdict, ...]
    documents: tuple[DocumentTrace, ...]


def explain(policy: Policy | None, question: Question, exceeded: Collection[str] = ()) -> Explanation:
    """Explain the verdict about a question. `exceeded` are the counters whose velocity limits are exceeded."""
    verdict: Verdict | OutputVerdict
    would: tuple[Verdict | OutputVerdict, ...]
    if question.edge is Edge.OUTPUT:
        output = judge_output(policy, question)
        verdict, would = output.verdict, output.would
    else:
        judgement = judge(policy, question)
        verdict, would = judgement.given(exceeded), judgement.would
    if policy is None or hard_fault(policy, question) is not None:
        return Explanation(verdict, would, ())
    facts = Facts(question, policy.default_tenant, policy.reads)
    return Explanation(verdict, would, tuple(_document(one, facts, exceeded) for one in policy.documents))


def _document(document: CompiledDocument, facts: Facts, exceeded: Collection[str]) -> DocumentTrace:
    mismatch = document.mismatch(facts)
    if mismatch is not None:
        return DocumentTrace(document.tier, mismatch)
    trace = _Trace(document, facts, exceeded)
    if facts.question.edge is Edge.OUTPUT:
        return DocumentTrace(document.tier, None, trace.content(document.output_rules))
    return DocumentTrace(document.tier, None, (*trace.rules(), *trace.content(document.input_rules)))


class _Trace:
    """Walks through the rules of a document in order."""

    def __init__(self, document: CompiledDocument, facts: Facts, exceeded: Collection[str]) -> None:
        self._document = document
        self._facts = facts
        self._exceeded = exceeded
        self._is_decided = False
        # Rules about inputs are asked only about a request that the other rules let pass.
        default = document.default
        self._admits = default is None or default.decision.admits

    def rules(self) -> tuple[RuleTrace, ...]:
        """Return what came of the rules about requests."""
        found = tuple(self._rule(rule) for rule in self._document.rules)
        self._is_decided = not self._admits
        return found

    def content(self, rules: tuple[CompiledInputRule | CompiledOutputRule, ...]) -> tuple[RuleTrace, ...]:
        """Return what came of the rules about content."""
        return tuple(self._content_rule(rule) for rule in rules)

    def _rule(self, rule: CompiledRule) -> RuleTrace:
        name = rule.rule.id
        if self._is_decided:
            return RuleTrace(name, RuleFate.NOT_REACHED)
        edge = self._facts.question.edge
        if not rule.asked_at(edge):
            return RuleTrace(name, RuleFate.FAILS, "at", f"it is not asked at {edge}")
        failed = self._topic(name, rule.globs) or self._condition(name, rule.conditions)
        if failed is not None:
            if failed.fate is RuleFate.UNDECIDED and not rule.is_shadow:
                self._is_decided, self._admits = True, False
            return failed
        if rule.is_shadow:
            return RuleTrace(name, RuleFate.WOULD, detail=str(rule.rule.decision))
        if rule.rule.velocity is not None:
            check = check_of(self._document.scope, name, rule.rule.velocity, self._facts)
            if check.counter not in self._exceeded:
                limit = check.limit
                detail = f"fires past {limit.max_requests:,} requests in {limit.window_s:,} s"
                return RuleTrace(name, RuleFate.COUNTS, "velocity", detail)
        self._is_decided, self._admits = True, rule.rule.decision.admits
        return RuleTrace(name, RuleFate.DECIDES, detail=str(rule.rule.decision))

    def _content_rule(self, rule: CompiledInputRule | CompiledOutputRule) -> RuleTrace:
        name = rule.rule.id
        if self._is_decided:
            return RuleTrace(name, RuleFate.NOT_REACHED)
        failed = self._topic(name, rule.globs) or self._condition(name, rule.conditions)
        if failed is not None:
            return failed
        is_shadow = rule.rule.mode is RuleMode.SHADOW
        try:
            failure = content_failure(rule.rule.match, self._facts)
        except Undecided as error:
            self._is_decided = not is_shadow
            return RuleTrace(name, RuleFate.UNDECIDED, "content", str(error))
        if failure is not None:
            return RuleTrace(name, RuleFate.FAILS, "content", failure)
        self._is_decided = not is_shadow
        return RuleTrace(name, RuleFate.WOULD if is_shadow else RuleFate.DECIDES, detail=str(rule.rule.decision))

    def _topic(self, name: str, globs: tuple[Glob, ...]) -> RuleTrace | None:
        topic = self._facts.question.topic
        if not globs or any(glob.matches(topic) for glob in globs):
            return None
        wanted = ", ".join(glob.text for glob in globs[:8])
        return RuleTrace(name, RuleFate.FAILS, "topics", f"{topic!r} is not matched by {wanted}")

    def _condition(self, name: str, conditions: tuple[Condition, ...]) -> RuleTrace | None:
        for condition in conditions:
            try:
                if not condition.holds(self._facts):
                    return RuleTrace(name, RuleFate.FAILS, condition.name, condition.failure(self._facts))
            except Undecided as error:
                return RuleTrace(name, RuleFate.UNDECIDED, condition.name, str(error))
        return None
