"""Documents about policies: verdicts, explanations, test reports and differences."""

from __future__ import annotations

from typing import Any

from windlass.core.verdict import ApprovalTerms, OutputVerdict, Remediation, VelocityLimit, Verdict, Voters
from windlass.policy.canonical import document_hash
from windlass.policy.diff import PolicyDiff
from windlass.policy.document import PolicyDocument
from windlass.policy.explain import Explanation
from windlass.policy.testing import Mutant, PolicyReport


def policy_values(document: PolicyDocument) -> dict[str, Any]:
    """Return the fields of the document that sums up a policy."""
    return {
        "version": document.version,
        "hash": document_hash(document),
        "tier": document.tier,
        "default_decision": document.default_decision,
        "rules": len(document.rules),
        "input_rules": len(document.input_rules),
        "output_rules": len(document.output_rules),
        "tests": len(document.tests),
    }


def policy_verdict_values(verdict: Verdict | OutputVerdict) -> dict[str, Any]:
    """Return the fields of the document of a verdict."""
    shared = {
        "decision": verdict.decision,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "rule_hash": verdict.rule_hash,
        "policy": verdict.policy,
        "tier": verdict.tier,
    }
    if isinstance(verdict, OutputVerdict):
        return {**shared, "severity": verdict.severity, "review": verdict.is_reviewed}
    return {
        **shared,
        "constraints": verdict.constraints.plain(),
        "enforced": {name: str(enforcer) for name, enforcer in verdict.constraints.enforced.items()},
        "approval": None if verdict.approval is None else approval_values(verdict.approval),
        "remediations": [_remediation(one) for one in verdict.remediations],
        "velocity": None if verdict.velocity is None else _velocity(verdict.velocity),
    }


def approval_values(terms: ApprovalTerms) -> dict[str, Any]:
    """Return the fields of the document of an approval's terms. A voter belongs to every group of `who`."""
    return {"need": terms.need, "who": [_voters(group) for group in terms.who], "expires_s": terms.expires_s}


def explanation_values(told: Explanation) -> dict[str, Any]:
    """Return the fields of the document that explains a verdict."""
    return {
        "verdict": policy_verdict_values(told.verdict),
        "would": [policy_verdict_values(one) for one in told.would],
        "documents": [
            {
                "tier": document.tier,
                "mismatch": document.mismatch,
                "rules": [
                    {"rule": one.rule, "fate": one.fate, "condition": one.condition, "detail": one.detail}
                    for one in document.rules
                ],
            }
            for document in told.documents
        ],
    }


def report_values(report: PolicyReport, mutants: list[Mutant] | None) -> dict[str, Any]:
    """Return the fields of the document of a test report. `mutants` is null if no rule was changed."""
    survivors = [] if mutants is None else [one for one in mutants if not one.is_noticed]
    return {
        "is_good": report.is_good and not survivors,
        "passed": report.passed,
        "failed": [
            {"name": one.name, "line": one.line, "expected": one.expected, "found": one.found} for one in report.failed
        ],
        "problems": [
            {"kind": one.kind, "rule": one.rule, "line": one.line, "message": one.message} for one in report.problems
        ],
        "mutants": None
        if mutants is None
        else {
            "tried": len(mutants),
            "unnoticed": [{"rule": one.rule, "line": one.line, "change": one.change} for one in survivors],
        },
    }


def diff_values(found: PolicyDiff) -> dict[str, Any]:
    """Return the fields of the document of the differences between two policies."""
    return {
        "is_equal": found.is_equal,
        "before": found.before,
        "after": found.after,
        "changes": [{"kind": one.kind, "place": one.place, "detail": one.detail} for one in found.changes],
        "verdicts": [
            {
                "name": one.name,
                "topic": one.topic,
                "before": one.before,
                "after": one.after,
                "is_looser": one.is_looser,
            }
            for one in found.verdicts
        ],
    }


def _voters(group: Voters) -> dict[str, Any]:
    return {
        "roles": sorted(group.roles),
        "callers": sorted(group.callers),
        "escalate_after_s": group.escalate_after_s,
        "escalate_roles": sorted(group.escalate_roles),
        "escalate_callers": sorted(group.escalate_callers),
    }


def _remediation(one: Remediation) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": one.title,
        "summary": one.summary,
        "replacement_topic": one.replacement_topic,
        "replacement_capability": one.replacement_capability,
        "add_labels": dict(one.add_labels),
        "remove_labels": list(one.remove_labels),
    }


def _velocity(limit: VelocityLimit) -> dict[str, Any]:
    return {"max_requests": limit.max_requests, "window_seconds": limit.window_s, "key": ":".join(limit.key)}
