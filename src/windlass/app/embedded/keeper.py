"""The embedded server as a service: this process restarts it when it has died, since no service manager would."""

from __future__ import annotations

import asyncio
import logging

from windlass.app.embedded.server import EmbeddedPostgres
from windlass.core.errors import WindlassError

REVIVE_EVERY_S = 1.0

_log = logging.getLogger("windlass.process")


class Keeper:
    """Runs an embedded server. `dsn` is its address, once it has started."""

    name = "postgres"

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self.dsn = ""

    async def start(self) -> None:
        """Start the server, and restart it when it ends."""
        self.dsn = await asyncio.to_thread(self._server.start)
        self._task = asyncio.create_task(self._keep(), name="windlass-postgres")

    async def stop(self) -> None:
        """Release the server; it ends if no other process uses it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await asyncio.to_thread(self._server.stop)

    def alive(self) -> float | None:
        """Return None: the database check tells whether the server answers."""
        return None

    def ready(self) -> bool:
        """Tell whether the task that restarts the server runs."""
        return self._task is not None and not self._task.done()

    async def _keep(self) -> None:
        """Restart the server whenever it has ended; every other service waits while it is away."""
        server = self._server
        while True:
            await asyncio.sleep(REVIVE_EVERY_S)
            try:
                if await asyncio.to_thread(server.revive):
                    message = "PostgreSQL in %s had ended and was started again; its log is %s"
                    _log.warning(message, server.path, server.log)
            except (WindlassError, OSError) as error:
                _log.warning("PostgreSQL in %s has ended and cannot be started now: %s", server.path, error)
