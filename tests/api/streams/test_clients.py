"""Clients of every kind: slow ones, dead ones, too many of them; and what they may cost."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.api.streams.script import finish, submit, told
from tests.api.streams.stage import staged
from tests.engine.rig import Rig
from windlass.api import hub, sse

ROOT = Path(__file__).parents[3]


class Heard:
    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.reasons: list[str] = []

    def streams(self, kind: str, change: int) -> None:
        self.open[kind] = self.open.get(kind, 0) + change

    def dropped(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.mark.covers("SCR-94")
async def test_silence_is_filled_with_heartbeats(rig: Rig) -> None:
    assert sse.HEARTBEAT_S == 25.0
    async with staged(rig.db, heartbeat_s=0.02) as stage:
        for client in (await stage.feed(), await stage.job(await submit(rig))):
            await client.until(lambda c=client: c.heartbeats >= 3)  # type: ignore[misc]
            known = len(client.frames)
            await submit(rig)
            await finish(rig)
            await client.until(lambda c=client, k=known: len(c.frames) > k)  # type: ignore[misc]


@pytest.mark.covers("SCR-96")
async def test_a_client_that_stops_reading_is_cut_off_and_fifty_others_get_everything(rig: Rig) -> None:
    heard = Heard()
    labels = {f"label{number}": "x" * 250 for number in range(12)}
    async with staged(rig.db, send_bytes=8192, send_max_s=600, meters=heard) as stage:
        stalled = await stage.feed(receive_bytes=4096)
        others = [await stage.feed() for _ in range(50)]
        whole: list[int] = []
        reading = [asyncio.create_task(client.until(lambda c=client: [len(c.ids)] == whole)) for client in others]  # type: ignore[misc]
        for _ in range(200):
            for _ in range(10):
                await submit(rig, labels=labels)
            await finish(rig)
            if heard.reasons:
                break
        # A reader looks at `whole` when something comes, so one more has to.
        whole.append(len(await told(rig.db)) + 1)
        await submit(rig)
        history = await told(rig.db)
        async with asyncio.timeout(60):
            await asyncio.gather(*reading)
        assert all(client.ids == history for client in others)
        await stage.until(lambda: stage.hub.count == 50)
        assert heard.reasons == ["slow"]
        assert heard.open == {"jobs": 50}
        # Its connection is gone, not only its slot.
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, AssertionError)):
            await stalled.until(lambda: len(stalled.ids) == len(history))


async def test_a_client_that_takes_nothing_of_a_long_history_is_cut_off(rig: Rig) -> None:
    heard = Heard()
    labels = {f"label{number}": "x" * 250 for number in range(40)}
    async with staged(rig.db, send_bytes=8192, send_max_s=0.2, meters=heard) as stage:
        start = (await stage.feed()).last_id
        for _ in range(200):
            await submit(rig, labels=labels)
        await stage.feed(start, receive_bytes=4096)
        await stage.until(lambda: heard.reasons == ["slow"])
        await stage.until(lambda: stage.hub.count == 1)


async def test_a_client_that_hangs_up_frees_its_slot(rig: Rig) -> None:
    job = await submit(rig)
    async with staged(rig.db, per_caller_max=2) as stage:
        for _ in range(3):
            clients = [await stage.feed(), await stage.job(job)]
            assert (await stage.feed()).status == 429
            for client in clients:
                client.hang_up()
            await stage.until(lambda: stage.hub.count == 0)
        assert not stage.hub._feeds
        assert not stage.hub._jobs


async def test_a_client_process_that_is_killed_frees_its_slot(rig: Rig) -> None:
    job = await submit(rig)
    async with staged(rig.db) as stage:
        for path in ("/jobs/stream", f"/jobs/{job}/stream"):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.api.streams.stalling_client",
                str(stage.port),
                path,
                "ann",
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdout is not None
            assert await process.stdout.readline() == b"HTTP/1.1 200\n"
            assert stage.hub.count == 1
            process.kill()
            await process.wait()
            await stage.until(lambda: stage.hub.count == 0)


async def test_streams_have_a_limit_for_a_caller_and_for_all(rig: Rig) -> None:
    async with staged(rig.db, per_caller_max=2, streams_max=3) as stage:
        statuses = [(await stage.feed(caller=caller)).status for caller in ("ann", "ann", "ann", "bob", "bob", "eve")]
        assert statuses == [200, 200, 429, 200, 429, 429]
        assert stage.hub.count == 3


async def test_one_listening_connection_is_enough_for_all_streams(rig: Rig) -> None:
    jobs = [await submit(rig) for _ in range(50)]
    async with staged(rig.db) as stage:
        clients = await asyncio.gather(*(stage.job(job) for job in jobs for _ in range(5)))
        clients += await asyncio.gather(*(stage.feed() for _ in range(250)))
        assert stage.hub.count == 500
        async with rig.db.connection() as connection:
            rows = await connection.fetch(
                "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert sum(row["query"].startswith("LISTEN") for row in rows) == 1
        assert len(rows) <= 8
        await finish(rig)
        for client in clients[:250]:
            await client.to_the_end()
        for client in clients[250:]:
            await client.until(lambda c=client: len(c.ids) == 100)  # type: ignore[misc]


async def test_a_stream_that_has_lasted_long_enough_is_sent_away(rig: Rig) -> None:
    assert hub.STREAM_MAX_S == 600.0
    now_s = [1000.0]
    async with staged(rig.db, clock=lambda: now_s[0]) as stage:
        client = await stage.feed()
        now_s[0] += 600
        await client.to_the_end()
        assert client.frames[-1].event == "bye"
        # And comes back to where it was.
        await submit(rig)
        again = await stage.feed(client.last_id)
        await again.until(lambda: len(again.ids) == 1)


async def test_a_revoked_caller_is_sent_away_and_nobody_else(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        ann, bob = await stage.feed(), await stage.feed(caller="bob")
        stage.hub.forget("ann")
        await ann.to_the_end()
        assert ann.frames[-1].event == "bye"
        await submit(rig, "bob")
        await bob.until(lambda: len(bob.ids) == 1)


async def test_a_server_that_stops_says_goodbye(rig: Rig) -> None:
    async with staged(rig.db) as stage:
        clients = [await stage.feed(), await stage.job(await submit(rig))]
        await stage.hub.stop()
        for client in clients:
            await client.to_the_end()
            assert client.frames[-1].event == "bye"
        late = await stage.feed()
        assert late.frames[0].event == "open"
        await late.to_the_end()
