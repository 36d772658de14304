"""Keys: made, listed, revoked. With a Membership service the keys are not ours, and none of this is there."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response

from windlass.access.keys import Keys
from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router
from windlass.api.parts import Parts
from windlass.api.wire.key import KeyDocument, KeyList, KeyRequest, KeysQuery, NewKeyDocument, key_values
from windlass.core.caller import Scope
from windlass.core.errors import NotFound

router = guarded_router("keys")


@router.get("/keys", operation_id="keys.list", response_model=KeyList, summary="List keys")
@guard(Scope.ADMIN, codes=("not_found", "bad_input"))
async def list_keys(query: Annotated[KeysQuery, Query()], parts: Has) -> KeyList:
    """Every key, live or not, without its text."""
    views = await _keys(parts).listing(caller=query.caller)
    return KeyList(items=[KeyDocument.model_construct(**key_values(view)) for view in views])  # type: ignore[arg-type]


@router.post("/keys", operation_id="keys.create", status_code=201, response_model=NewKeyDocument, summary="Make a key")
@guard(Scope.ADMIN, operation="write", codes=("not_found", "bad_input", "too_large", "bad_media"))
async def create(wish: KeyRequest, caller: Caller, parts: Has, request_id: RequestId) -> NewKeyDocument:
    """The text of the key is in this answer and nowhere else: neither we nor anybody can show it again."""
    made = await _keys(parts).create(
        wish.caller,
        name=wish.name,
        caller_type=wish.caller_type,
        tier=wish.tier,
        scopes=frozenset(wish.scopes),
        expires_in_s=wish.expires_in,
        by=caller.caller_id,
        request_id=request_id,
    )
    return NewKeyDocument.model_construct(**key_values(made.view), key=made.text)  # type: ignore[arg-type]


@router.delete(
    "/keys/{key_id}", operation_id="keys.revoke", status_code=204, response_class=Response, summary="Revoke a key"
)
@guard(Scope.ADMIN, operation="write", codes=("not_found",))
async def revoke(
    key_id: Annotated[str, Path(description="The key's public part.")],
    caller: Caller,
    parts: Has,
    request_id: RequestId,
) -> None:
    """It is refused from now on, everywhere, and streams that it opened end. Revoking it again changes nothing."""
    await _keys(parts).revoke(key_id[:64], by=caller.caller_id, request_id=request_id)


def _keys(parts: Parts) -> Keys:
    if parts.keys is None:
        raise NotFound("the keys of this installation are those of its Membership service")
    return parts.keys
