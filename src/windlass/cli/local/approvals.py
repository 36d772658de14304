"""Answers requests about approvals from the local database.

The local caller is an admin. Its own requests need another caller's vote, as everybody's do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from windlass.cli.local.call import LocalRequest
from windlass.core.approval import Choice
from windlass.core.caller import LOCAL, CallerContext
from windlass.documents.approval import approval_values

_LIMIT = 50


def _caller(call: LocalRequest) -> CallerContext:
    return replace(LOCAL, caller_id=call.windlass.settings.caller)


async def list_approvals(call: LocalRequest) -> Any:
    """List approvals, the newest first."""
    from windlass.views.approvals import ApprovalFilter, page

    wanted = ApprovalFilter(tuple(call.all("state")), call.one("mine") == "true", call.one("decidable") == "true")
    cursor = call.one("cursor")
    before = None if cursor is None else UUID(cursor)
    found = await page(call.db, _caller(call), wanted, before=before, limit=call.number("limit", _LIMIT))
    return {"items": [approval_values(one) for one in found.items], "next": found.next and str(found.next)}


async def approval(call: LocalRequest) -> Any:
    """Return one approval."""
    from windlass.views.approvals import approval

    return approval_values(await approval(call.db, _caller(call), UUID(call.names["approval_id"])))


async def decide(call: LocalRequest) -> Any:
    """Approve or reject, and return the approval after the vote."""
    from windlass.engine.approvals import Cast, vote
    from windlass.views.approvals import approval, voter_of

    caller, id, body = _caller(call), UUID(call.names["approval_id"]), call.body or {}
    choice = Choice(call.names["action"])
    told = {name: body.get(name, "") for name in ("reason", "note")}
    await vote(call.db, Cast(id, voter_of(caller), choice, **told, subject=body.get("subject")))
    return approval_values(await approval(call.db, caller, id))
