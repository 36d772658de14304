"""A server that forgets in a crash every write that did not wait for the disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from windlass.app.embedded.server import EmbeddedPostgres
from windlass.store.database import Database
from windlass.store.migrate import migrate

Crash = Callable[[], Awaitable[None]]


@asynccontextmanager
async def forgetful_server() -> AsyncIterator[tuple[Database, Crash]]:
    """A database of its own, and what crashes its server. The writer that would bring all to the disk is held back."""
    # Not pytest's folder, which the server's user may not enter while other tests run.
    with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
        server = EmbeddedPostgres(Path(folder) / "pg")
        dsn = await asyncio.to_thread(server.start)
        try:
            db = await Database.open(dsn)
            await migrate(db)
            async with db.connection() as connection:
                await connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
                await connection.execute("SELECT pg_reload_conf()")
            yield db, lambda: _crash(dsn)
            await db.close()
        finally:
            await asyncio.to_thread(server.stop)


async def _crash(dsn: str) -> None:
    """Kill a backend: the server throws away what it has in memory, and recovers from the disk. Until it has."""
    victim = await asyncpg.connect(dsn)
    os.kill(await victim.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
    gone = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
    while not victim.is_closed():
        with contextlib.suppress(*gone):
            await victim.execute("SELECT 1")
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(*gone):
                await (await asyncpg.connect(dsn)).close()
                return
            await asyncio.sleep(0.1)
