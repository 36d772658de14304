"""A simulated process has real asyncio tasks on virtual time, and the seed decides when it goes on."""

from __future__ import annotations

import asyncio
import random

from windlass.core.bell import JobsCancelled, WorkQueued
from windlass.testing.sim.scheduler import Process, Scheduler


async def until_over(scheduler: Scheduler) -> None:
    while await scheduler.turn():
        pass
    assert scheduler.crashes == []


async def test_an_hour_of_sleep_takes_no_time() -> None:
    scheduler = Scheduler(random.Random(1))
    woke: list[float] = []

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for hours in (3, 1, 2):
                group.create_task(nap(hours * 3600.0))

    async def nap(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woke.append(asyncio.get_running_loop().time())

    scheduler.start(Process("sleeper"), main)
    await until_over(scheduler)
    # Turns take a little time of their own.
    assert [round(at / 3600) for at in woke] == [1, 2, 3]


async def test_timeouts_and_cancellation_are_asyncios_own() -> None:
    scheduler = Scheduler(random.Random(1))
    told: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            told.append("asked to stop")
            raise

    async def main() -> None:
        try:
            async with asyncio.timeout(5):
                await stubborn()
        except TimeoutError:
            told.append(f"after {asyncio.get_running_loop().time() // 5:g} times 5 s")

    scheduler.start(Process("impatient"), main)
    await until_over(scheduler)
    assert told == ["asked to stop", "after 1 times 5 s"]


async def test_nothing_of_a_killed_process_goes_on() -> None:
    scheduler = Scheduler(random.Random(1))
    told: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().create_task(other())
        await asyncio.sleep(1)
        try:
            await scheduler.die()
        finally:
            told.append("finally")

    async def other() -> None:
        await asyncio.sleep(2)
        told.append("other")

    scheduler.start(Process("victim"), main)
    await until_over(scheduler)
    assert told == []


async def test_a_process_whose_main_returns_is_over_and_is_started_again() -> None:
    scheduler = Scheduler(random.Random(1))
    restarts: list[float] = []

    async def main() -> None:
        await asyncio.sleep(4)

    scheduler.start(Process("brief", restart=lambda: restarts.append(scheduler.now)), main)
    await until_over(scheduler)
    assert [at // 4 for at in restarts] == [1]


async def test_the_seed_decides_who_acts_at_a_point() -> None:
    async def order(seed: int) -> str:
        scheduler = Scheduler(random.Random(seed))
        acted: list[str] = []

        async def main(name: str) -> None:
            for _ in range(3):
                await scheduler.point()
                acted.append(name)

        for name in "ab":
            scheduler.start(Process(name), lambda name=name: main(name))  # type: ignore[misc]
        await until_over(scheduler)
        return "".join(acted)

    seen = [await order(seed) for seed in range(20)]
    assert seen == [await order(seed) for seed in range(20)]
    assert len(set(seen)) > 5


async def test_what_is_asked_of_the_real_loop_is_awaited_there() -> None:
    scheduler = Scheduler(random.Random(1))
    real = asyncio.get_running_loop()
    found: list[object] = []

    async def main() -> None:
        loop = scheduler.strands[0].process.loop
        assert loop is asyncio.get_running_loop()

        async def there() -> object:
            await asyncio.sleep(0)
            return asyncio.get_running_loop()

        found.append(await loop.real(there))

    scheduler.start(Process("asker"), main)
    await until_over(scheduler)
    assert found == [real]
    assert scheduler.now < 1


async def test_a_bell_is_heard_by_those_who_listen_to_its_kind() -> None:
    scheduler = Scheduler(random.Random(1), bell_chance=1.0)
    heard: list[object] = []

    async def main() -> None:
        scheduler.listen(WorkQueued, heard.append)
        await asyncio.sleep(10)

    scheduler.start(Process("listener"), main)
    await scheduler.turn()
    scheduler.ring([WorkQueued(("q",)), JobsCancelled()])
    await scheduler.turn()
    assert heard[:2] == [WorkQueued(), WorkQueued(("q",))]
    assert not any(isinstance(bell, JobsCancelled) for bell in heard)
