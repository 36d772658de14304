"""The measuring side of one system: starts its client process, sends it requests, and watches the machine meanwhile."""

import subprocess
import sys
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import asyncpg

from bench.machine import Load, Watch
from bench.process import ROOT, code_of, spawn, stop
from bench.roster import Entry
from bench.servers.postgres import Postgres
from bench.servers.redis import Redis
from bench.servers.restate import Restate
from bench.system import Target
from bench.venvs import python_of


class SystemFailed(Exception):
    """A measured system failed a request."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers that run for the whole benchmark."""

    folder: Path
    postgres: Postgres
    redis: Redis | None
    restate: Restate | None


async def make_database(postgres: Postgres, name: str) -> str:
    """Create an empty database of that name; return its address."""
    connection = await asyncpg.connect(postgres.dsn())
    try:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        await connection.execute(f'CREATE DATABASE "{name}"')
    finally:
        await connection.close()
    return postgres.dsn(name)


async def tidy_up(dsn: str) -> None:
    """Run the server's housekeeping now, so that it does not fall into the next system's measurement."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


class Session:
    """One system's client process, alive for the whole benchmark; its workers live for one measurement."""

    def __init__(self, entry: Entry, servers: Servers, dsn: str) -> None:
        self.entry = entry
        self.dsn = dsn
        self._servers = servers
        self._folder = servers.folder / dsn.rpartition("/")[2]
        self._folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Connection | None = None
        self.worker_pids: list[int] = []

    @property
    def pid(self) -> int:
        """The client's process id."""
        assert self._process is not None
        return self._process.pid

    def open(self) -> None:
        """Start the client process and let it prepare its schema."""
        python = python_of(self.entry.venv) if self.entry.venv else Path(sys.executable)
        address = str(self._folder / "line")
        if self.entry.server == "restate" and self._servers.restate:
            self._servers.restate.start()
        with Listener(address, family="AF_UNIX") as listener:
            environment = self._target().environment() | {"BENCH_SOCKET": address}
            command = [str(python), "-m", "bench.host", self.entry.module]
            folder = ROOT
            if self.entry.tree is not None:
                folder = Path(self.entry.tree)
                environment |= code_of(folder)
            self._process = spawn(command, log=self._folder / "client.log", environment=environment, folder=folder)
            self._line = listener.accept()
        self._answer()
        self.ask("prepare")
        if self.entry.server == "restate" and self._servers.restate:
            self._servers.restate.stop()

    def ask(self, request: str, **arguments: Any) -> dict[str, Any]:
        """Run one request, unmeasured."""
        assert self._line is not None
        self._line.send((request, arguments))
        return self._answer()

    def start(self, workers: int = 1) -> None:
        """Start the workers, and the system's server if it has one."""
        if self.entry.server == "restate" and self._servers.restate:
            self._servers.restate.start()
        self.worker_pids = self.ask("start", workers=workers)["pids"]

    async def stop(self) -> None:
        """Stop the workers, and leave the servers idle."""
        self.ask("stop")
        if self.entry.server == "restate" and self._servers.restate:
            self._servers.restate.stop()
        await tidy_up(self.dsn)

    def measure(self, request: str, **arguments: Any) -> tuple[dict[str, Any], Load]:
        """Run one request, and return its cost for the machine."""
        servers = [self._servers.postgres.pid]
        if self.entry.server == "redis" and self._servers.redis:
            servers.append(self._servers.redis.pid)
        if self.entry.server == "restate" and self._servers.restate:
            servers.append(self._servers.restate.pid)
        with Watch({"client": [self.pid], "worker": self.worker_pids, "server": servers}) as watch:
            answer = self.ask(request, **arguments)
        # The workers are children of the client.
        cpu = dict(watch.load.cpu_s)
        cpu["client"] -= cpu["worker"]
        return answer, replace(watch.load, cpu_s=cpu)

    def close(self) -> None:
        """End the client process."""
        if self._line:
            self._line.close()
        if self._process:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                stop([self._process])

    def _answer(self) -> dict[str, Any]:
        assert self._line is not None
        try:
            message = self._line.recv()
        except EOFError:
            raise SystemFailed(f"its client process ended: see {self._folder / 'client.log'}") from None
        if "error" in message:
            raise SystemFailed(message["error"])
        answer: dict[str, Any] = message["answer"]
        return answer

    def _target(self) -> Target:
        redis, restate = self._servers.redis, self._servers.restate
        return Target(
            dsn=self.dsn,
            folder=str(self._folder),
            redis_url=redis.url if redis else "",
            restate_ingress=restate.ingress if restate else "",
            restate_admin=restate.admin if restate else "",
            restate_service_port=restate.service_port if restate else 0,
        )
