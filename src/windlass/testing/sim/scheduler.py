"""Virtual time, and the choice of the next process.

Everything runs in one asyncio task. A simulated process has one or more strands. Each runs until its next point: a
place where a real process could be interrupted, which is before every statement that commits. At a point the seeded
scheduler decides which strand continues. A killed process is never resumed, so none of its `finally` blocks runs. A
paused process misses its turns while time goes on.

Most processes are plain coroutines (`Strand`). A process of real worker code has an asyncio loop (`sim/loop.py`): the
loop is one strand (`Beat`), and each operation that waits for the database is another (`Unit`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from windlass.bus.port import B
from windlass.core.bell import Bell
from windlass.testing.sim.loop import SimLoop, here

START = datetime(2030, 1, 1, tzinfo=UTC)
ECHO_CHANCE = 0.2
_POINT = object()


class Dead(BaseException):
    """Raised into the coroutines of a dead process, when they are cleared away after the run."""


@types.coroutine
def _reach_point() -> Generator[object, None, None]:
    yield _POINT


@dataclass(eq=False)
class Process:
    """A simulated process: its strands live and die together."""

    name: str
    restart: Callable[[], None] | None = None
    paused_until: float = 0.0
    is_dead: bool = False
    # The loop of a process that runs real worker code.
    loop: SimLoop | None = None
    # Whether it has work that must not be cut off when all jobs have ended.
    is_busy: Callable[[], bool] = lambda: False
    # Called with the queues in which a worker's slow check found work.
    looked: Callable[[Sequence[str]], Awaitable[None]] | None = None
    # How many of its connections broke, and until when a broken connection or a pause troubled it.
    losses: int = 0
    troubled_at: float = -math.inf

    def trouble(self, until: float) -> None:
        """Do not expect the process to be on time until then."""
        self.troubled_at = max(self.troubled_at, until)


@dataclass(eq=False)
class Strand:
    """One coroutine of a process."""

    process: Process
    body: Coroutine[Any, Any, None]
    wake_at: float = 0.0
    # When a bell that it has heard rings for it again.
    echo_at: float = math.inf
    hears_bells: bool = False
    is_over: bool = False

    @property
    def due_at(self) -> float:
        """The earliest time at which it can continue."""
        return max(self.wake_at, self.process.paused_until)

    async def go_on(self) -> None:
        """Run to the next point."""
        await _Turn(self)

    def close(self) -> None:
        """Close the coroutine."""
        self.body.close()


@dataclass(eq=False)
class Beat:
    """The loop of a process: its timers and ready callbacks."""

    process: Process
    loop: SimLoop
    hears_bells = is_over = False
    wake_at: float = 0.0

    @property
    def due_at(self) -> float:
        """The earliest time at which it can continue."""
        return max(self.loop.due_at(), self.process.paused_until)

    async def go_on(self) -> None:
        """Run until every task waits."""
        await self.loop.go_on()

    def close(self) -> None:
        """Close the tasks of the process."""
        self.loop.clear()


@dataclass(eq=False)
class Unit:
    """An operation of a process with a loop, which waits at a point."""

    process: Process
    loop: SimLoop
    turn: asyncio.Future[None]
    wake_at: float
    hears_bells = False
    is_over: bool = False

    @property
    def due_at(self) -> float:
        """The earliest time at which it can continue."""
        return max(self.wake_at, self.process.paused_until)

    async def go_on(self) -> None:
        """Let the operation act, and run the loop until every task waits."""
        self.is_over = True
        if not self.turn.done():
            self.turn.set_result(None)
        await self.loop.go_on()

    def close(self) -> None:
        """Do nothing: its loop clears it away."""


@dataclass(eq=False)
class Listener:
    """The callback of a process with a loop for a kind of bell."""

    process: Process
    loop: SimLoop
    kind: type[Any]
    hear: Callable[[Any], None]


class _Turn:
    """Runs a strand to its next point; anything that it awaits of the event loop is passed on."""

    def __init__(self, strand: Strand) -> None:
        self._strand = strand

    def __await__(self) -> Generator[Any, Any, None]:
        body = self._strand.body
        error: BaseException | None = None
        while True:
            try:
                awaited = body.send(None) if error is None else body.throw(error)
            except StopIteration:
                self._strand.is_over = True
                return
            if awaited is _POINT:
                return
            error = None
            try:
                yield awaited
            except BaseException as raised:
                error = raised


@dataclass
class Scheduler:
    """Chooses the next strand. `now` is in seconds since START. `crashes` holds exceptions that escaped a process."""

    rng: random.Random
    bell_chance: float = 0.7
    now: float = 0.0
    turns: int = 0
    strands: list[Strand | Beat | Unit] = field(default_factory=list)
    graves: list[Strand | Beat | Unit] = field(default_factory=list)
    listeners: list[Listener] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    current: Strand | Beat | Unit | None = None
    is_over: bool = False

    def moment(self) -> datetime:
        """Return the virtual time as the database sees it."""
        return START + timedelta(microseconds=round(self.now * 1_000_000))

    def now_ms(self) -> int:
        """Return the virtual time in milliseconds since 1970, for ids."""
        return int(self.moment().timestamp() * 1000)

    def spawn(self, process: Process, body: Coroutine[Any, Any, None], after_s: float = 0.0) -> Strand:
        """Start a strand."""
        strand = Strand(process, body, self.now + after_s)
        self.strands.append(strand)
        return strand

    def start(self, process: Process, main: Callable[[], Coroutine[Any, Any, None]], after_s: float = 0.0) -> SimLoop:
        """Start a process with a loop. When `main` returns, the process has ended."""
        process.loop = loop = SimLoop(lambda: self.now, lambda text: self._crash(process, text))  # type: ignore[abstract]

        def ended(task: asyncio.Task[None]) -> None:
            if (error := task.exception()) is not None:
                self._crash(process, repr(error))
            else:
                self.kill(process)

        loop.call_later(after_s, lambda: loop.create_task(main()).add_done_callback(ended))
        self.strands.append(Beat(process, loop))
        return loop

    def _crash(self, process: Process, text: str) -> None:
        self.crashes.append(f"{process.name} crashed at {self.now:.3f} s: {text}")

    async def point(self) -> None:
        """Let other strands act here, if the scheduler so decides."""
        strand = self._strand()
        if (loop := here()) is not None:
            turn = loop.create_future()
            self.strands.append(Unit(strand.process, loop, turn, self.now))
            await turn
            return
        strand.wake_at = self.now
        await _reach_point()
        self._strand()

    async def sleep(self, seconds: float, *, hears_bells: bool = False) -> None:
        """Let virtual time pass; a bell ends it early."""
        if here() is not None:
            await asyncio.sleep(seconds)
            return
        strand = self._strand()
        assert isinstance(strand, Strand)
        strand.wake_at = self.now + max(seconds, 0.0)
        strand.hears_bells = hears_bells
        if hears_bells and self.now <= strand.echo_at < strand.wake_at:
            strand.wake_at = strand.echo_at
            strand.echo_at = math.inf
        await _reach_point()
        strand.hears_bells = False
        self._strand()

    async def die(self) -> None:
        """Kill the current process here and now."""
        self.kill(self._strand().process)
        if (loop := here()) is not None:
            await loop.create_future()
        await _reach_point()
        raise Dead

    def kill(self, process: Process) -> None:
        """End a process at once; its `restart` starts it again."""
        process.is_dead = True
        if process.loop is not None:
            process.loop.is_dead = True
            self.listeners = [one for one in self.listeners if one.process is not process]
        self.graves += [strand for strand in self.strands if strand.process is process]
        self.strands = [strand for strand in self.strands if strand.process is not process]
        if process.restart is not None:
            process.restart()

    def ring(self, bells: Sequence[Bell]) -> None:
        """Ring these bells after a commit: each listener hears each of them once, twice, or not at all."""
        for strand in self.strands:
            if (
                isinstance(strand, Strand)
                and strand.hears_bells
                and strand.wake_at > self.now
                and self.rng.random() < self.bell_chance
            ):
                strand.wake_at = self.now
                if self.rng.random() < ECHO_CHANCE:
                    strand.echo_at = self.now + self.rng.uniform(0.0, 3.0)
        for one in self.listeners:
            for bell in bells:
                if isinstance(bell, one.kind) and self.rng.random() < self.bell_chance:
                    one.loop.call_soon(one.hear, bell)
                    if self.rng.random() < ECHO_CHANCE:
                        one.loop.call_later(self.rng.uniform(0.0, 3.0), one.hear, bell)

    def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Let a process with a loop hear bells of this kind; a process without a loop wakes at any bell."""
        if (loop := here()) is not None:
            self.listeners.append(Listener(self._strand().process, loop, kind, hear))
            loop.call_soon(hear, kind())

    def wake(self, name: str, at: float) -> None:
        """Wake the process of this name, if it waits for external news, at this time or before."""
        for strand in self.strands:
            if isinstance(strand, Strand) and strand.process.name == name and strand.hears_bells:
                strand.wake_at = min(strand.wake_at, max(at, self.now))

    def _strand(self) -> Strand | Beat | Unit:
        if self.current is None or self.is_over or self.current.process.is_dead:
            raise Dead
        return self.current

    async def turn(self) -> bool:
        """Let one strand act, moving time on if none can; return False when no strand is left."""
        self.strands = [strand for strand in self.strands if not strand.is_over]
        if not self.strands:
            return False
        ready = [strand for strand in self.strands if strand.due_at <= self.now]
        if not ready:
            self.now = min(strand.due_at for strand in self.strands)
            ready = [strand for strand in self.strands if strand.due_at <= self.now]
        elif self.rng.random() < 0.2:
            # Statements take time, sometimes a long time.
            self.now += self.rng.expovariate(1 / 0.03) if self.rng.random() < 0.97 else self.rng.uniform(0, 4)
        self.turns += 1
        self.current = strand = self.rng.choice(ready)
        try:
            await strand.go_on()
        except Dead:
            strand.is_over = True
        except Exception as error:
            strand.is_over = True
            self.crashes.append(f"{strand.process.name} crashed at {self.now:.3f} s: {error!r}")
        finally:
            self.current = None
        return True

    def clear(self) -> None:
        """Close all remaining strands; nothing that they do meanwhile counts."""
        self.is_over = True
        for strand in self.strands + self.graves:
            with contextlib.suppress(BaseException):
                strand.close()
