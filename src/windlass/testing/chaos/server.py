"""The PostgreSQL of a chaos run: fsync is on, and faults hit it too."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from pathlib import Path
from typing import Literal

import asyncpg

from windlass.app.embedded.server import EmbeddedPostgres
from windlass.testing.chaos.listing import is_child, listing, send

CONNECT_S = 2.0


class Server:
    """Starts, crashes and restarts the server. `crashes` holds the times of lost shared memory."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "pg"
        self._postgres = EmbeddedPostgres(self._path, durable=True)
        self._repair: asyncio.Task[None] | None = None
        self._read_only: asyncio.Task[None] | None = None
        self._is_healed = asyncio.Event()
        self.dsn = ""
        self.crashes: list[float] = []
        # Seconds from a crash to the first connection after it.
        self.outages: list[float] = []

    @property
    def is_up(self) -> bool:
        """Tell whether no crash is being repaired now."""
        return self._repair is None or self._repair.done()

    async def start(self) -> str:
        """Start the server; return its DSN."""
        self.dsn = await asyncio.to_thread(self._postgres.start)
        connection = await asyncpg.connect(self.dsn, timeout=CONNECT_S)
        # The slot log (`lines.py`) needs commit timestamps.
        await connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        await connection.close()
        await asyncio.to_thread(self._postgres.stop)
        self._postgres = EmbeddedPostgres(self._path, durable=True)
        await asyncio.to_thread(self._postgres.start)
        return self.dsn

    async def heal(self) -> None:
        """End a read-only phase, and wait until the server answers."""
        self._is_healed.set()
        await self.whole()
        if self._read_only is not None:
            await self._read_only

    async def stop(self) -> None:
        """Stop the server with an orderly shutdown."""
        await self.whole()
        await asyncio.to_thread(self._postgres.stop)

    async def whole(self) -> None:
        """Wait for the end of a repair."""
        if self._repair is not None:
            await self._repair

    def crash(self, number: signal.Signals) -> bool:
        """Kill the postmaster, by SIGKILL or by SIGQUIT (an immediate shutdown), and begin to start it again."""
        pid = self._postgres.pid
        if not self.is_up or pid is None or not send(pid, number):
            return False
        self._repair = asyncio.create_task(self._start_again(time.time()))
        return True

    def leave(self, seconds: float) -> bool:
        """Shut the server down in order, and start it again after this time."""
        if not self.is_up or self._postgres.pid is None:
            return False
        self._repair = asyncio.create_task(self._away_for(seconds, time.time()))
        return True

    async def become_read_only(self, seconds: float) -> bool:
        """Refuse every write for this time, in open sessions too, as a primary does while it is demoted."""
        if self._read_only is not None and not self._read_only.done():
            return False
        await self._set_read_only("on")
        self._read_only = asyncio.create_task(self._read_only_for(seconds))
        return True

    async def kill_backend(self, pid: int) -> bool:
        """SIGKILL one backend: the postmaster discards all shared memory and recovers."""
        if not self.is_up or not self._is_ours(pid) or not send(pid, signal.SIGKILL):
            return False
        self._repair = asyncio.create_task(self._wait_for_recovery(time.time()))
        return True

    def halt_backend(self, pid: int) -> bool:
        """SIGSTOP one backend, with any locks that it holds."""
        return self._is_ours(pid) and send(pid, signal.SIGSTOP)

    def release_backend(self, pid: int) -> None:
        """SIGCONT a stopped backend."""
        # Its postmaster may have died meanwhile, so the backend may be an orphan by now.
        if any(row.pid == pid and row.command.startswith("postgres:") for row in listing()):
            send(pid, signal.SIGCONT)

    async def backends(self) -> list[int]:
        """Return the backends that serve Windlass, for any process."""
        connection = await asyncpg.connect(self.dsn, timeout=CONNECT_S)
        try:
            rows = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'windlass' ORDER BY pid", timeout=CONNECT_S
            )
            return [row["pid"] for row in rows]
        finally:
            connection.terminate()

    async def terminate_backend(self, pid: int) -> bool:
        """Let the server end a backend."""
        connection = await asyncpg.connect(self.dsn, timeout=CONNECT_S)
        try:
            return bool(await connection.fetchval("SELECT pg_terminate_backend($1)", pid, timeout=CONNECT_S))
        finally:
            connection.terminate()

    def _is_ours(self, pid: int) -> bool:
        postmaster = self._postgres.pid
        return postmaster is not None and is_child(pid, postmaster)

    async def _start_again(self, since_s: float) -> None:
        self.crashes.append(since_s)
        await asyncio.to_thread(self._postgres.stop)
        self._postgres = EmbeddedPostgres(self._path, durable=True)
        await asyncio.to_thread(self._postgres.start)
        await self._answers(since_s)

    async def _away_for(self, seconds: float, since_s: float) -> None:
        # An orderly shutdown loses nothing, so it is no crash: it does not excuse an attempt that begins twice.
        await asyncio.to_thread(self._postgres.stop)
        await asyncio.sleep(seconds)
        self._postgres = EmbeddedPostgres(self._path, durable=True)
        await asyncio.to_thread(self._postgres.start)
        await self._answers(since_s)

    async def _read_only_for(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_healed.wait(), seconds)
        while True:
            try:
                await self._set_read_only("off")
                return
            except Exception:
                # The server may be down now, which the driver reports in many ways. The read-only phase must end in any
                # case.
                await asyncio.sleep(0.1)

    async def _set_read_only(self, value: Literal["on", "off"]) -> None:
        connection = await asyncpg.connect(self.dsn, timeout=CONNECT_S)
        try:
            await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}", timeout=CONNECT_S)
            await connection.execute("SELECT pg_reload_conf()", timeout=CONNECT_S)
        finally:
            connection.terminate()

    async def _wait_for_recovery(self, since_s: float) -> None:
        self.crashes.append(since_s)
        await asyncio.sleep(0.2)
        await self._answers(since_s)

    async def _answers(self, since_s: float) -> None:
        while True:
            try:
                connection = await asyncpg.connect(self.dsn, timeout=CONNECT_S)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                await asyncio.sleep(0.1)
                continue
            connection.terminate()
            self.outages.append(time.time() - since_s)
            return
