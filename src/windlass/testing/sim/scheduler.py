"""Virtual time and the choice of who acts next.

Everything runs in one asyncio task. A simulated process has one or more strands, each a coroutine that runs until its
next point: a place where a real process could be interrupted, which is before every statement that commits. At a
point the seeded scheduler decides who goes on. A process that is killed is never resumed, so nothing of its `finally`
runs; one that is paused misses its turns while time goes on.
"""

from __future__ import annotations

import contextlib
import math
import random
import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2030, 1, 1, tzinfo=UTC)
ECHO_CHANCE = 0.2
_POINT = object()


class Dead(BaseException):
    """Raised into what a dead process left behind, when it is cleared away after the run."""


@types.coroutine
def _reach_point() -> Generator[object, None, None]:
    yield _POINT


@dataclass(eq=False)
class Process:
    """What lives and dies together."""

    name: str
    restart: Callable[[], None] | None = None
    paused_until: float = 0.0
    is_dead: bool = False


@dataclass(eq=False)
class Strand:
    """One coroutine of a process."""

    process: Process
    body: Coroutine[Any, Any, None]
    wake_at: float = 0.0
    # When a bell that it has heard rings for it again, of itself.
    echo_at: float = math.inf
    hears_bells: bool = False
    is_over: bool = False
    # Whether it goes on as long as its process does.
    is_lasting: bool = True

    @property
    def due_at(self) -> float:
        """When it can go on at the earliest."""
        return max(self.wake_at, self.process.paused_until)


class _Turn:
    """Runs a strand to its next point; whatever it awaits of the event loop is passed on."""

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
    """`now` is in seconds since START. `crashes` are exceptions that no process should have let through."""

    rng: random.Random
    bell_chance: float = 0.7
    now: float = 0.0
    turns: int = 0
    strands: list[Strand] = field(default_factory=list)
    graves: list[Strand] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    current: Strand | None = None
    is_over: bool = False

    def moment(self) -> datetime:
        """The virtual time as the database sees it."""
        return START + timedelta(microseconds=round(self.now * 1_000_000))

    def now_ms(self) -> int:
        """The same for ids."""
        return int(self.moment().timestamp() * 1000)

    def spawn(self, process: Process, body: Coroutine[Any, Any, None], after_s: float = 0.0) -> Strand:
        """Let a strand begin."""
        strand = Strand(process, body, self.now + after_s)
        self.strands.append(strand)
        return strand

    def spawn_here(self, body: Coroutine[Any, Any, None]) -> Strand:
        """Let another strand of the current process begin."""
        strand = self.spawn(self._strand().process, body)
        strand.is_lasting = False
        return strand

    async def point(self) -> None:
        """Let others act here, if the scheduler so decides."""
        strand = self._strand()
        strand.wake_at = self.now
        await _reach_point()
        self._strand()

    async def sleep(self, seconds: float, *, hears_bells: bool = False) -> None:
        """Let virtual time pass; a bell ends it early."""
        strand = self._strand()
        strand.wake_at = self.now + max(seconds, 0.0)
        strand.hears_bells = hears_bells
        if hears_bells and self.now <= strand.echo_at < strand.wake_at:
            strand.wake_at = strand.echo_at
            strand.echo_at = math.inf
        await _reach_point()
        strand.hears_bells = False
        self._strand()

    async def die(self) -> None:
        """The current process is killed here and now."""
        self.kill(self._strand().process)
        await _reach_point()
        raise Dead

    def kill(self, process: Process) -> None:
        """End a process without a word; whoever watches over it starts it again."""
        process.is_dead = True
        self.graves += [strand for strand in self.strands if strand.process is process]
        self.strands = [strand for strand in self.strands if strand.process is not process]
        if process.restart is not None:
            process.restart()

    def ring(self) -> None:
        """Bells were rung in a commit: each listener hears it, does not, or hears it twice."""
        for strand in self.strands:
            if strand.hears_bells and strand.wake_at > self.now and self.rng.random() < self.bell_chance:
                strand.wake_at = self.now
                if self.rng.random() < ECHO_CHANCE:
                    strand.echo_at = self.now + self.rng.uniform(0.0, 3.0)

    def wake(self, name: str, at: float) -> None:
        """Whoever waits in the process of this name for what comes from outside goes on at this time, or before."""
        for strand in self.strands:
            if strand.process.name == name and strand.hears_bells:
                strand.wake_at = min(strand.wake_at, max(at, self.now))

    def nudge(self) -> None:
        """What the current process sleeps over has changed: its other strands look again."""
        current = self._strand()
        for strand in self.strands:
            if strand.process is current.process and strand.hears_bells and strand.wake_at > self.now:
                strand.wake_at = self.now

    def _strand(self) -> Strand:
        if self.current is None or self.is_over or self.current.process.is_dead:
            raise Dead
        return self.current

    async def turn(self) -> bool:
        """Let one strand act, moving time on if none can; False when nothing will ever happen again."""
        self.strands = [strand for strand in self.strands if not strand.is_over]
        if not self.strands:
            return False
        ready = [strand for strand in self.strands if strand.due_at <= self.now]
        if not ready:
            self.now = min(strand.due_at for strand in self.strands)
            ready = [strand for strand in self.strands if strand.due_at <= self.now]
        elif self.rng.random() < 0.2:
            # Statements take time, now and then a long time.
            self.now += self.rng.expovariate(1 / 0.03) if self.rng.random() < 0.97 else self.rng.uniform(0, 4)
        self.turns += 1
        self.current = strand = self.rng.choice(ready)
        try:
            await _Turn(strand)
        except Dead:
            strand.is_over = True
        except Exception as error:
            strand.is_over = True
            self.crashes.append(f"{strand.process.name} crashed at {self.now:.3f} s: {error!r}")
        finally:
            self.current = None
        return True

    def clear(self) -> None:
        """Close what was left behind; nothing that it does on the way counts."""
        self.is_over = True
        for strand in self.strands + self.graves:
            with contextlib.suppress(BaseException):
                strand.body.close()
