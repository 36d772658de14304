"""Judges an output by what scanners say about its content: the first output rule that matches decides.

Like the judge of requests it never raises. No policy, a scanner that did not answer and any fault quarantine, unless
the document's fail mode is open.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from windlass.core.verdict import FAULT, NO_POLICY, NO_RULE, OutputDecision, OutputVerdict, strictest_output
from windlass.policy.content import content_failure, is_for
from windlass.policy.document import RuleMode
from windlass.policy.facts import Facts
from windlass.policy.judge import hard_fault
from windlass.policy.question import Question
from windlass.policy.rules import CompiledDocument, Policy
from windlass.policy.when import Undecided

_log = logging.getLogger("windlass.policy")


@dataclass(frozen=True, slots=True)
class OutputJudgement:
    """A verdict about an output, and the verdicts of shadow rules. `undecided` are reasons to scan again."""

    verdict: OutputVerdict
    would: tuple[OutputVerdict, ...] = ()
    undecided: tuple[str, ...] = ()


def judge_output(policy: Policy | None, question: Question) -> OutputJudgement:
    """Judge an output by what is known about its content. It never raises: a fault quarantines."""
    try:
        return _judge_output(policy, question)
    except Exception as error:
        _log.exception("a policy could not be evaluated, so an output was quarantined")
        reason = f"the policy could not be evaluated: {type(error).__name__}"
        return OutputJudgement(_quarantined(FAULT, reason, _hash(policy)))


def _judge_output(policy: Policy | None, question: Question) -> OutputJudgement:
    if (fault := hard_fault(policy, question)) is not None or policy is None:
        rule, reason = fault or (NO_POLICY, "no policy is in force")
        return OutputJudgement(_quarantined(rule, reason, _hash(policy)))
    facts = Facts(question, policy.default_tenant, policy.reads)
    would: list[OutputVerdict] = []
    reasons: list[str] = []
    found = [_output_verdict(document, facts, would, reasons) for document in policy.applying(facts)]
    return OutputJudgement(strictest_output(found), tuple(would), tuple(reasons))


def _output_verdict(
    document: CompiledDocument, facts: Facts, would: list[OutputVerdict], reasons: list[str]
) -> OutputVerdict:
    for rule in document.output_rules:
        if not is_for(rule.globs, rule.conditions, facts):
            continue
        verdict = rule.verdict
        try:
            if content_failure(rule.rule.match, facts) is not None:
                continue
        except Undecided as error:
            if document.document.output_policy.fail_mode == "open":
                continue
            reason = f"rule {rule.rule.id} cannot be decided: {error}"
            verdict = replace(verdict, decision=OutputDecision.QUARANTINE, reason=reason)
            if rule.rule.mode is not RuleMode.SHADOW:
                reasons.append(str(error))
        if rule.rule.mode is RuleMode.SHADOW:
            would.append(verdict)
            continue
        return verdict
    return OutputVerdict(OutputDecision.ALLOW, NO_RULE, "no output rule matches", policy=document.policy)


def _quarantined(rule: str, reason: str, policy: str) -> OutputVerdict:
    return OutputVerdict(OutputDecision.QUARANTINE, rule, reason, policy=policy)


def _hash(policy: Policy | None) -> str:
    return "" if policy is None else policy.hash
