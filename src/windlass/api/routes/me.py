"""The caller of the request."""

from __future__ import annotations

from windlass.api.guard import Caller, guard, guarded_router
from windlass.api.wire.key import Me
from windlass.core.caller import CallerType

router = guarded_router("callers")


@router.get("/me", operation_id="callers.me", response_model=Me, summary="Get the caller")
@guard()
async def me(caller: Caller) -> Me:
    """Returns the key's caller and its permissions; the headers show the rest of its limit."""
    return Me(
        caller=caller.caller_id,
        caller_type=CallerType(caller.caller_type),
        role=caller.role,
        tier=caller.tier,
        scopes=sorted(map(str, caller.scopes)),
        roles=sorted(caller.all_roles),
        key_id=caller.key_id,
    )
