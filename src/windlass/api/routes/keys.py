"""Keys: create, list and revoke them. A Membership service owns the keys itself, so these routes then do not exist."""

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
    """Returns every key, live or not, without its text."""
    views = await _keys(parts).listing(caller=query.caller)
    return KeyList(items=[KeyDocument.model_construct(**key_values(view)) for view in views])


@router.post(
    "/keys", operation_id="keys.create", status_code=201, response_model=NewKeyDocument, summary="Create a key"
)
@guard(Scope.ADMIN, operation="write", codes=("not_found", "bad_input", "too_large", "bad_media"))
async def create(wish: KeyRequest, caller: Caller, parts: Has, request_id: RequestId) -> NewKeyDocument:
    """Creates a key. The text of the key is only in this response: the server cannot show it again."""
    made = await _keys(parts).create(
        wish.caller,
        name=wish.name,
        caller_type=wish.caller_type,
        tier=wish.tier,
        scopes=frozenset(wish.scopes),
        roles=frozenset(wish.roles or ()),
        expires_in_s=wish.expires_in,
        by=caller.caller_id,
        request_id=request_id,
    )
    return NewKeyDocument.model_construct(**key_values(made.view), key=made.text)


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
    """Refuses the key from now on, everywhere, and ends the streams that it opened.

    Revoking it again changes nothing.
    """
    await _keys(parts).revoke(key_id[:64], by=caller.caller_id, request_id=request_id)


def _keys(parts: Parts) -> Keys:
    if parts.keys is None:
        raise NotFound("this installation uses the keys of its Membership service")
    return parts.keys
