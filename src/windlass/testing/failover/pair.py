"""A primary and its streaming standby on this machine, and failovers between them.

Two sites have a folder and a socket each, so one database URL names both for the life of the pair. A failover kills the
primary as a lost machine would, and promotes the standby. Then the old primary's site gets a new standby.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import asyncpg

from windlass.app.embedded.binaries import find_binaries, server_system
from windlass.app.embedded.postmaster import PORT, is_alive, running

START_MAX_S = 60.0
STANDBY = "windlass_standby"
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "60",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "wal_keep_size": "256MB",
    "hot_standby": "on",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Site:
    """The folders of one server."""

    name: str
    data: Path
    sockets: Path

    @property
    def pid(self) -> int | None:
        """The process id of its postmaster."""
        found = running(self.data)
        return None if found is None else found.pid

    @property
    def dsn(self) -> str:
        """The DSN of this server alone."""
        return f"postgresql://postgres@/postgres?host={quote(str(self.sockets), safe='/')}&port={PORT}"


class Pair:
    """A primary and its standby. `is_synchronous` tells whether a commit waits for the standby."""

    def __init__(self, folder: Path, *, is_synchronous: bool) -> None:
        self.is_synchronous = is_synchronous
        self.primary, self.standby = (Site(name, folder / name, folder / f"{name}.sock") for name in ("a", "b"))
        self._binaries = find_binaries()
        self._system = server_system(self.primary.data, self._binaries)
        self._children: list[subprocess.Popen[bytes]] = []
        self._log = folder / "servers.log"
        for site in (self.primary, self.standby):
            for path in (site.data, site.sockets):
                path.mkdir(mode=0o700, parents=True)
                self._system.own(path)

    @property
    def dsn(self) -> str:
        """The DSN of both servers: a client finds the server that accepts writes."""
        hosts = ",".join(quote(str(site.sockets), safe="/") for site in sorted_sites(self.primary, self.standby))
        return f"postgresql://postgres@/postgres?host={hosts}&port={PORT},{PORT}"

    async def start(self) -> None:
        """Create the primary and its standby."""
        await self._run("initdb", "-D", str(self.primary.data), "-U", "postgres", "--auth=trust", "--no-sync")
        await self._launch(self.primary)
        await self._add_standby()

    async def stop(self) -> None:
        """End both servers at once."""
        for site in (self.standby, self.primary):
            self._kill(site)

    async def hold_back(self) -> int:
        """Let the standby fall behind: stop the process that sends the log, and return its process id."""
        connection = await asyncpg.connect(self.primary.dsn)
        try:
            pid: int = await connection.fetchval("SELECT pid FROM pg_stat_replication")
        finally:
            await connection.close()
        os.kill(pid, signal.SIGSTOP)
        return pid

    async def fail_over(self, *, sender: int | None = None) -> None:
        """Kill the primary like a lost machine, and promote the standby. `sender` is a stopped log sender."""
        self._kill(self.primary)
        if sender is not None and is_alive(sender):
            os.kill(sender, signal.SIGKILL)
        await self._run("pg_ctl", "promote", "-D", str(self.standby.data), "-w", "-t", str(int(START_MAX_S)))
        self.primary, self.standby = self.standby, self.primary
        await self._execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")

    async def repair(self) -> None:
        """Give the new primary a standby, in the place of the old primary."""
        for path in self.standby.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        await self._add_standby()

    async def _add_standby(self) -> None:
        source = f"host={self.primary.sockets} port={PORT} user=postgres application_name={STANDBY}"
        target = str(self.standby.data)
        await self._run("pg_basebackup", "-d", source, "-D", target, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        await self._launch(self.standby)
        if self.is_synchronous:
            names = f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'"
            await self._execute(names, "SELECT pg_reload_conf()")
        await self._until_streaming()

    async def _until_streaming(self) -> None:
        wanted = "sync" if self.is_synchronous else "async"
        connection = await asyncpg.connect(self.primary.dsn)
        try:
            async with asyncio.timeout(START_MAX_S):
                while True:
                    rows = await connection.fetch("SELECT state, sync_state FROM pg_stat_replication")
                    if [(row["state"], row["sync_state"]) for row in rows] == [("streaming", wanted)]:
                        return
                    await asyncio.sleep(0.05)
        finally:
            await connection.close()

    async def _execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.primary.dsn)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    async def _launch(self, site: Site) -> None:
        settings = SETTINGS | {"unix_socket_directories": f'"{site.sockets}"'}
        command = [str(self._binaries.newest / "postgres"), "-D", str(site.data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        child = self._spawn(command)
        async with asyncio.timeout(START_MAX_S):
            while True:
                found = running(site.data)
                if found is not None and found.status in ("ready", "standby"):
                    return
                if child.poll() is not None:
                    raise RuntimeError(f"server {site.name} did not start; see {self._log}")
                await asyncio.sleep(0.02)

    async def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries.newest / program), *arguments]
        done = await asyncio.to_thread(self._done, command)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr or done.stdout}")

    def _done(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=START_MAX_S, check=False, **self._system.popen
        )

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        with self._log.open("ab") as log:
            child = subprocess.Popen(
                command, stdin=quiet, stdout=log, stderr=log, start_new_session=True, **self._system.popen
            )
        self._children.append(child)
        return child

    def _kill(self, site: Site) -> None:
        """SIGKILL the postmaster and its children, so that none of them closes a connection in order."""
        pid = site.pid
        if pid is None:
            return
        family = [pid, *_children_of(pid)]
        for one in family:
            if is_alive(one):
                os.kill(one, signal.SIGKILL)
        for child in self._children:
            if child.pid == pid:
                child.wait()
        until_s = time.monotonic() + START_MAX_S
        while any(map(is_alive, family)) and time.monotonic() < until_s:
            time.sleep(0.01)


def sorted_sites(*sites: Site) -> list[Site]:
    """Return the sites in an order that a failover does not change."""
    return sorted(sites, key=lambda site: site.name)


def _children_of(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]
