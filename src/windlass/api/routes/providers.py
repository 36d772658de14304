"""Providers as all processes see them: who has their places, who waits, whether they answer."""

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
    """Every provider that a process has declared, with its limits, its holders and its line."""
    found = await provider_views.views(parts.db)
    return ProviderList.model_construct(items=[provider_document(view) for view in found])


@router.get(
    "/providers/{provider}", operation_id="providers.get", response_model=ProviderDocument, summary="Look at a provider"
)
@guard(Scope.ADMIN, codes=("not_found",))
async def get(provider: ProviderName, parts: Has) -> ProviderDocument:
    """One provider: why it is asked for nothing, or for how much."""
    return provider_document((await provider_views.views(parts.db, provider))[0])
