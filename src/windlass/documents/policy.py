"""Documents about policies: verdicts, explanations, test reports and differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windlass.core.verdict import (
    ApprovalTerms,
    Decision,
    Edge,
    OutputVerdict,
    Remediation,
    VelocityLimit,
    Verdict,
    Voters,
)
from windlass.engine.policies import Current, PolicyHead, PolicyVersion
from windlass.engine.publish import Published
from windlass.engine.replay import PolicyReplay
from windlass.engine.shadows import ShadowCount, ShadowExample
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
    """Return the fields of the document of a verdict. Only a verdict about an output has a severity and a review."""
    shared = {
        "decision": verdict.decision,
        "rule_id": verdict.rule,
        "reason": verdict.reason,
        "rule_hash": verdict.rule_hash,
        "snapshot": verdict.policy,
        "tier": verdict.tier,
    }
    if isinstance(verdict, OutputVerdict):
        nothing: dict[str, Any] = {
            "constraints": {},
            "enforced": {},
            "approval": None,
            "remediations": [],
            "velocity": None,
        }
        return {**shared, **nothing, "severity": verdict.severity, "review": verdict.is_reviewed}
    return {
        **shared,
        "constraints": verdict.constraints.plain(),
        "enforced": {name: str(enforcer) for name, enforcer in verdict.constraints.enforced.items()},
        "approval": None if verdict.approval is None else approval_values(verdict.approval),
        "remediations": [_remediation(one) for one in verdict.remediations],
        "velocity": None if verdict.velocity is None else _velocity(verdict.velocity),
        "severity": None,
        "review": None,
    }


def answer_values(
    no: int, verdict: Verdict | OutputVerdict, would: Sequence[Verdict | OutputVerdict], job_id: str = ""
) -> dict[str, Any]:
    """Return the fields of the document that answers a request. `no` is the version of the policy.

    `approval_ref` is what an approval of the request would be given for: its job.
    """
    is_approval = verdict.decision is Decision.REQUIRE_APPROVAL
    return {
        **policy_verdict_values(verdict),
        "version": no,
        "approval_ref": job_id or None if is_approval else None,
        "would": [policy_verdict_values(one) for one in would],
    }


def head_values(head: PolicyHead) -> dict[str, Any]:
    """Return the fields of the document of a published version, without its texts."""
    return {
        "version": head.no,
        "hash": head.hash,
        "documents": list(head.names),
        "published_by": head.by,
        "published_at": head.at,
        "note": head.note,
        "signature": head.signature,
        "rollback_of": head.rollback_of,
    }


def version_values(version: PolicyVersion) -> dict[str, Any]:
    """Return the fields of the document of a published version with its texts."""
    texts = [{"name": one.name, "text": one.text} for one in version.texts]
    return {**head_values(version.head), "texts": texts}


def published_values(published: Published) -> dict[str, Any]:
    """Return the fields of the document that answers a publish or a rollback."""
    return {
        **head_values(published.head),
        "is_new": published.is_new,
        "before": published.before,
        "floor": published.floor,
    }


def state_values(current: Current, head: PolicyHead | None) -> dict[str, Any]:
    """Return the fields of the document of the policy in force. `problem` says why this process denies every job."""
    return {
        "version": current.no,
        "floor": current.floor,
        "is_gated": current.is_gated,
        "problem": current.problem,
        "in_force": None if head is None else head_values(head),
    }


def replay_values(told: PolicyReplay, no: int | None, days: float) -> dict[str, Any]:
    """Return the fields of the document of a replay. `no` is the version that judged, None for documents."""
    return {
        "snapshot": told.policy,
        "version": no,
        "days": days,
        "jobs": told.jobs,
        "unknown": told.unknown,
        "matrix": [
            {"before": cell.before, "after": cell.after, "count": cell.count, "is_looser": cell.loosening > 0}
            for cell in told.matrix
        ],
        "changed": [
            {
                "job_id": one.job_id,
                "recipe": one.recipe,
                "created_at": one.created_at,
                "before": one.before,
                "rule_before": one.rule_before,
                "after": one.verdict.decision,
                "rule_id": one.verdict.rule,
                "reason": one.verdict.reason,
            }
            for one in told.changed
        ],
    }


def shadow_values(counts: Sequence[ShadowCount], examples: Sequence[ShadowExample]) -> dict[str, Any]:
    """Return the fields of the document of what shadow rules would have decided."""
    return {
        "minutes": [
            {
                "minute": one.minute,
                "version": one.policy,
                "rule_id": one.rule,
                "decision": one.decision,
                "count": one.count,
            }
            for one in counts
        ],
        "examples": [
            {
                "at": one.at,
                "version": one.policy,
                "rule_id": one.rule,
                "decision": one.decision,
                "reason": one.reason,
                "edge": Edge(one.edge),
                "topic": one.topic,
                "tenant": one.tenant,
                "job_id": one.job_id,
                "caller": one.caller,
            }
            for one in examples
        ],
    }


def approval_values(terms: ApprovalTerms) -> dict[str, Any]:
    """Return the fields of the document of an approval's terms. A voter belongs to every group of `who`."""
    return {"need": terms.need, "who": [_voters(group) for group in terms.who], "expires_s": terms.expires_s}


def explanation_values(told: Explanation) -> dict[str, Any]:
    """Return the fields of the document that explains a verdict."""
    return {
        **policy_verdict_values(told.verdict),
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
