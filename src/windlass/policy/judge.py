"""Judges a question: the verdict of a policy about a job at one edge.

    question ─► documents that apply ─► in each: the first rule that matches, else its default
                                              │ tenants' limits, then rules about the content of inputs
                                              ▼
                                        strictest of all documents

The judge is total: it never raises. No policy, a bad topic, a condition that cannot be decided and any fault deny.

**Velocity.** A rule with a velocity limit fires past its limit only, and only the commit of the job knows the count.
So such a rule does not end the search. A `Judgement` has the checks that the commit takes, and `given` returns the
verdict once it is known which limits are exceeded. A request that is refused is not counted: see `counted`.

**Shadow rules** that match before the deciding rule are listed in `would`. They change nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.verdict import (
    BAD_TOPIC,
    FAULT,
    NO_POLICY,
    NO_RULE,
    ApprovalTerms,
    Decision,
    Edge,
    Verdict,
    denied,
    strictest,
)
from windlass.policy.content import ScanWants, content_failure, counted, is_for, strongest, wants_of
from windlass.policy.document import RuleMode
from windlass.policy.facts import Facts
from windlass.policy.keys import SEVERITIES
from windlass.policy.match import mcp_failure
from windlass.policy.question import TOPIC_CHARS_MAX, TOPIC_PREFIX, Question
from windlass.policy.rules import DEFAULT_EDGES, CompiledDocument, CompiledInputRule, CompiledRule, Policy, constrained
from windlass.policy.velocity import VelocityCheck, VelocityCounts, check_of
from windlass.policy.when import Undecided

_log = logging.getLogger("windlass.policy")


@dataclass(frozen=True, slots=True)
class Branch:
    """The answer of one document: the verdict of the first exceeded check, else the last verdict, if it has one."""

    checks: tuple[tuple[VelocityCheck, Verdict], ...]
    last: Verdict | None

    def given(self, exceeded: Collection[str]) -> Verdict | None:
        """Return the verdict if the limits of these counters are exceeded."""
        return next((verdict for check, verdict in self.checks if check.counter in exceeded), self.last)

    def reached(self, exceeded: Collection[str]) -> list[VelocityCheck]:
        """Return the checks that were passed before the verdict."""
        found = []
        for check, _ in self.checks:
            if check.counter in exceeded:
                break
            found.append(check)
        return found


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, the velocity checks on which it depends, and the verdicts of shadow rules."""

    # The verdict if no velocity limit is exceeded.
    verdict: Verdict
    branches: tuple[Branch, ...] = ()
    would: tuple[Verdict, ...] = ()

    @property
    def checks(self) -> tuple[VelocityCheck, ...]:
        """The velocity checks that the commit of the job takes, in order."""
        return tuple(check for branch in self.branches for check, _ in branch.checks)

    def given(self, exceeded: Collection[str]) -> Verdict:
        """Return the verdict if the limits of these counters are exceeded."""
        if not exceeded:
            return self.verdict
        found = [verdict for branch in self.branches if (verdict := branch.given(exceeded)) is not None]
        return strictest(found) if found else self.verdict

    def counted(self, exceeded: Collection[str]) -> tuple[VelocityCheck, ...]:
        """Return the checks under which the request counts. A request that does not pass counts nowhere."""
        if not self.given(exceeded).decision.admits:
            return ()
        return tuple(check for branch in self.branches for check in branch.reached(exceeded))


def joined(judgement: Judgement, verdict: Verdict) -> Judgement:
    """Return a judgement that is never more lenient than this verdict of a kernel."""
    branches = (*judgement.branches, Branch((), verdict)) if judgement.branches else ()
    return Judgement(strictest([judgement.verdict, verdict]), branches, judgement.would)


def judge(policy: Policy | None, question: Question) -> Judgement:
    """Judge a question at any edge but output. It never raises: a fault denies."""
    try:
        return _judge(policy, question)
    except Exception as error:
        # The reason is for the caller, so it has no more than the kind of the error.
        _log.exception("a policy could not be evaluated, so a request was denied")
        return Judgement(denied(FAULT, f"the policy could not be evaluated: {type(error).__name__}", _hash(policy)))


def simulate(policy: Policy | None, question: Question, counts: VelocityCounts) -> Verdict:
    """Judge a question as if it were submitted now. Requests are counted, and nothing is recorded."""
    judgement = judge(policy, question)
    try:
        exceeded = {check.counter for check in judgement.checks if counts.count(check) >= check.limit.max_requests}
    except Exception as error:
        _log.exception("requests could not be counted, so a simulated request was denied")
        return denied(FAULT, f"requests could not be counted: {type(error).__name__}", _hash(policy))
    return judgement.given(exceeded)


def scan_wants(policy: Policy, question: Question) -> ScanWants:
    """Return what must be known about the content before this question can be judged."""
    facts = Facts(question, policy.default_tenant, policy.reads)
    wants = ScanWants()
    for document in policy.applying(facts):
        rules = document.output_rules if question.edge is Edge.OUTPUT else document.input_rules
        for rule in rules:
            if is_for(rule.globs, rule.conditions, facts):
                wants |= wants_of(rule.rule.match)
    return wants


def hard_fault(policy: Policy | None, question: Question) -> tuple[str, str] | None:
    """Return the rule and the reason of a refusal that no document can lift, or None."""
    if policy is None or not policy.is_loaded:
        return NO_POLICY, "no policy is in force"
    topic = question.topic
    if not topic.startswith(TOPIC_PREFIX) or not len(TOPIC_PREFIX) < len(topic) <= TOPIC_CHARS_MAX:
        return BAD_TOPIC, f"a topic begins with `{TOPIC_PREFIX}` and has at most {TOPIC_CHARS_MAX:,} characters"
    return None


def undecided(rule: CompiledRule, error: Undecided) -> Verdict:
    """Return the refusal for a rule whose condition cannot be decided."""
    return replace(
        rule.verdict,
        decision=Decision.DENY,
        reason=f"rule {rule.rule.id} cannot be decided: {error}",
        constraints=NO_CONSTRAINTS,
        approval=None,
        velocity=None,
    )


def _judge(policy: Policy | None, question: Question) -> Judgement:
    if (fault := hard_fault(policy, question)) is not None or policy is None:
        rule, reason = fault or (NO_POLICY, "no policy is in force")
        return Judgement(denied(rule, reason, _hash(policy)))
    if question.edge is Edge.OUTPUT:
        return Judgement(denied(FAULT, "outputs are judged by output rules", policy.hash))
    facts = Facts(question, policy.default_tenant, policy.reads)
    would: list[Verdict] = []
    branches = tuple([_branch(document, facts, would) for document in policy.applying(facts)])
    found = [branch.last for branch in branches if branch.last is not None]
    verdict = strictest(found) if found else Verdict(Decision.ALLOW, NO_RULE, "no rule is asked", policy=policy.hash)
    has_checks = any(branch.checks for branch in branches)
    return Judgement(verdict, branches if has_checks else (), tuple(would))


def _branch(document: CompiledDocument, facts: Facts, would: list[Verdict]) -> Branch:
    edge = facts.question.edge
    checks: list[tuple[VelocityCheck, Verdict]] = []
    last = document.default if edge in DEFAULT_EDGES else None
    for rule in document.candidates(edge, facts.question.topic):
        try:
            for holds in rule.holds:
                if not holds(facts):
                    break
            else:
                if rule.is_shadow:
                    would.append(rule.verdict)
                elif rule.rule.velocity is not None:
                    check = check_of(document.scope, rule.rule.id, rule.rule.velocity, facts)
                    checks.append((check, rule.verdict))
                else:
                    last = rule.verdict
                    break
        except Undecided as error:
            if not rule.is_shadow:
                last = undecided(rule, error)
                break
            would.append(undecided(rule, error))
    if not document.document.tenants and not document.input_rules:
        return Branch(tuple(checks), last)
    return _Checks(document, facts, would).applied(checks, last)


class _Checks:
    """The checks of a document beside its rules: the limits of the tenant, and the content of the inputs."""

    def __init__(self, document: CompiledDocument, facts: Facts, would: list[Verdict]) -> None:
        self._document = document
        self._facts = facts
        self._would = would
        self._edge = facts.question.edge

    def applied(self, checks: list[tuple[VelocityCheck, Verdict]], last: Verdict | None) -> Branch:
        """Return the branch with every verdict tightened."""
        refusal, limits = self._tenant()
        verdicts = [verdict for _, verdict in checks] + ([] if last is None else [last])
        # Without a verdict the request passes, so its content is looked at too.
        admits = last is None or any(verdict.decision.admits for verdict in verdicts)
        content = self._content() if admits else None

        def tightened(verdict: Verdict) -> Verdict:
            found = [constrained(verdict, limits), *([] if refusal is None else [refusal])]
            if content is not None and verdict.decision.admits:
                found.append(content)
            return strictest(found)

        return Branch(
            tuple((check, tightened(verdict)) for check, verdict in checks),
            content if last is None else tightened(last),
        )

    def _tenant(self) -> tuple[Verdict | None, Constraints]:
        tenant = self._document.tenant(self._facts)
        if tenant is None or self._edge not in DEFAULT_EDGES:
            return None, NO_CONSTRAINTS
        limits = NO_CONSTRAINTS
        if tenant.max_concurrent_jobs is not None:
            limits = Constraints(max_concurrent_jobs=tenant.max_concurrent_jobs)
        name = f"tenant:{self._facts.tenant}"
        failure = None if tenant.mcp is None else mcp_failure(tenant.mcp, self._facts.mcp)
        if failure is not None:
            return self._document.verdict(Decision.DENY, f"{name}:mcp", failure), limits
        if (tenant.allowed_repo_hosts or tenant.denied_repo_hosts) and (failure := self._repo_failure()) is not None:
            return self._document.verdict(Decision.DENY, f"{name}:repo_host", failure), limits
        return None, limits

    def _repo_failure(self) -> str | None:
        tenant = self._document.tenant(self._facts)
        try:
            host = self._facts.repo_host
        except Undecided as error:
            return str(error)
        if tenant is None or not host:
            return None
        if host in {name.casefold() for name in tenant.denied_repo_hosts}:
            return f"the repository host {host} is denied"
        allowed = {name.casefold() for name in tenant.allowed_repo_hosts}
        return f"the repository host {host} is not allowed" if allowed and host not in allowed else None

    def _content(self) -> Verdict | None:
        """Return the verdict of the first rule about content that matches, or None."""
        is_asked = self._edge in DEFAULT_EDGES or (
            self._edge is Edge.PROVIDER and self._facts.question.content is not None
        )
        for rule in self._document.input_rules if is_asked else ():
            if not is_for(rule.globs, rule.conditions, self._facts):
                continue
            try:
                if content_failure(rule.rule.match, self._facts) is not None:
                    continue
                verdict = self._downgraded(rule)
            except Undecided as error:
                if self._document.document.input_policy.fail_mode == "open":
                    continue
                verdict = replace(rule.verdict, reason=f"rule {rule.rule.id} cannot be decided: {error}")
            if rule.rule.mode is RuleMode.SHADOW:
                self._would.append(verdict)
                continue
            return verdict
        return None

    def _downgraded(self, rule: CompiledInputRule) -> Verdict:
        """Return the verdict of a rule; a refusal because of a weak finding becomes an approval."""
        human = self._document.document.require_human
        if human is None or rule.verdict.decision is not Decision.DENY:
            return rule.verdict
        question = self._facts.question
        findings = [] if question.content is None else counted(rule.rule.match, question.content)
        severity, confidence = strongest(findings) if findings else (len(SEVERITIES), 1.0)
        least = SEVERITIES.index(human.min_severity_for_deny) if human.min_severity_for_deny else 0
        is_weak = (
            min(severity, SEVERITIES.index(rule.rule.severity)) < least
            or confidence < human.min_confidence_for_deny
            or (human.downgrade_when_prompt_only and not question.host and self._facts.mcp is None)
        )
        if not is_weak:
            return rule.verdict
        reason = f"{rule.verdict.reason}; a person decides about weak findings"
        return replace(rule.verdict, decision=Decision.REQUIRE_APPROVAL, approval=ApprovalTerms(), reason=reason)


def _hash(policy: Policy | None) -> str:
    return "" if policy is None else policy.hash
