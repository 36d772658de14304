"""Documents about approvals."""

from __future__ import annotations

from typing import Any

from windlass.views.approvals import SeenApproval


def approval_values(view: SeenApproval) -> dict[str, Any]:
    """Return the fields of an approval's document, as the caller that reads it may see it."""
    return {
        "id": view.id,
        "state": view.state,
        "job_id": view.job_id,
        "job_status": view.job_state,
        "recipe": view.recipe,
        "edge": view.edge,
        "no": view.no,
        "step": view.step,
        "index": view.index,
        "question": view.question,
        "show": view.arguments,
        "inputs": view.inputs,
        "labels": view.labels,
        "plan": view.plan,
        "subject": view.subject,
        "requester": view.requester,
        "policy": view.policy,
        "rule": view.rule,
        "reason": view.reason,
        "need": view.need,
        "who": [
            {
                "roles": group.get("roles", []),
                "callers": group.get("callers", []),
                "escalate_after_s": group.get("escalate_after_s"),
                "escalate_roles": group.get("escalate_roles", []),
                "escalate_callers": group.get("escalate_callers", []),
            }
            for group in view.who
        ],
        "on_reject": view.on_reject,
        "votes": [
            {"caller": vote.caller, "choice": vote.choice, "reason": vote.reason, "note": vote.note, "at": vote.at}
            for vote in view.votes
        ],
        "may_decide": view.may_decide,
        "why_not": view.why_not,
        "created_at": view.created_at,
        "expires_at": view.expires_at,
        "escalate_at": view.escalate_at,
        "escalated_at": view.escalated_at,
        "decided_at": view.decided_at,
        "left_s": round(view.left.total_seconds(), 3),
    }
