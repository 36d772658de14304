"""Finds the database or the server for a command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from windlass.app.embedded.postmaster import find_running
from windlass.app.windlass import Windlass
from windlass.cli.command import Ambient
from windlass.client.async_client import AsyncClient
from windlass.core.errors import BadSetting, DatabaseUnavailable


def find_dsn(at: Ambient) -> str:
    """Return the configured database, or the embedded server of the home folder if it runs."""
    settings = at.settings
    dsn = settings.database_url or find_running(settings.database_path)
    if dsn is None:
        raise DatabaseUnavailable(
            f"no database: WINDLASS_DATABASE_URL is not set, and no server runs in {settings.home}",
            remedy="Start one with `windlass up`, or give --database postgresql://…",
        )
    return dsn


@asynccontextmanager
async def opened(at: Ambient) -> AsyncIterator[Windlass]:
    """Connect Windlass to the database that `find_dsn` returns, and check its schema."""
    async with Windlass.connect(find_dsn(at), settings=at.settings) as windlass:
        yield windlass


@asynccontextmanager
async def client(at: Ambient) -> AsyncIterator[AsyncClient]:
    """Yield a client of the configured server, or else of the database that `find_dsn` returns."""
    if at.server is not None and at.database is not None:
        raise BadSetting("--server and --database cannot be used together", remedy="Give one of them")
    settings = at.settings
    # A flag takes precedence over the environment and the file, so --database overrides a server set there.
    if settings.server is None or at.database is not None:
        from windlass.cli.local.backend import local_client

        async with opened(at) as windlass:
            yield local_client(windlass)
        return
    async with AsyncClient(settings.server, api_key=settings.api_key, home=settings.home) as made:
        yield made


async def document(at: Ambient, path: str, query: Sequence[tuple[str, str]] = ()) -> Any:
    """Return the document at a path. With --json, print the document and return None."""
    async with client(at) as ask:
        found = await ask.call("GET", path, query=query)
    if not at.as_json:
        return found
    at.screen.document(found)
    return None
