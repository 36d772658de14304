"""The stream of all jobs: nothing is missed and nothing is told twice, however writers and readers come and go."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import asyncpg
import pytest

from tests.api.streams.script import finish, submit, told, write_event
from tests.api.streams.stage import Client, Stage, staged
from tests.engine.rig import Rig
from windlass.api import hub
from windlass.engine import feed
from windlass.pure.cursor import parse_feed_id
from windlass.views import read


@pytest.mark.covers("SCR-17", "SCR-93", "SCR-97")
async def test_a_job_is_told_from_its_submission_to_its_end(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        client = await stage.feed()
        job = await submit(rig, labels={"corpus": "docs"})
        await finish(rig)
        await client.until(lambda: len(client.ids) == 3)
        assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert client.headers["cache-control"] == "no-store, no-transform"
        assert client.headers["x-accel-buffering"] == "no"
        assert client.frames[0].event == "open"
        frames = [frame.data for frame in client.named("job")]
        assert [data["type"] for data in frames] == ["job.submitted", "job.processing", "job.completed"]
        assert [data["status"] for data in frames] == ["QUEUED", "PROCESSING", "COMPLETED"]
        assert {data["job_id"] for data in frames} == {str(job)}
        assert {data["recipe"] for data in frames} == {"one"}
        assert frames[0]["labels"] == {"corpus": "docs"}
        assert [data["finished_at"] is not None for data in frames] == [False, False, True]


@pytest.mark.covers("SCR-92")
async def test_only_ones_own_jobs_are_told(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        ann, bob, eve = await stage.feed(), await stage.feed(caller="bob"), await stage.feed(caller="eve")
        for number in range(10):
            await submit(rig, "ann" if number % 2 else "bob")
        await finish(rig)
        await submit(rig, "eve")
        await ann.until(lambda: len(ann.ids) == 15)
        await bob.until(lambda: len(bob.ids) == 15)
        await eve.until(lambda: len(eve.ids) == 1)
        assert ann.ids == await told(rig.db, "ann")
        assert bob.ids == await told(rig.db, "bob")


async def test_everybodys_jobs_are_told_to_who_asks_for_them(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        subscription = await stage.hub.follow_caller("root", None, of="*")
        for caller in ("ann", "bob", "root"):
            await submit(rig, caller)
        seen = b""
        async with asyncio.timeout(60):
            while seen.count(b"event: job") < 3:
                seen += await subscription.next(1.0) or b""
        subscription.close()
    assert [i in seen.decode() for i in await told(rig.db, None)] == [True] * 3


async def test_a_reader_who_comes_back_with_any_id_gets_exactly_the_rest(rig: Rig) -> None:
    for _ in range(7):
        for number in range(20):
            await submit(rig, "ann" if number % 2 else "bob")
        await finish(rig)
    history = await told(rig.db)
    assert len(history) == 210
    async with staged(rig.db) as stage:
        clients = await asyncio.gather(*(stage.feed(after) for after in history))
        # What comes while they read is told to all of them, after the rest.
        await submit(rig)
        whole = await told(rig.db)
        assert len(whole) == 211
        for number, client in enumerate(clients):
            await client.until(lambda c=client: c.ids and c.ids[-1] == whole[-1])  # type: ignore[misc]
            assert client.ids == whole[number + 1 :]


async def test_a_lower_transaction_that_commits_last_is_not_missed(rig: Rig, dsn: str) -> None:
    first, second = await submit(rig), await submit(rig)
    early, late = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        async with staged(rig.db) as stage:
            client = await stage.feed()
            async with early.transaction():
                low = await write_event(early, first, 2)
                async with late.transaction():
                    high = await write_event(late, second, 2)
                assert low < high
                # The later one is committed, and must not be told before the earlier one is known.
                await stage.looks(3)
                assert client.ids == []
            await client.until(lambda: len(client.ids) == 2)
            assert [parse_feed_id(one)[1].at.txid for one in client.ids] == [low, high]
    finally:
        await early.close()
        await late.close()


async def test_a_jobs_events_are_told_in_their_order_whatever_their_transactions_are(rig: Rig, dsn: str) -> None:
    job, other = await submit(rig), await submit(rig)
    old, young = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        async with staged(rig.db) as stage:
            client = await stage.feed()
            async with old.transaction():
                # It has its number already when the younger one writes to the job first.
                await old.fetchval("SELECT pg_current_xact_id()::text")
                async with young.transaction():
                    await write_event(young, job, 2, "job.processing")
                    await write_event(young, other, 2, "job.processing")
                await write_event(old, job, 3, "job.completed")
            await client.until(lambda: len(client.ids) == 3)
            seen = [(frame.data["job_id"], frame.data["seq"]) for frame in client.named("job")]
            assert [seq for one, seq in seen if one == str(job)] == [2, 3]
            # Also for clients that come back in between.
            for number, after in enumerate(client.ids):
                again = await stage.feed(after)
                await submit(rig)
                await again.until(lambda a=again: a.ids and a.frames[-1].data["type"] == "job.submitted")  # type: ignore[misc]
                assert [(f.data["job_id"], f.data["seq"]) for f in again.named("job")][: 2 - number] == seen[
                    number + 1 :
                ]
                again.hang_up()
    finally:
        await old.close()
        await young.close()


async def _keep_following(stage: Stage, rng: random.Random, whole: asyncio.Future[int]) -> list[str]:
    """A client that loses its connection again and again, and goes on after the last id that it has."""
    ids: list[str] = []
    after: str | None = None
    client: Client | None = None
    while not whole.done() or len(ids) < whole.result():
        client = await stage.feed(after)
        stop_at = len(client.ids) + rng.randrange(1, 40)
        try:
            async with asyncio.timeout(rng.random()):
                while len(client.ids) < stop_at and not (whole.done() and len(ids) + len(client.ids) >= whole.result()):
                    await client.read()
        except TimeoutError:
            pass
        ids += client.ids
        after = client.last_id
        client.hang_up()
    return ids


@pytest.mark.slow
async def test_readers_who_come_and_go_while_many_write_miss_nothing(rig: Rig) -> None:
    whole: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with staged(rig.db) as stage:
        first = await stage.feed()
        readers = [asyncio.create_task(_keep_following(stage, random.Random(n), whole)) for n in range(6)]
        await stage.until(lambda: stage.hub.count == 7)

        async def write(caller: str) -> None:
            for _ in range(60):
                await submit(rig, caller)

        async def work() -> None:
            done = 0
            while done < 180:
                done += await finish(rig, 7)

        await asyncio.gather(write("ann"), write("ann"), write("bob"), work())
        history = await told(rig.db)
        assert len(history) == 360
        whole.set_result(len(history))
        async with asyncio.timeout(60):
            found = await asyncio.gather(*readers)
        await first.until(lambda: len(first.ids) == len(history))
        # An id also says from where the feed is read again, which depends on what one look of the hub found.
        assert [*map(event_of, first.ids)] == [*map(event_of, history)]
        for ids in found:
            assert [*map(event_of, ids)] == [*map(event_of, history)]


def event_of(feed_id: str) -> str:
    """The event that an id names: `epoch.event`, or `epoch.from+event` if it came before an earlier one."""
    return feed_id.partition("+")[2] or feed_id.partition(".")[2]


async def test_an_id_of_before_a_restore_resets_the_reader(rig: Rig) -> None:
    await submit(rig)
    [old] = await told(rig.db, epoch=1)
    async with staged(rig.db, epoch=2) as stage:
        client = await stage.feed(old)
        await client.until(lambda: len(client.frames) == 2)
        assert [frame.event for frame in client.frames] == ["open", "reset"]
        assert client.frames[1].data["after"] == client.frames[1].id
        await submit(rig)
        await client.until(lambda: len(client.ids) == 1)
        assert client.ids == (await told(rig.db, epoch=2))[1:]


@pytest.mark.parametrize("after", ["x", "1", "1.2", "1.5." + "0" * 32 + ".1+3", "1.99999999999." + "f" * 32 + ".1"])
async def test_an_id_that_was_never_given_is_refused(rig: Rig, after: str) -> None:
    async with staged(rig.db) as stage:
        assert (await stage.feed(after)).status == 400
        assert stage.hub.count == 0


class Gate:
    """The feed as the hub reads it, which can be stopped on its way to the database."""

    here = staticmethod(feed.here)
    events_of = staticmethod(read.events_of)

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.waiting = 0

    async def after(self, *given: Any, **named: Any) -> Any:
        self.waiting += 1
        await self.is_open.wait()
        self.waiting -= 1
        return await feed.after(*given, **named)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made = Gate()
    monkeypatch.setattr(hub, "feed", made)
    return made


async def test_who_comes_while_the_hub_looks_for_others_misses_nothing(rig: Rig, gate: Gate) -> None:
    async with staged(rig.db) as stage:
        await stage.feed()
        await stage.until(lambda: "ann" in stage.hub._feeds)
        gate.is_open.clear()
        await stage.until(lambda: gate.waiting == 1)
        # The look that is under way asks for ann's events only, and will end beyond bob's.
        bob = await stage.feed(caller="bob")
        await submit(rig, "bob")
        await submit(rig, "ann")
        gate.is_open.set()
        await bob.until(lambda: len(bob.ids) == 1)
        assert bob.ids == await told(rig.db, "bob")


async def test_who_goes_while_the_hub_looks_leaves_nothing_behind(rig: Rig, gate: Gate) -> None:
    async with staged(rig.db) as stage:
        await stage.feed()
        await stage.until(lambda: "ann" in stage.hub._feeds)
        gate.is_open.clear()
        await stage.until(lambda: gate.waiting == 1)
        bob = await stage.feed(caller="bob")
        bob.hang_up()
        await stage.until(lambda: stage.hub.count == 1)
        gate.is_open.set()
        await stage.until(lambda: not stage.hub._tasks)
        assert list(stage.hub._feeds) == ["ann"]
