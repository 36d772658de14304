"""A console's stream and what may go wrong: bad places, slow and dead clients, faults, and the end of the server."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api.streams.script import finish, submit, told
from tests.api.streams.stage import staged
from tests.api.streams.test_clients import Heard
from tests.api.streams.test_console import documents, events, say, whole
from tests.engine.rig import Rig, undisturbed
from windlass.api import console_stream, hub
from windlass.api.topics import TOPICS_MAX
from windlass.core.errors import DatabaseUnavailable
from windlass.core.note import Note
from windlass.engine import note

ID = "0199a1b2-0000-7000-8000-00000000000a"
BAD = [
    "",
    ",",
    "jobs,",
    "job",
    "job:",
    "JOBS",
    "jobs@",
    "jobs@x",
    "jobs@1.2",
    "job:1",
    "job:" + "0" * 32,
    "job:{" + "0" * 36 + "}",
    f"job:{ID}@",
    f"job:{ID}@-1",
    f"job:{ID}@+1",
    f"job:{ID}@1e3",
    f"job:{ID}@²",
    f"job:{ID}@٣",
    f"job:{ID}@99999999999",
    f"job:{ID}@4294967296",
    "jobs,jobs",
    f"job:{ID},job:{ID}@1",
    f"job:{ID},job:{ID.upper()}",
    "jobs\n",
    "jobs\x00",
    "jöbs",
    "☃" * 3_000,
    "jobs" + "@" * 9_000,
    ",".join(f"job:{UUID(int=n)}" for n in range(TOPICS_MAX + 1)),
]


async def test_topics_that_are_none_are_refused(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        for topics in BAD:
            # A URL that is too long is refused before it is read.
            assert (await stage.console(topics)).status in (400, 414), topics
        # By the header, which can hold less.
        for topics in BAD:
            if topics and topics.isascii() and topics.isprintable():
                assert (await stage.console("jobs", topics)).status == 400, topics
        assert stage.hub.count == 0


async def test_what_is_not_theirs_is_gone_and_the_rest_goes_on(rig: Rig) -> None:
    own, others, nobodys = await submit(rig), await submit(rig, "bob"), uuid4()
    async with staged(rig.db) as stage:
        client = await stage.console(f"job:{others}@0,job:{own}@0,job:{nobodys},jobs")
        await client.until(lambda: len(client.named("gone")) == 2)
        assert [frame.data for frame in client.named("gone")] == [
            {"topic": f"job:{others}", "code": "not_found"},
            {"topic": f"job:{nobodys}", "code": "not_found"},
        ]
        await client.until(lambda: events(client.frames, own) == [1])
        await submit(rig, "bob")
        last = await submit(rig)
        await client.until(lambda: str(last) in documents(client.frames))
        assert all(document["caller"] == "ann" for found in documents(client.frames).values() for document in found)
        assert str(others) not in str([frame.data for frame in client.named("patch")])


async def test_a_place_of_another_database_resets_every_topic(rig: Rig) -> None:
    job = await submit(rig)
    [old] = await told(rig.db, epoch=1)
    async with staged(rig.db, epoch=2) as stage:
        client = await stage.console(f"jobs@{old},job:{job}@0")
        await client.until(lambda: len(client.named("reset")) == 2)
        # Until it was told, a client that is cut off must come back with the old places.
        assert client.frames[0].data["cursor"] == f"jobs@{old},job:{job}@0"
        assert [frame.data["topic"] for frame in client.named("reset")] == ["jobs", f"job:{job}"]
        first, second = client.named("reset")
        assert first.data["cursor"] == first.id and second.data["cursor"] == second.id
        assert f"jobs@{old}" not in first.id
        assert first.id.endswith(f"job:{job}@0")
        assert second.id.endswith(f"job:{job}@1")
        new = await submit(rig)
        await client.until(lambda: str(new) in documents(client.frames))
        assert events(client.frames, job) == []


@pytest.mark.parametrize(
    "place", ["jobs@1.99999999999." + "f" * 32 + ".1", "job:{job}@2147483647", "job:{job}@99"], ids=str
)
async def test_a_place_of_the_future_is_a_reset(rig: Rig, place: str) -> None:
    job = await submit(rig)
    async with staged(rig.db) as stage:
        client = await stage.console(place.format(job=job))
        await client.until(lambda: bool(client.named("reset")))
        assert client.frames[0].id == place.format(job=job)
        new = await submit(rig) if place.startswith("jobs") else job
        await finish(rig)
        await client.until(lambda: str(new) in str([frame.data for frame in client.named("patch")]))


async def test_who_is_far_behind_is_reset(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_stream, "BEHIND_MAX", 5)
    job = await submit(rig)
    one = await rig.claim_one()
    async with staged(rig.db) as stage:
        start = (await stage.console("jobs")).last_id
        for number in range(10):
            await say(rig, one, float(number))
        for _ in range(10):
            await submit(rig)
        seq = (await whole(rig, job))[-1]
        # Events behind a transaction of the server itself come one by one, and the client would not be far behind.
        await undisturbed(rig.db)
        client = await stage.console(f"{start},job:{job}@2")
        await client.until(lambda: len(client.named("reset")) == 2)
        assert {frame.data["topic"] for frame in client.named("reset")} == {"jobs", f"job:{job}"}
        new = await submit(rig)
        await client.until(lambda: str(new) in documents(client.frames))
        await say(rig, one, 99.0)
        await client.until(lambda: events(client.frames, job) == [seq + 1])


async def test_a_client_that_stops_reading_is_cut_off_and_others_get_everything(rig: Rig) -> None:
    heard = Heard()
    made: list[UUID] = []
    labels = {f"label{number}": "x" * 250 for number in range(12)}
    async with staged(rig.db, send_bytes=8192, send_max_s=600, meters=heard) as stage:
        stalled = await stage.console("jobs", receive_bytes=4096)
        other = await stage.console("jobs")
        reading = asyncio.create_task(other.until(lambda: "last" in str(other.frames[-1].data)))
        async with asyncio.timeout(60):
            while not heard.reasons:
                made.extend([await submit(rig, labels=labels) for _ in range(20)])
                await finish(rig)
        made.append(await submit(rig, labels={"last": "yes"}))
        await reading
        assert heard.reasons == ["slow"]
        await stage.until(lambda: heard.open == {"console": 1})
        seen = documents(other.frames)
        assert seen.keys() == set(map(str, made))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, AssertionError)):
            await stalled.until(lambda: "last" in str(stalled.frames[-1].data))


async def test_a_client_that_takes_nothing_holds_little(rig: Rig) -> None:
    """What waits for it is a patch, what was gathered since, and what the hub lets lie."""
    async with staged(rig.db, send_bytes=8192, send_max_s=600) as stage:
        job = await submit(rig)
        one = await rig.claim_one()
        client = await stage.console(f"job:{job}", receive_bytes=4096)
        [stream] = stage.hub._all
        assert isinstance(stream, console_stream.ConsoleStream)
        async with asyncio.timeout(60):
            while not stream.is_over:
                notes = [Note(job, 0, one.attempt, progress_pct=float(n), message="x" * 500) for n in range(100)]
                await note.note(rig.db, notes)
                assert stream._lines <= console_stream.LINES_MAX
                # A look of the hub adds up to EACH_MAX events before the limit is checked again.
                assert sum(topic.waiting for topic in stream._topics) <= console_stream.BEHIND_MAX + hub.EACH_MAX
        client.hang_up()


async def test_silence_is_filled_with_heartbeats(rig: Rig) -> None:
    assert console_stream.HEARTBEAT_S == 15.0
    async with staged(rig.db, heartbeat_s=0.02) as stage:
        client = await stage.console(f"jobs,job:{await submit(rig)}")
        await client.until(lambda: client.heartbeats >= 3)
        job = await submit(rig)
        await client.until(lambda: str(job) in documents(client.frames))


async def test_a_server_that_stops_says_goodbye_and_what_waits_comes_first(rig: Rig) -> None:
    job = await submit(rig)
    async with staged(rig.db) as stage:
        client = await stage.console(f"jobs,job:{job}@0")
        await client.until(lambda: bool(client.named("patch")))
        await stage.hub.stop()
        await client.to_the_end()
        assert (client.frames[-1].event, client.frames[-1].data) == ("bye", {"reason": "the server stops"})
        assert stage.hub.count == 0
        late = await stage.console("jobs")
        await late.to_the_end()
        assert [frame.event for frame in late.frames] == ["open", "bye"]


async def test_nobody_stays_for_ever_and_a_caller_whose_key_is_revoked_goes_at_once(rig: Rig) -> None:
    async with staged(rig.db, stream_max_s=0.3) as stage:
        client = await stage.console("jobs")
        await client.to_the_end()
        assert client.frames[-1].data == {"reason": "come back"}
    async with staged(rig.db) as stage:
        ann, bob = await stage.console("jobs"), await stage.console("jobs", caller="bob")
        stage.hub.forget("ann")
        await ann.to_the_end()
        assert ann.frames[-1].data == {"reason": "a key was revoked"}
        job = await submit(rig, "bob")
        await bob.until(lambda: str(job) in documents(bob.frames))


async def test_a_database_that_is_away_loses_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await submit(rig)
    real, failures = console_stream.read_truth, 0

    async def failing(*given: Any) -> Any:
        nonlocal failures
        failures += 1
        if failures <= 3:
            raise DatabaseUnavailable("away")
        return await real(*given)

    monkeypatch.setattr(console_stream, "read_truth", failing)
    monkeypatch.setattr(console_stream, "AGAIN_S", 0.05)
    async with staged(rig.db) as stage:
        client = await stage.console(f"jobs,job:{job}@0")
        await finish(rig)
        await client.until(lambda: bool(client.named("gone")))
        assert failures > 3
        assert events(client.frames, job) == await whole(rig, job)
        assert str(job) in documents(client.frames)


async def test_a_fault_of_ours_ends_the_stream_with_a_word(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*given: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr(console_stream, "read_truth", broken)
    monkeypatch.setattr(console_stream, "AGAIN_S", 0.01)
    async with staged(rig.db) as stage:
        client = await stage.console("jobs")
        start = client.last_id
        await submit(rig)
        await client.to_the_end()
        assert client.frames[-1].data == {"reason": "an internal error"}
        # Nothing was told, and nothing is lost.
        assert client.last_id == start


async def test_a_client_that_goes_while_its_patch_is_made_leaves_nothing_behind(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, gate, waiting = console_stream.read_truth, asyncio.Event(), asyncio.Event()

    async def gated(*given: Any) -> Any:
        waiting.set()
        await gate.wait()
        return await real(*given)

    monkeypatch.setattr(console_stream, "read_truth", gated)
    async with staged(rig.db) as stage:
        client = await stage.console(f"jobs,job:{await submit(rig)}@0")
        await waiting.wait()
        client.hang_up()
        await stage.until(lambda: stage.hub.count == 0)
        gate.set()
        await stage.until(lambda: not stage.hub._tasks)
        assert not stage.hub._feeds and not stage.hub._jobs


async def test_a_stream_that_cannot_be_opened_takes_no_place(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*given: Any) -> Any:
        raise DatabaseUnavailable("away")

    async with staged(rig.db) as stage:
        monkeypatch.setattr(console_stream, "read_jobs", away)
        assert (await stage.console(f"jobs,job:{ID}")).status == 400
        assert stage.hub.count == 0
