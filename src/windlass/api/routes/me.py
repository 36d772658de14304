"""Who asks."""

from __future__ import annotations

from windlass.api.guard import Caller, guard, guarded_router
from windlass.api.wire.key import Me

router = guarded_router("callers")


@router.get("/me", operation_id="callers.me", response_model=Me, summary="Who am I")
@guard()
async def me(caller: Caller) -> Me:
    """The caller that the key belongs to, and what it allows; the headers say what is left of its limit."""
    return Me(
        caller=caller.caller_id,
        caller_type=caller.caller_type,
        role=str(caller.role),
        tier=caller.tier,
        scopes=sorted(map(str, caller.scopes)),
        key_id=caller.key_id,
    )
