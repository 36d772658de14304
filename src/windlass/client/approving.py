"""Flows about approvals: list them, read one, vote. `exchange` defines a flow."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from windlass.client.asking import converted, get, send
from windlass.client.exchange import Flow, Give, Sources
from windlass.client.views import ApprovalView

PAGE = 100


def approvals(sources: Sources, states: Sequence[str], *, mine: bool, decidable: bool) -> Flow[None]:
    """Give every approval that the caller may see and that fits the filter, the newest first."""
    chosen = [
        *(("state", state) for state in states),
        *([("mine", "true")] if mine else []),
        *([("decidable", "true")] if decidable else []),
        ("limit", str(PAGE)),
    ]
    cursor: str | None = None
    while True:
        body = yield from get(sources, "/approvals", [*chosen, *([("cursor", cursor)] if cursor is not None else [])])
        for view in converted(body["items"], list[ApprovalView]):
            yield Give(view)
        cursor = body["next"]
        if cursor is None:
            return


def approval(sources: Sources, approval_id: UUID) -> Flow[ApprovalView]:
    """Return one approval."""
    return converted((yield from get(sources, f"/approvals/{approval_id}")), ApprovalView)


def decide(
    sources: Sources, approval_id: UUID, action: str, reason: str, note: str, subject: str | None
) -> Flow[ApprovalView]:
    """Approve or reject, and return the approval after the vote.

    The client does not send a vote again after a lost answer: the second answer would say that it is decided already.
    """
    wish = {"reason": reason, "note": note, **({} if subject is None else {"subject": subject})}
    path = f"/approvals/{approval_id}/{action}"
    return converted((yield from send(sources, "POST", path, wish, is_safe=False)), ApprovalView)
