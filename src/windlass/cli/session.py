"""How a command finds the database or the server that it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windlass.app.embedded.postmaster import find_running
from windlass.app.windlass import Windlass
from windlass.cli.command import Ambient
from windlass.cli.desk import Desk
from windlass.core.errors import BadSetting, DatabaseUnavailable


def find_dsn(at: Ambient) -> str:
    """The database to use: the one that is set, or the embedded server of the home if it runs."""
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
    """Windlass on the database that was found, its schema checked."""
    async with Windlass.connect(find_dsn(at), settings=at.settings) as windlass:
        yield windlass


@asynccontextmanager
async def desk(at: Ambient) -> AsyncIterator[Desk]:
    """Where the command asks: the server that is named, else the database that was found."""
    if at.server is not None and at.database is not None:
        raise BadSetting("--server and --database name two places", remedy="Give one of them")
    # A flag wins over the environment and the file, so --database is heard although a server is set there.
    if at.settings.server is None or at.database is not None:
        from windlass.cli.local_desk import LocalDesk

        async with opened(at) as windlass:
            yield LocalDesk(windlass)
        return
    from windlass.cli.remote_desk import RemoteDesk
    from windlass.client.async_client import AsyncClient

    settings = at.settings
    async with AsyncClient(settings.server, api_key=settings.api_key, home=settings.home) as client:
        yield RemoteDesk(client)
