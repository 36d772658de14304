"""Webhooks of providers: receive them, list them, and apply them again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router, parts_of
from windlass.api.visit import visit_of
from windlass.api.wire.external import (
    ProviderEventDocument,
    ProviderEventList,
    ProviderEventsQuery,
    WebhookTaken,
)
from windlass.api.wire.wire import TEXT_MAX, storable
from windlass.core.caller import Scope
from windlass.core.errors import BadSignature, NotFound
from windlass.engine import external
from windlass.engine.external import Applied
from windlass.pure.audit import AuditEvent

router = guarded_router("providers")
_WORDS: dict[Applied, Literal["applied", "noted", "late", "kept", "replayed"]] = {
    Applied.APPLIED: "applied",
    Applied.NOTED: "noted",
    Applied.LATE: "late",
    Applied.WAITING: "kept",
    Applied.REPLAYED: "replayed",
}


_ANSWERS = {applied: WebhookTaken(status=word).model_dump_json() for applied, word in _WORDS.items()}


def _text(value: Any) -> str:
    try:
        if isinstance(value, str) and 0 < len(value) <= TEXT_MAX:
            return storable(value)
    except ValueError:
        pass
    raise NotFound("there is no such provider here, or it sends no webhooks")


ProviderName = Annotated[str, BeforeValidator(_text), Path(description="A provider of providers.yaml.")]
EventId = Annotated[str, BeforeValidator(_text), Path(description="An event's id.")]


@router.post(
    "/webhooks/{provider}",
    operation_id="providers.webhook",
    response_model=WebhookTaken,
    summary="Receive a provider's webhook",
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": {}}}, "description": "As the provider sends it."}
    },
)
@guard(
    is_open=True,
    cost=0,
    operation="write",
    takes_any_query=True,
    codes=("not_found", "bad_signature", "database_unavailable"),
)
async def webhook(request: Request, provider: ProviderName) -> Response:
    """Receives a webhook.

    It needs no key: the signature over the raw body identifies the provider, by the profile and the secrets in
    providers.yaml. The response follows after one commit has stored the event and its effect. A repeated webhook gets
    `replayed`.
    """
    parts = parts_of(request)
    # The body of a request for an unknown provider is not read.
    parts.receiver.check(provider)
    body = await request.body()
    # ASGI has the names in lower case already.
    headers = dict(request.headers)
    try:
        applied = await parts.receiver.receive(provider, headers, body, dict(request.query_params))
    except BadSignature as error:
        who, request_id = f"webhook {provider}", visit_of(request).request_id
        parts.audit.refused(AuditEvent.AUTH_REJECTED, who, error.code, request_id)
        raise
    return Response(_ANSWERS[applied], media_type="application/json")


@router.get(
    "/webhooks/{provider}/events",
    operation_id="providers.events",
    response_model=ProviderEventList,
    summary="List a provider's webhooks",
)
@guard(Scope.ADMIN, codes=("not_found", "bad_input"))
async def events(provider: ProviderName, query: Annotated[ProviderEventsQuery, Query()], parts: Has) -> Any:
    """Returns the received webhooks and their results.

    `WAITING` marks webhooks about work that is not known yet.
    """
    parts.receiver.check(provider)
    found = await external.events(parts.db, provider, state=query.status, limit=query.limit)
    return ProviderEventList.model_construct(
        items=[
            ProviderEventDocument.model_construct(
                id=one.id, at=one.at, status=one.state, external_id=one.external_id, job_id=one.job_id
            )
            for one in found
        ]
    )


@router.post(
    "/webhooks/{provider}/events/{event_id:path}/apply",
    operation_id="providers.apply",
    response_model=WebhookTaken,
    summary="Apply a webhook again",
)
@guard(Scope.ADMIN, operation="write", codes=("not_found", "bad_input"))
async def apply(
    provider: ProviderName, event_id: EventId, caller: Caller, parts: Has, request_id: RequestId
) -> WebhookTaken:
    """Reads the stored body again, with the current adapter. A finished step stays as it is."""
    parts.receiver.check(provider)
    await parts.audit.note(
        None, AuditEvent.PROVIDER_EVENT_APPLIED, caller, request_id=request_id, provider=provider, event=event_id
    )
    applied = await parts.receiver.reapply(provider, event_id)
    return WebhookTaken(status=_WORDS[applied])
