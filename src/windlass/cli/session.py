"""How a command finds the database and the job that it is about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from windlass.app.postmaster import find_running
from windlass.app.windlass import Windlass
from windlass.cli.command import Ambient
from windlass.core.errors import DatabaseUnavailable
from windlass.engine import read


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


async def find_job(windlass: Windlass, name: str) -> UUID:
    """The job of an id, of the beginning of one that fits no other, or the last that was submitted (`@last`)."""
    return await read.find(windlass.db, name.strip())
