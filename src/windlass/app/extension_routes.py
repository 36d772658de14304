"""What extensions add to the API of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter

from windlass.api.parts import Extra
from windlass.extension.facade import Parts
from windlass.extension.installed import Installed


def extras_of(found: Sequence[Installed], parts: Mapping[str, Parts]) -> list[Extra]:
    """The routes of these extensions, loaded; BadSetting if one cannot be."""
    return [
        Extra(
            name=one.name,
            where=f"{one.distribution} {one.version}",
            routes=[route for reference in one.extension.routers for route in _router(one, reference).routes],
            parts=parts[one.name],
        )
        for one in found
    ]


def _router(one: Installed, reference: str) -> APIRouter:
    router = one.attribute(reference)
    if not isinstance(router, APIRouter):
        raise one.broken(f"{reference} is a {type(router).__name__}, and must be an APIRouter")
    return router
