"""Providers as all processes see them: the holders of their slots, the waiting steps, and whether they respond."""

from __future__ import annotations

from windlass.api.guard import Has, guard, guarded_router
from windlass.api.routes.incoming import ProviderName
from windlass.api.wire.external import ProviderDocument, ProviderList, provider_document
from windlass.core.caller import Scope
from windlass.views import providers as provider_views

router = guarded_router("providers")


@router.get("/providers", operation_id="providers.list", response_model=ProviderList, summary="List providers")
@guard(Scope.ADMIN)
async def list_providers(parts: Has) -> ProviderList:
    """Returns every declared provider, with its limits, the holders of its slots and its waiting steps."""
    found = await provider_views.views(parts.db)
    return ProviderList.model_construct(items=[provider_document(view) for view in found])


@router.get(
    "/providers/{provider}", operation_id="providers.get", response_model=ProviderDocument, summary="Get a provider"
)
@guard(Scope.ADMIN, codes=("not_found",))
async def get(provider: ProviderName, parts: Has) -> ProviderDocument:
    """Returns one provider: how many calls it may get, or why it gets none."""
    return provider_document((await provider_views.views(parts.db, provider))[0])
