"""Callers take turns in the router: neither many steps nor slow expressions of one hold up the others."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.plan import Node
from windlass.engine.loops import router as room
from windlass.views import read

EXPENSIVE = "[inputs.word]" + ".map(a, [a, a])" * 26


async def many(rig: Rig, node: Node, count: int, caller: str) -> list[UUID]:
    return [await rig.submit(plan(node), {"word": "sea", "flag": True}, caller=caller) for _ in range(count)]


async def ready(rig: Rig, jobs: list[UUID]) -> int:
    """How many of the jobs have a step that waits for the router."""
    return sum([(await rig.states(job)) == ["READY"] for job in jobs])


async def test_expensive_expressions_of_one_caller_do_not_hold_up_another(rig: Rig) -> None:
    rig.loops.router.patience_s = 0.05
    crowd = await many(rig, task("a", each=EXPENSIVE), 24, "crowd")
    await rig.loops.router.run_once()
    ada = await many(rig, task("a", when="inputs.word == 'sea'"), 3, "ada")
    while await ready(rig, ada):
        if not (await rig.loops.router.run_once()).count:
            await rig.loops.router.resolving()
    assert await ready(rig, crowd) >= 12, "they are being worked on still"
    assert [await rig.states(job) for job in ada] == [["QUEUED"]] * 3
    await rig.loops.router.close()


async def test_what_took_long_is_written_when_it_is_known(rig: Rig) -> None:
    rig.loops.router.patience_s = 0.0
    jobs = await many(rig, task("a", when="inputs.word == 'sea'"), 5, "ada")
    bad = await many(rig, task("a", each=EXPENSIVE), 1, "crowd")
    assert (await rig.loops.router.run_once()).count == 0
    await rig.loops.run_until_idle()
    assert await ready(rig, jobs + bad) == 0
    assert (await read.job(rig.db, bad[0])).error["code"] == "bad_expression"


async def test_started_loops_go_on_when_something_slow_is_known(rig: Rig) -> None:
    rig.loops.router.patience_s = 0.0
    (job,) = await many(rig, task("a", when="inputs.word == 'sea'"), 1, "ada")
    await rig.loops.start()
    while await ready(rig, [job]):
        await asyncio.sleep(0.01)
    await rig.loops.stop()
    assert await rig.states(job) == ["QUEUED"]


async def test_a_caller_with_many_steps_does_not_hold_up_another(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BATCH_MAX", 5)
    crowd = await many(rig, task("a", when="inputs.flag"), 30, "crowd")
    bob = await many(rig, task("a", when="inputs.flag"), 12, "bob")
    ada = await many(rig, task("a", when="inputs.flag"), 1, "ada")
    for _ in range(3):
        assert (await rig.loops.router.run_once()).is_more
    assert (await ready(rig, crowd), await ready(rig, bob), await ready(rig, ada)) == (25, 7, 0)
    await rig.loops.run_until_idle()
    assert await ready(rig, crowd + bob) == 0
