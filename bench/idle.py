"""The cost of idle processes: their memory, and their queries."""

import re
import time
from collections import Counter
from pathlib import Path

import asyncpg
import psutil

from bench.machine import memory_mb, tree
from bench.servers.postgres import Postgres

# With these settings every statement leaves one log line that names the client's port.
LOUD = {"log_line_prefix": "'<%r> '", "log_statement": "'all'"}
STATEMENT = re.compile(r"^<127\.0\.0\.1\((\d+)\)> LOG:  (?:statement|execute)")


class Listening:
    """Reads the server's log of statements. Meanwhile the server logs every statement, so time nothing."""

    def __init__(self, postgres: Postgres, dsn: str) -> None:
        self._log = postgres.folder / "postgres.log"
        self._dsn = dsn
        self._start = 0

    async def begin(self) -> None:
        """Start to log."""
        await _configure(self._dsn, LOUD)
        time.sleep(1)
        self._start = self._log.stat().st_size

    async def end(self) -> Counter[int]:
        """Stop to log; return the number of statements, by the port of the client."""
        with self._log.open("rb") as file:
            file.seek(self._start)
            lines = file.read().decode(errors="replace").splitlines()
        await _configure(self._dsn, dict.fromkeys(LOUD, "DEFAULT"))
        return Counter(int(match.group(1)) for line in lines if (match := STATEMENT.match(line)))


async def statements_per_s(postgres: Postgres, dsn: str, processes: dict[int, str], idle_s: float) -> dict[str, float]:
    """Return the statements per second of each process, over `idle_s` seconds."""
    log = Listening(postgres, dsn)
    await log.begin()
    ports: dict[int, int] = {}
    started = time.monotonic()
    while time.monotonic() - started < idle_s:
        # Repeated, since a connection may be opened meanwhile.
        ports |= ports_of(processes)
        time.sleep(1)
    seen = await log.end()
    asked = dict.fromkeys((f"{label} {pid}" for pid, label in processes.items()), 0.0)
    for port, count in seen.items():
        if pid := ports.get(port):
            asked[f"{processes[pid]} {pid}"] += count / idle_s
    return {name: round(value, 2) for name, value in asked.items()}


def labelled(pids: list[int]) -> dict[int, str]:
    """Return these processes and their descendants, each with a few words of its command line."""
    return {process.pid: _label(process) for process in tree(pids)}


def ports_of(processes: dict[int, str]) -> dict[int, int]:
    """Return the process of each port."""
    found: dict[int, int] = {}
    for pid in processes:
        try:
            for connection in psutil.Process(pid).net_connections("tcp"):
                found[connection.laddr.port] = pid
        except psutil.Error:
            continue
    return found


def server_mb(postgres: Postgres) -> float:
    """Return the memory of PostgreSQL, all its processes together."""
    return sum(memory_mb(process.pid) for process in tree([postgres.pid]))


async def _configure(dsn: str, settings: dict[str, str]) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for name, value in settings.items():
            await connection.execute(f"ALTER SYSTEM SET {name} = {value}")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


def _label(process: psutil.Process) -> str:
    words = process.cmdline()
    return Path(words[0]).name if len(words) == 1 else " ".join(Path(word).name for word in words[1:4])
