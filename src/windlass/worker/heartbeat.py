"""The heartbeat: a separate process that renews the worker's lease for as long as the worker lives.

A handler may hold the interpreter's lock for a minute (a C extension, a tight loop). No thread or task of the same
process would renew the lease meanwhile; a separate process does. It must not renew for a dead or stopped worker:

- the worker ends in good order: it kills the heartbeat process;
- the worker dies: its pipe closes. The heartbeat reads which attempts had begun (`begun.py`), hands all attempts back
  (`engine/hand_back.py`) and ends. If the database does not answer for the length of the lease, the rescuer does it;
- the worker is stopped (SIGSTOP, a debugger): its state is T, and the heartbeat lets the lease expire;
- the worker's loop hangs: the heartbeat goes on, and the time limit of each attempt ends it.

When the lease is over for good, the heartbeat reports it and waits for the id of the worker's next lease.

Each renewal stores the states of the services in the worker's process, as the process last reported them. If the
process has not reported for a while, it hangs, and the renewal stores that.

Both pipes carry lines of JSON. To the heartbeat: first a `Config`, later `{"worker": id}` or `{"states": {…}}`. From
it: `{"lost": id}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

import msgspec

from windlass.engine.workers import renew
from windlass.pure.service import STUCK_AFTER_S, state_of
from windlass.store.database import Database
from windlass.worker.begun import Begun, read

BEATS_PER_LEASE = 3
RESTART_AFTER_S = 1.0
CLOSE_WITHIN_S = 2.0
_LOOKS = 50

_log = logging.getLogger("windlass.worker")


class Heartbeat(Protocol):
    """Renews one lease at a time. It promises to call `on_lost` with the worker's id once that lease is lost."""

    async def start(self, worker: UUID) -> None:
        """Renew only this worker's lease from now on."""
        ...

    async def stop(self) -> None:
        """Stop renewing."""
        ...

    def tell(self, states: Mapping[str, str]) -> None:
        """Store these states of the process's services with the next renewals."""
        ...

    def is_beating(self) -> bool:
        """Whether the lease is being renewed."""
        ...


class Config(msgspec.Struct, frozen=True):
    """The configuration of the heartbeat process, its first line of input."""

    dsn: str
    worker: UUID
    lease_s: float
    parent: int
    # The table of begun attempts, and how long another process has to report the worker's death with more evidence.
    begun: int | None = None
    yield_s: float = 0.0


class Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """A later line, in either direction."""

    worker: UUID | None = None
    lost: UUID | None = None
    states: dict[str, str] | None = None


class LoopHeartbeat:
    """Renews from a task of the worker's own loop: for tests, and where handlers never block the loop."""

    def __init__(self, db: Database, *, lease_s: float, on_lost: Callable[[UUID], None]) -> None:
        self._db = db
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._states: Mapping[str, str] | None = None
        self._task: asyncio.Task[None] | None = None

    def tell(self, states: Mapping[str, str]) -> None:
        """Store these states with the next renewals."""
        self._states = states

    def is_beating(self) -> bool:
        """Whether the lease is being renewed."""
        return self._task is not None and not self._task.done()

    async def start(self, worker: UUID) -> None:
        """Renew this worker's lease."""
        await self.stop()
        self._task = asyncio.create_task(self._beat(worker), name="windlass-heartbeat")

    async def stop(self) -> None:
        """Stop renewing."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def _beat(self, worker: UUID) -> None:
        wait_s = self._lease_s / BEATS_PER_LEASE
        while True:
            await asyncio.sleep(wait_s)
            try:
                if not await renew(self._db, worker, lease_s=self._lease_s, states=self._states):
                    self._on_lost(worker)
                    return
                wait_s = self._lease_s / BEATS_PER_LEASE
            except Exception as error:
                _log.warning("the lease could not be renewed: %s", error)
                wait_s = _retry_s(self._lease_s)


class ProcessHeartbeat:
    """Starts the heartbeat process, reads its lines, and restarts it if it dies."""

    def __init__(
        self,
        dsn: str,
        *,
        lease_s: float,
        on_lost: Callable[[UUID], None],
        begun: Begun | None = None,
        yield_s: float = 0.0,
    ) -> None:
        self._dsn = dsn
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._begun = None if begun is None else begun.descriptor
        self._yield_s = yield_s
        self._worker: UUID | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, while there is one."""
        return None if self._process is None else self._process.pid

    async def start(self, worker: UUID) -> None:
        """Renew this worker's lease."""
        self._worker = worker
        if self._process is not None and self._process.returncode is None:
            self._tell(Word(worker=worker))
        if self._task is None:
            await self._spawn()
            self._task = asyncio.create_task(self._hear(), name="windlass-heartbeat")

    def tell(self, states: Mapping[str, str]) -> None:
        """Send the states to the process, which stores them with its next renewals."""
        self._tell(Word(states=dict(states)))

    def is_beating(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def stop(self) -> None:
        """End the process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        process, self._process = self._process, None
        if process is not None:
            # Killed before the pipe closes: a closed pipe means that the worker has died.
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    async def _spawn(self) -> None:
        assert self._worker is not None
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        # The database URL may contain a password. No other process can read it from the pipe.
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "windlass.worker.heartbeat"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=() if self._begun is None else (self._begun,),
        )
        self._tell(Config(self._dsn, self._worker, self._lease_s, os.getpid(), self._begun, self._yield_s))

    def _tell(self, line: Config | Word) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(msgspec.json.encode(line) + b"\n")

    async def _hear(self) -> None:
        while True:
            process = self._process
            assert process is not None and process.stdout is not None
            while line := await process.stdout.readline():
                word = msgspec.json.decode(line, type=Word)
                if word.lost is not None and word.lost == self._worker:
                    self._on_lost(word.lost)
            code = await process.wait()
            _log.warning("the heartbeat process ended with %s; another one is started", code)
            await asyncio.sleep(min(RESTART_AFTER_S, self._lease_s / 6))
            try:
                await self._spawn()
            except OSError as error:
                _log.warning("the heartbeat process could not be started: %s", error)


class _Heart:
    """The heartbeat inside its process."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._worker: UUID | None = config.worker
        self._db: Database | None = None
        self._is_failing = False
        self._changed = asyncio.Event()
        # The states of the services in the worker's process, and when it reported them.
        self._states: dict[str, str] | None = None
        self._told_s = 0.0

    def take(self, line: bytes) -> None:
        """Handle a later line from the worker."""
        word = msgspec.json.decode(line, type=Word)
        if word.states is not None:
            self._states, self._told_s = word.states, time.monotonic()
            return
        self._worker = word.worker
        self._changed.set()

    def states(self) -> dict[str, str] | None:
        """Return the last reported states. If the report is old, the worker's state says that it hangs."""
        age_s = time.monotonic() - self._told_s
        if self._states is None or age_s <= STUCK_AFTER_S:
            return self._states
        return {**self._states, "worker": state_of(age_s)}

    async def beat(self) -> None:
        """Renew until the worker is gone."""
        lease_s = self._config.lease_s
        while os.getppid() == self._config.parent:
            self._changed.clear()
            worker = self._worker
            wait_s = lease_s / BEATS_PER_LEASE
            if worker is not None and not is_stopped(self._config.parent):
                try:
                    if not await asyncio.wait_for(self._renew(worker), lease_s / BEATS_PER_LEASE):
                        self._lose(worker)
                    self._is_failing = False
                except Exception as error:
                    # The database is away or does not answer. The next renewal uses a new connection.
                    if not self._is_failing:
                        _log.warning("the lease cannot be renewed now: %r", error)
                    self._is_failing = True
                    await self.close()
                    wait_s = _retry_s(lease_s)
            elif worker is not None:
                # A worker that runs again must not lose the rest of its lease to this sleep.
                wait_s = _retry_s(lease_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    async def hand_back(self) -> None:
        """Report the attempts of the dead worker. Tries for the length of its lease."""
        worker, config = self._worker, self._config
        if worker is None or config.begun is None or not await _is_dead(config.parent):
            return
        # Imported late: the first renewal must not wait for modules that are needed only at the end.
        from windlass.engine.hand_back import hand_back

        begun, unnamed = read(config.begun)
        await asyncio.sleep(config.yield_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(config.lease_s):
                while True:
                    try:
                        db = self._db = self._db or await Database.open(config.dsn, max_size=1)
                        await hand_back(db, worker, begun, unnamed=unnamed, spread=random.random)
                        return
                    except Exception as error:
                        _log.warning("the steps of a dead worker cannot be handed back now: %r", error)
                        await self.close()
                        await asyncio.sleep(_retry_s(config.lease_s))

    async def _renew(self, worker: UUID) -> bool:
        if self._db is None:
            self._db = await Database.open(self._config.dsn, max_size=1)
        return await renew(self._db, worker, lease_s=self._config.lease_s, states=self.states())

    def _lose(self, worker: UUID) -> None:
        if self._worker == worker:
            self._worker = None
        sys.stdout.buffer.write(msgspec.json.encode(Word(lost=worker)) + b"\n")
        sys.stdout.buffer.flush()

    async def close(self) -> None:
        """Close the connection, after its waiting bells were sent."""
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(db.close(), CLOSE_WITHIN_S)


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped, by a signal or a debugger."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The program's name is in brackets and may itself contain brackets.
            state = file.read().rpartition(b")")[2].split()[0].decode()
    except FileNotFoundError:
        command = ["ps", "-o", "state=", "-p", str(pid)]
        state = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return state[:1] in ("T", "t")


async def _is_dead(parent: int) -> bool:
    """Whether the worker's process is over. Its pipes close a moment before its children get another parent."""
    for _ in range(_LOOKS):
        if os.getppid() != parent:
            return True
        await asyncio.sleep(1.0 / _LOOKS)
    return False


def _retry_s(lease_s: float) -> float:
    return min(1.0, lease_s / 10)


async def _main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    heart = _Heart(msgspec.json.decode(await reader.readline(), type=Config))
    beating = asyncio.create_task(heart.beat())
    hearing = asyncio.create_task(_hear(reader, heart))
    # A process that the worker forked may hold the pipe open; then the next renewal notices the worker's end.
    await asyncio.wait([beating, hearing], return_when=asyncio.FIRST_COMPLETED)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    await heart.hand_back()
    # Send the bells of the attempts handed back. Without them idle workers would look only seconds later.
    await heart.close()
    os._exit(0)


async def _hear(reader: asyncio.StreamReader, heart: _Heart) -> None:
    while line := await reader.readline():
        heart.take(line)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(_main())
