"""Followers of the feed have a task of their own, and an engine shows that it runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import DatabaseUnavailable
from windlass.engine.loops import followers as module
from windlass.engine.loops.duty import Done
from windlass.engine.loops.followers import Followers
from windlass.engine.loops.runner import Loops
from windlass.engine.submit import Webhook
from windlass.recipe.evaluator import shared_evaluator
from windlass.views import read

ONE = plan(task("a"))


class Counting:
    """A duty that counts its turns, and fails when it is told to."""

    def __init__(self, name: str, *answers: Done | Exception) -> None:
        self.name = name
        self.turns = 0
        self.is_over = asyncio.Event()
        self._answers = list(answers)

    async def run_once(self) -> Done:
        self.turns += 1
        if not self._answers:
            self.is_over.set()
            return Done(0)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Ear:
    """An observer of duties."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def looped(self, duty: str, count: int, seconds: float) -> None:
        assert seconds >= 0
        self.heard.append((duty, count))


async def engines(rig: Rig) -> list[tuple[object, ...]]:
    async with rig.db.connection() as connection:
        rows = await connection.fetch("SELECT id, host, pid, seen_at FROM windlass.engines")
    return [tuple(row) for row in rows]


async def test_each_duty_has_one_batch_a_look(rig: Rig) -> None:
    first, second = Counting("first", Done(2, is_more=True)), Counting("second", Done(1))
    ear = Ear()
    followers = Followers(rig.db, [first, second], observer=ear)  # type: ignore[arg-type]
    assert await followers.run_once()
    assert not await followers.run_once()
    assert ear.heard == [("first", 2), ("second", 1), ("first", 0), ("second", 0)]


async def test_a_duty_that_fails_does_not_keep_the_others_from_theirs(rig: Rig) -> None:
    bad, good = Counting("bad", ValueError("odd")), Counting("good")
    with pytest.raises(ValueError, match="odd"):
        await Followers(rig.db, [bad, good]).run_once()
    assert good.turns == 1


async def test_followers_go_on_after_a_fault_and_hear_the_bells(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "UNAVAILABLE_PAUSE_S", 0.0)
    monkeypatch.setattr(module, "IDLE_S", 600.0)
    monkeypatch.setattr(module, "RESTLESS_S", 0.0)
    duty = Counting("duty", DatabaseUnavailable("away"), ValueError("odd"), Done(3, is_more=True))
    followers = Followers(rig.db, [duty], every_s=0.0)
    await followers.start()
    try:
        await asyncio.wait_for(duty.is_over.wait(), 60)
        assert duty.turns >= 4
        assert followers.alive_s > 0
        assert "cannot continue now" in caplog.text
        assert "odd" in caplog.text
        duty.is_over.clear()
        await rig.submit(ONE)
        await asyncio.wait_for(duty.is_over.wait(), 60)
    finally:
        await followers.stop()
        await followers.stop()


async def test_an_engine_is_seen_while_it_runs(dsn: str, rig: Rig) -> None:
    ear = Ear()
    me = rig.ids.new()
    loops = Loops(
        rig.db,
        rig.artifacts,
        shared_evaluator(),
        new_id=rig.ids.new,
        spread=lambda: 0.0,
        observer=ear,  # type: ignore[arg-type]
        engine=(me, "here", 7),
    )
    await loops.start()
    async with asyncio.timeout(60):
        while not ear.heard:
            await asyncio.sleep(0.01)
    assert await engines(rig) == [(me, "here", 7, rig.clock.now())]
    assert loops.turned_s > 0
    await loops.stop()
    assert await engines(rig) == []


async def test_what_is_over_is_forgotten(rig: Rig) -> None:
    job = await rig.submit(ONE, correlation_id="c", webhook=Webhook("https://example.org", b"x"))
    await rig.run_out()
    async with rig.db.connection() as connection:
        for name, ago_s in (("old", 86_401), ("new", 10)):
            then = rig.clock.now() - timedelta(seconds=ago_s)
            await connection.execute(
                "INSERT INTO windlass.engines VALUES ($1, $2, 1, $3, $3)", rig.ids.new(), name, then
            )
            await connection.execute(
                "INSERT INTO windlass.tickets VALUES ($1, '{}', NULL, $2)", name.encode(), then + timedelta(minutes=1)
            )
    await rig.loops.pruner.run_once()
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT array_agg(host) FROM windlass.engines") == ["new"]
        assert await connection.fetchval("SELECT array_agg(digest) FROM windlass.tickets") == [b"new"]
        assert await connection.fetchval("SELECT count(*) FROM windlass.webhooks") == 1
    rig.clock.advance("31d")
    assert (await rig.loops.pruner.run_once()).count == 1
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.webhooks") == 0
    assert [view.id for view in await read.jobs(rig.db, with_deleted=True)] != [job]


async def test_a_database_that_is_away_when_the_engine_leaves_is_no_matter(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = (rig.ids.new(), "here", 7)
    loops = Loops(rig.db, rig.artifacts, shared_evaluator(), new_id=rig.ids.new, spread=lambda: 0.0, engine=me)
    await loops.start()

    async def away(_: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(rig.db, "attempt", away)
    await loops.stop()
