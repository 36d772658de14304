"""Loads the routes and console pages that extensions add to the API of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter

from windlass.api.parts import Extra, ExtraPage
from windlass.api.static import File, full
from windlass.extension.facade import Parts
from windlass.extension.installed import Installed


def extras_of(found: Sequence[Installed], parts: Mapping[str, Parts]) -> list[Extra]:
    """Load the routes of these extensions; raises BadSetting if one cannot be loaded."""
    return [
        Extra(
            name=one.name,
            where=f"{one.distribution} {one.version}",
            routes=[route for reference in one.extension.routers for route in _router(one, reference).routes],
            parts=parts[one.name],
            pages=[ExtraPage(page.title, page.icon, page.path, page.module) for page in one.extension.pages],
            files=_files(one),
        )
        for one in found
    ]


def _files(one: Installed) -> Mapping[str, File]:
    """Read the files of the console pages into memory; raises BadSetting if a page's module is missing."""
    if not one.extension.pages:
        return {}
    with one.folder(one.extension.console) as folder:
        found = full(folder).files
    missing = [page.module for page in one.extension.pages if page.module not in found]
    if missing:
        raise one.broken(f"its folder {one.extension.console!r} has no {missing[0]}")
    return found


def _router(one: Installed, reference: str) -> APIRouter:
    router = one.attribute(reference)
    if not isinstance(router, APIRouter):
        raise one.broken(f"{reference} is a {type(router).__name__}, and must be an APIRouter")
    return router
