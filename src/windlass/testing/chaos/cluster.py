"""The cluster under attack: PostgreSQL, engines, workers, the API and a provider; it injects the faults."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from windlass.testing.chaos.faults import FAULTS_A_MINUTE, Deck, Fault
from windlass.testing.chaos.journal import FOLDER_VARIABLE
from windlass.testing.chaos.listing import send
from windlass.testing.chaos.member import Member
from windlass.testing.chaos.outside import Outside
from windlass.testing.chaos.server import Server

ENGINES = 2
WORKERS = 4
WORKER_CONCURRENCY = 20
SECRET = "chaos" * 8
WORKLOAD = "windlass.testing.chaos.workload"
OTHER_WORKLOAD = "windlass.testing.chaos.other_workload"
# At most this many are stopped at once; some must run, or a fault would hit nothing.
WORKERS_STOPPED_MAX = 2
ENGINES_STOPPED_MAX = 1
SUPERVISE_EVERY_S = 0.05
# How many cards are tried before a turn is skipped.
TRIES = 5
STOP_WITHIN_S = 60.0
ORPHANS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker that was killed, and when. With `is_machine`, all of its processes were killed, as when a machine is
    lost.
    """

    pid: int
    at_s: float
    is_machine: bool = False


class Cluster:
    """The members, the server, and the faults injected so far."""

    def __init__(self, folder: Path, rng: random.Random, seed: int) -> None:
        self.folder = folder
        self.outside = Outside(folder, seed)
        self.journal = folder / "journal"
        self.server = Server(folder)
        self.members: list[Member] = []
        self.played: Counter[Fault] = Counter()
        self.kills: list[Kill] = []
        self.dismissed: list[int] = []
        self._rng = rng
        self._deck = Deck(rng)
        # The stopped processes to resume, by the timer that resumes them.
        self._pending: dict[asyncio.TimerHandle, Callable[[], None]] = {}

    @property
    def workers(self) -> list[Member]:
        """The members that run steps."""
        return [member for member in self.members if member.is_worker]

    @property
    def engines(self) -> list[Member]:
        """The members that run the engine's loops, and ask providers."""
        return self._named("engine")

    @property
    def apis(self) -> list[Member]:
        """The member that receives webhooks."""
        return self._named("api")

    @property
    def providers(self) -> list[Member]:
        """The member that is the provider. It is no part of Windlass, and is killed too."""
        return self._named("provider")

    def _named(self, name: str) -> list[Member]:
        return [member for member in self.members if member.name.startswith(name)]

    # Beginning and ending.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start engines and workers on a migrated server, and keep them running."""
        (self.folder / "logs").mkdir()
        self.journal.mkdir()
        self.outside.write_config()
        self.members.append(self._member("provider", command=self.outside.command))
        self.members.append(self._member("api", "serve", "api", "--listen", f"127.0.0.1:{self.outside.api_port}"))
        for place in range(ENGINES):
            self.members.append(self._member(f"engine-{place}", "serve", "engine"))
        # Two apps share the database and the default queue; each worker has the steps of one of them.
        for place, workload in enumerate([*[WORKLOAD] * WORKERS, OTHER_WORKLOAD]):
            arguments = ("worker", workload, "--no-loops", "--concurrency", str(WORKER_CONCURRENCY))
            self.members.append(self._member(f"worker-{place}", *arguments))
        supervising = asyncio.create_task(self._supervise())
        try:
            yield
        finally:
            supervising.cancel()
            await asyncio.gather(supervising, return_exceptions=True)
            self._end_everyone()

    def _member(self, name: str, *arguments: str, command: Sequence[str] | None = None) -> Member:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
        environment |= {
            "WINDLASS_DATABASE_URL": self.server.dsn,
            "WINDLASS_HOME": str(self.folder),
            "WINDLASS_SECRET": SECRET,
            FOLDER_VARIABLE: str(self.journal),
            **self.outside.environment,
        }
        command = command or [sys.executable, "-m", "windlass.testing.chaos.process", *arguments]
        return Member(name, command, environment, self.folder / "logs" / f"{name}.log")

    async def _supervise(self) -> None:
        while True:
            for member in self.members:
                member.supervise()
            await asyncio.sleep(SUPERVISE_EVERY_S)

    async def heal(self) -> None:
        """End every fault that still lasts: all processes run, and the server answers."""
        for timer in list(self._pending):
            self._undo(timer)
        await self.server.heal()
        await self.outside.heal()

    async def dismiss(self) -> list[str]:
        """Send SIGTERM to every member; return complaints about bad exit codes and processes left behind."""
        complaints: list[str] = []
        for member in self.members:
            member.is_wanted = False
            if (pid := member.pid) is not None:
                send(pid, signal.SIGTERM)
                self.dismissed.append(pid)
        for member in self.members:
            code = await self._exit_code(member)
            if code != 0:
                complaints.append(f"{member.name} ended with {code} when it was told to stop")
        return complaints + await self._orphans()

    @staticmethod
    async def _exit_code(member: Member) -> int | None:
        if (process := member.process) is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, STOP_WITHIN_S)
        return process.poll()

    async def _orphans(self) -> list[str]:
        deadline_s = time.monotonic() + ORPHANS_WITHIN_S
        while left := [(member.name, pid) for member in self.members for pid in member.left_behind()]:
            if time.monotonic() > deadline_s:
                return [f"process {pid} of {name} outlived it" for name, pid in left]
            await asyncio.sleep(0.2)
        return []

    def _end_everyone(self) -> None:
        for member in self.members:
            member.is_wanted = False
            for pid in [*member.everyone(), *member.left_behind()]:
                send(pid, signal.SIGKILL)
            if member.process is not None:
                member.process.wait()

    # Faults.

    async def torment(self, seconds: float, say: Callable[[str], None]) -> None:
        """Play the deck for this long, at an even pace."""
        self.outside.torment()
        began_s = time.monotonic()
        pace_s = 60.0 / FAULTS_A_MINUTE
        turn = 0
        while time.monotonic() - began_s < seconds:
            turn += 1
            await asyncio.sleep(max(0.02, began_s + turn * pace_s - time.monotonic()))
            fault = await self._play_one()
            if fault is not None:
                self.played[fault] += 1
                say(f"{time.monotonic() - began_s:6.1f} s  {fault}")

    async def _play_one(self) -> Fault | None:
        for _ in range(TRIES):
            if (fault := self._deck.draw(self._can_play)) is None:
                return None
            try:
                if await self._play(fault):
                    return fault
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                # The victim ended meanwhile, or the server is away: another card is tried.
                pass
            self._deck.put_back(fault)
        return None

    def _can_play(self, fault: Fault) -> bool:
        match fault:
            case Fault.WORKER_STOPPED | Fault.MACHINE_STOPPED:
                return self._count_stopped(self.workers) < WORKERS_STOPPED_MAX and bool(self._awake(self.workers))
            case Fault.ENGINE_STOPPED:
                return self._count_stopped(self.engines) < ENGINES_STOPPED_MAX and bool(self._awake(self.engines))
            case Fault.WORKER_KILLED | Fault.MACHINE_KILLED | Fault.HEARTBEAT_KILLED | Fault.HEARTBEAT_STOPPED:
                return bool(self._awake(self.workers))
            case Fault.CHILD_KILLED:
                return any(member.busy_child() for member in self._awake(self.workers))
            case Fault.ENGINE_KILLED:
                return bool(self._awake(self.engines))
            case Fault.API_KILLED | Fault.API_STOPPED:
                return bool(self._awake(self.apis))
            case Fault.PROVIDER_KILLED:
                return bool(self._awake(self.providers))
            case _:
                return self.server.is_up

    async def _play(self, fault: Fault) -> bool:
        match fault:
            case Fault.POSTMASTER_KILLED:
                return self.server.crash(signal.SIGKILL)
            case Fault.POSTMASTER_QUIT:
                return self.server.crash(signal.SIGQUIT)
            case Fault.SERVER_AWAY:
                return self.server.leave(self._deck.stop_s(fault))
            case Fault.SERVER_READ_ONLY:
                return await self.server.become_read_only(self._deck.stop_s(fault))
            case Fault.BACKEND_KILLED | Fault.BACKEND_STOPPED | Fault.BACKEND_TERMINATED:
                return await self._hurt_backend(fault)
            case Fault.ENGINE_KILLED | Fault.ENGINE_STOPPED:
                return self._hurt_one(fault, self.engines)
            case Fault.API_KILLED | Fault.API_STOPPED:
                return self._hurt_one(fault, self.apis)
            case Fault.PROVIDER_KILLED:
                return self._hurt_one(fault, self.providers)
            case Fault.CHILD_KILLED:
                busy = [pid for member in self._awake(self.workers) if (pid := member.busy_child()) is not None]
                return bool(busy) and send(self._rng.choice(busy), signal.SIGKILL)
            case _:
                return self._hurt_one(fault, self.workers)

    def _hurt_one(self, fault: Fault, members: list[Member]) -> bool:
        # The only member may have ended a moment ago.
        awake = self._awake(members)
        return bool(awake) and self._hurt_member(fault, self._rng.choice(awake))

    def _hurt_member(self, fault: Fault, member: Member) -> bool:
        pid = member.pid
        match fault:
            case Fault.WORKER_KILLED | Fault.ENGINE_KILLED | Fault.API_KILLED | Fault.PROVIDER_KILLED:
                if pid is not None and member.is_worker:
                    self.kills.append(Kill(pid, time.time()))
                return member.kill()
            case Fault.MACHINE_KILLED:
                if pid is not None:
                    self.kills.append(Kill(pid, time.time(), is_machine=True))
                return member.kill(whole_group=True)
            case Fault.HEARTBEAT_KILLED | Fault.HEARTBEAT_STOPPED:
                heartbeat = member.heartbeat()
                if heartbeat is None:
                    return False
                if fault is Fault.HEARTBEAT_KILLED:
                    return send(heartbeat, signal.SIGKILL)
                self._after(self._deck.stop_s(fault), lambda: self._wake_heartbeat(member, heartbeat))
                return send(heartbeat, signal.SIGSTOP)
            case _:
                halted = member.halt(whole_group=fault is Fault.MACHINE_STOPPED)
                if halted is not None:
                    self._after(self._deck.stop_s(fault), lambda: member.go_on(halted))
                return halted is not None

    @staticmethod
    def _wake_heartbeat(member: Member, heartbeat: int) -> None:
        if heartbeat in member.everyone() or heartbeat in member.left_behind():
            send(heartbeat, signal.SIGCONT)

    async def _hurt_backend(self, fault: Fault) -> bool:
        backends = await self.server.backends()
        if not backends:
            return False
        victim = self._rng.choice(backends)
        match fault:
            case Fault.BACKEND_KILLED:
                return await self.server.kill_backend(victim)
            case Fault.BACKEND_TERMINATED:
                return await self.server.terminate_backend(victim)
            case _:
                if self.server.halt_backend(victim):
                    self._after(self._deck.stop_s(fault), lambda: self.server.release_backend(victim))
                    return True
                return False

    def _after(self, seconds: float, undo: Callable[[], None]) -> None:
        """Undo a fault later; at the latest when the cluster is healed."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle = loop.call_later(seconds, lambda: self._undo(timer))
        self._pending[timer] = undo

    def _undo(self, timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        self._pending.pop(timer)()

    @staticmethod
    def _awake(members: list[Member]) -> list[Member]:
        return [member for member in members if member.pid is not None and not member.is_stopped]

    @staticmethod
    def _count_stopped(members: list[Member]) -> int:
        return sum(member.is_stopped for member in members)
