"""Compiles documents into a `Policy`: rules by topic, their conditions, and the verdict that each rule gives.

    PolicyDocument ─► CompiledDocument   rules by edge and topic, tenants, defaults
    several of them ─► Policy            documents by tier and selector, one hash

A policy never changes after it was made, so threads may share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.glob import Glob
from windlass.core.verdict import DEFAULT, Decision, Edge, OutputVerdict, Verdict
from windlass.policy.canonical import document_hash, joined_hash, rule_hash
from windlass.policy.document import (
    InputRule,
    Match,
    OutputRule,
    PolicyDocument,
    PolicyTier,
    Rule,
    RuleMode,
    TenantPolicy,
)
from windlass.policy.facts import Facts
from windlass.policy.match import Condition, Holds, conditions_of, content_conditions_of, globs_of
from windlass.policy.question import fold
from windlass.policy.topic_index import TopicIndex
from windlass.policy.when import Reads, compile_when

# A claim asks the question of the submit again.
_ASKED_AT = {Edge.CLAIM: frozenset({Edge.SUBMIT, Edge.CLAIM})}
# At these edges a document says something about every request; at the others only its rules do.
DEFAULT_EDGES = frozenset({Edge.SUBMIT, Edge.CLAIM})


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule with its tests and its verdict."""

    rule: Rule
    verdict: Verdict
    globs: tuple[Glob, ...]
    conditions: tuple[Condition, ...]
    holds: tuple[Holds, ...]
    reads: Reads
    is_shadow: bool

    def asked_at(self, edge: Edge) -> bool:
        """Return whether the rule is asked at this edge."""
        if edge is Edge.CLAIM and self.rule.velocity is not None:
            # The submit has counted the request already.
            return False
        return not self.rule.at.isdisjoint(_ASKED_AT.get(edge, frozenset({edge})))


@dataclass(frozen=True, slots=True)
class CompiledInputRule:
    """A rule about the content of inputs, with its verdict."""

    rule: InputRule
    verdict: Verdict
    globs: tuple[Glob, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class CompiledOutputRule:
    """A rule about the content of outputs, with its verdict."""

    rule: OutputRule
    verdict: OutputVerdict
    globs: tuple[Glob, ...]
    conditions: tuple[Condition, ...]


class CompiledDocument:
    """A document, ready to judge by."""

    def __init__(self, document: PolicyDocument, policy: str) -> None:
        self.document = document
        self.policy = policy
        self.tier = document.tier
        rules = document.rules or tuple(tenant_rules(document))
        self.rules = tuple(self._compiled(rule) for rule in rules)
        self.input_rules = tuple(
            self._compiled_input(rule)
            for rule in document.input_rules
            if rule.is_enabled and document.input_policy.is_enabled
        )
        self.output_rules = tuple(
            self._compiled_output(rule)
            for rule in document.output_rules
            if rule.is_enabled and document.output_policy.is_enabled
        )
        self._by_edge = {edge: self._index(edge) for edge in Edge}
        self.default = self._default()

    @property
    def scope(self) -> str:
        """The tier and the selector as text: a prefix for counters, so that documents do not share them."""
        selector = self.document.selector
        parts = (selector.tenant_id, selector.workflow_id, selector.job_id, selector.session_id)
        return "/".join((self.tier, *(part.replace("/", "%2F") for part in parts if part)))

    def candidates(self, edge: Edge, topic: str) -> tuple[CompiledRule, ...]:
        """Return the rules for an edge and a topic, in order."""
        return self._by_edge[edge].find(topic)

    def applies_to(self, facts: Facts) -> bool:
        """Return whether the selector chooses the request."""
        return self.mismatch(facts) is None

    def mismatch(self, facts: Facts) -> str | None:
        """Return the part of the selector that does not choose the request, or None."""
        selector, question = self.document.selector, facts.question
        if selector.tenant_id and selector.tenant_id != facts.tenant:
            return "tenant_id"
        if selector.workflow_id and selector.workflow_id != fold(question.recipe):
            return "workflow_id"
        if selector.job_id and selector.job_id != fold(question.job_id):
            return "job_id"
        if selector.session_id and selector.session_id != fold(question.labels.get("session_id", "")):
            return "session_id"
        return None

    def tenant(self, facts: Facts) -> TenantPolicy | None:
        """Return the limits of the request's tenant."""
        return self.document.tenants.get(facts.tenant)

    def verdict(self, decision: Decision, rule: str, reason: str) -> Verdict:
        """Return a verdict of this document that belongs to no rule."""
        return Verdict(decision, rule, reason, policy=self.policy, tier=self.tier)

    def _default(self) -> Verdict | None:
        decision = self.document.default_decision
        if decision is None:
            return None
        return self.verdict(decision, DEFAULT, f"no rule matches, and the default is {decision}")

    def _index(self, edge: Edge) -> TopicIndex[CompiledRule]:
        rules = tuple(rule for rule in self.rules if rule.asked_at(edge))
        return TopicIndex(rules, [rule.globs for rule in rules])

    def _compiled(self, rule: Rule) -> CompiledRule:
        verdict = Verdict(
            rule.decision,
            rule.id,
            rule.reason or f"rule {rule.id}",
            rule_hash(rule),
            self.policy,
            self.tier,
            rule.constraints,
            rule.approval,
            rule.remediations,
            rule.velocity,
        )
        when = compile_when(rule.when) if rule.when else None
        conditions = conditions_of(rule.match, when)
        return CompiledRule(
            rule,
            verdict,
            globs_of(rule.match.topics),
            conditions,
            tuple(condition.holds for condition in conditions),
            Reads() if when is None else when.reads,
            rule.mode is RuleMode.SHADOW,
        )

    def _compiled_input(self, rule: InputRule) -> CompiledInputRule:
        verdict = Verdict(
            rule.decision,
            rule.id,
            rule.reason or rule.description or f"rule {rule.id}",
            rule_hash(rule),
            self.policy,
            self.tier,
            approval=rule.approval,
        )
        return CompiledInputRule(rule, verdict, globs_of(rule.match.topics), content_conditions_of(rule.match))

    def _compiled_output(self, rule: OutputRule) -> CompiledOutputRule:
        verdict = OutputVerdict(
            rule.decision,
            rule.id,
            rule.reason or rule.description or f"rule {rule.id}",
            rule_hash(rule),
            self.policy,
            self.tier,
            rule.severity,
            rule.is_reviewed,
        )
        return CompiledOutputRule(rule, verdict, globs_of(rule.match.topics), content_conditions_of(rule.match))


class Policy:
    """All documents that are in force together."""

    def __init__(self, documents: Sequence[PolicyDocument]) -> None:
        hashes = [document_hash(document) for document in documents]
        self.hash = joined_hash(hashes) if hashes else ""
        self.documents = tuple(CompiledDocument(document, self.hash) for document in documents)
        self._global = tuple(one for one in self.documents if one.tier is PolicyTier.GLOBAL)
        self._tenants: dict[str, list[CompiledDocument]] = {}
        self._workflows: dict[str, list[CompiledDocument]] = {}
        self._others: list[CompiledDocument] = []
        for one in self.documents:
            selector = one.document.selector
            if one.tier is PolicyTier.TENANT:
                self._tenants.setdefault(selector.tenant_id, []).append(one)
            elif one.tier is PolicyTier.WORKFLOW:
                self._workflows.setdefault(selector.workflow_id, []).append(one)
            elif one.tier is PolicyTier.JOB:
                self._others.append(one)
        self.default_tenant = next((one.document.default_tenant for one in self._global), "default")
        self.reads = _reads(self.documents)

    @property
    def is_loaded(self) -> bool:
        """Return whether a document of the global tier is in force. Without one, every request is denied."""
        return bool(self._global)

    @property
    def is_fail_open(self) -> bool:
        """Return whether every global document lets requests pass while a kernel is silent."""
        return self.is_loaded and all(one.document.input_policy.fail_mode == "open" for one in self._global)

    def applying(self, facts: Facts) -> Sequence[CompiledDocument]:
        """Return the documents that apply to a request, from the highest tier to the lowest."""
        if len(self._global) == len(self.documents):
            return self._global
        lower = [
            *self._tenants.get(facts.tenant, ()),
            *self._workflows.get(fold(facts.question.recipe), ()),
            *self._others,
        ]
        return [*self._global, *(one for one in lower if one.applies_to(facts))]

    def is_asked(self, edge: Edge, topic: str) -> bool:
        """Return whether a rule or a default may say something at this edge about this topic.

        The plan of a job is checked with it once: only steps for which it is true need a verdict at dispatch.
        """
        if edge in DEFAULT_EDGES:
            return True
        return any(one.candidates(edge, topic) or (edge is Edge.PROVIDER and one.input_rules) for one in self.documents)


def compile_policy(documents: PolicyDocument | Sequence[PolicyDocument]) -> Policy:
    """Compile documents that are in force together."""
    return Policy([documents] if isinstance(documents, PolicyDocument) else documents)


def tenant_rules(document: PolicyDocument) -> Iterable[Rule]:
    """Return the topics of tenants as rules, for a document that has no rules: denied topics before allowed ones."""
    for name, tenant in sorted(document.tenants.items()):
        for word, decision, topics in (
            ("deny", Decision.DENY, tenant.deny_topics),
            ("allow", Decision.ALLOW, tenant.allow_topics),
        ):
            for no, topic in enumerate(sorted(topics), 1):
                yield Rule(
                    f"tenant:{name}:{word}:{no}",
                    decision,
                    match=Match(topics=frozenset({topic}), tenants=frozenset({name})),
                    reason=f"the topics of tenant {name} {word} {topic}",
                )


def constrained(verdict: Verdict, constraints: Constraints) -> Verdict:
    """Return a verdict with further constraints."""
    both = verdict.constraints.meet(constraints)
    if both == NO_CONSTRAINTS or both == verdict.constraints:
        return verdict
    decision = verdict.decision
    if decision is Decision.ALLOW:
        decision = Decision.ALLOW_WITH_CONSTRAINTS
    return replace(verdict, decision=decision, constraints=both)


def _reads(documents: Iterable[CompiledDocument]) -> Reads:
    """Return the values that conditions of the documents read."""
    reads = Reads()
    for found in dict.fromkeys(rule.reads for one in documents for rule in one.rules):
        reads |= found
    return reads
