"""The tests that every bus must pass, for pytest: derive a class that opens and cuts off buses, and run it.

```python
from windlass.testing.bus_conformance import BusConformance

class TestAcme(BusConformance):
    async def open(self):                # a bus, as in a separate process; the suite closes it
        return AcmeBus("acme://localhost")

    async def cut_off(self):             # end every connection, as a restart of the server does
        await acme_restart()
```

Each test states one promise of `windlass.bus.port.Bus`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

from windlass.bus.port import Bus
from windlass.core.bell import Bell, JobsEnded, KeyRevoked, RouteDue, ToldOutput, WorkQueued

WITHIN_S = 20.0
_JOBS = tuple(UUID(int=number) for number in range(1, 601))

B = TypeVar("B", bound=Bell)


class Ear:
    """Collects the bells that a listener heard."""

    def __init__(self) -> None:
        self.heard: list[Bell] = []
        self._news = asyncio.Event()

    def hear(self, bell: Bell) -> None:
        """Record a bell."""
        self.heard.append(bell)
        self._news.set()

    async def until(self, is_enough: Callable[[list[Bell]], bool]) -> None:
        """Wait until the heard bells satisfy the condition."""
        async with asyncio.timeout(WITHIN_S):
            while not is_enough(self.heard):
                self._news.clear()
                await self._news.wait()


class BusConformance:
    """Derive a class from it that implements `open` and `cut_off`; the module shows how."""

    async def open(self) -> Bus:
        """Open a bus, as a separate process would."""
        raise NotImplementedError

    async def cut_off(self) -> None:
        """End the connections of every open bus."""
        raise NotImplementedError

    @asynccontextmanager
    async def _two(self) -> AsyncIterator[tuple[Bus, Bus]]:
        one, other = await self.open(), await self.open()
        try:
            yield one, other
        finally:
            await one.close()
            await other.close()

    def test_a_bell_is_heard_by_every_process_also_by_its_own(self) -> None:
        """Every listener of its kind hears a bell with all its fields; listeners of other kinds do not."""

        async def test() -> None:
            async with self._two() as (ringer, other):
                ears = [Ear(), Ear(), Ear()]
                await ringer.listen(WorkQueued, ears[0].hear)
                await other.listen(WorkQueued, ears[1].hear)
                await other.listen(RouteDue, ears[2].hear)
                bell = WorkQueued(("a", "b.c"))
                ringer.ring([bell])
                for ear in ears[:2]:
                    await ear.until(lambda heard: bell in heard)
                assert all(isinstance(heard, RouteDue) for heard in ears[2].heard)

        asyncio.run(test())

    def test_everything_that_a_bell_says_arrives(self) -> None:
        """Fields arrive whole: an output, text that is not ASCII, more ids than one message holds."""

        async def test() -> None:
            async with self._two() as (ringer, other):
                ear = Ear()
                await other.listen(JobsEnded, ear.hear)
                await other.listen(KeyRevoked, ear.hear)
                told = JobsEnded(_JOBS[:1], ToldOutput(7, '{"text": "a, b"}'))
                key = KeyRevoked("key", "Ärzte ohne Grenzen")
                ringer.ring([told, key, JobsEnded(_JOBS)])
                await ear.until(lambda heard: told in heard and key in heard and _jobs(heard) == set(_JOBS))

        asyncio.run(test())

    def test_ringing_returns_at_once_and_many_bells_all_arrive(self) -> None:
        """Bells of a burst may be merged, but all their fields arrive."""

        async def test() -> None:
            async with self._two() as (ringer, other):
                ear = Ear()
                await other.listen(JobsEnded, ear.hear)
                for job in _JOBS:
                    ringer.ring([JobsEnded((job,))])
                await ear.until(lambda heard: _jobs(heard) == set(_JOBS))

        asyncio.run(test())

    def test_a_hearer_looks_when_it_begins_to_hear(self) -> None:
        """Earlier bells are unknown, so the first bell has no fields. That holds for a second listener too."""

        async def test() -> None:
            async with self._two() as (bus, _):
                for _ in range(2):
                    ear = Ear()
                    await bus.listen(WorkQueued, ear.hear)
                    assert WorkQueued() in ear.heard

        asyncio.run(test())

    def test_a_bus_that_was_cut_off_comes_back_and_says_so(self) -> None:
        """Listeners hear one empty bell after the cut, then new bells; the ringer's bells go out again too."""

        async def test() -> None:
            async with self._two() as (ringer, other):
                ear = Ear()
                await other.listen(WorkQueued, ear.hear)
                ringer.ring([WorkQueued(("before",))])
                await ear.until(lambda heard: WorkQueued(("before",)) in heard)
                ear.heard.clear()
                losses = other.health().losses
                await self.cut_off()
                await ear.until(lambda heard: WorkQueued() in heard)
                assert other.health().losses > losses
                ringer.ring([WorkQueued(("after",))])
                await ear.until(lambda heard: WorkQueued(("after",)) in heard)

        asyncio.run(test())

    def test_a_hearer_that_fails_keeps_no_other_from_hearing(self) -> None:
        """Neither the other listeners nor the bus suffer."""

        async def test() -> None:
            def fail(_: WorkQueued) -> None:
                raise RuntimeError("a hearer with a flaw")

            async with self._two() as (ringer, other):
                ear = Ear()
                await other.listen(WorkQueued, fail)
                await other.listen(WorkQueued, ear.hear)
                for queue in ("a", "b"):
                    bell = WorkQueued((queue,))
                    ringer.ring([bell])
                    await ear.until(_has(bell))

        asyncio.run(test())

    def test_closing_sends_what_waits_and_then_hears_nothing(self) -> None:
        """A bell of a process that rings and ends at once is heard. Ringing a closed bus does nothing."""

        async def test() -> None:
            async with self._two() as (brief, other):
                ear, own = Ear(), Ear()
                await other.listen(WorkQueued, ear.hear)
                await brief.listen(RouteDue, own.hear)
                brief.ring([WorkQueued(("last",))])
                await brief.close()
                await ear.until(lambda heard: WorkQueued(("last",)) in heard)
                own.heard.clear()
                brief.ring([RouteDue(), WorkQueued(("late",))])
                other.ring([RouteDue(), WorkQueued(("later",))])
                await ear.until(lambda heard: WorkQueued(("later",)) in heard)
                assert not own.heard and WorkQueued(("late",)) not in ear.heard

        asyncio.run(test())


def _has(bell: Bell) -> Callable[[list[Bell]], bool]:
    return lambda heard: bell in heard


def _jobs(heard: list[Bell]) -> set[UUID]:
    return {job for bell in heard if isinstance(bell, JobsEnded) for job in bell.jobs}
