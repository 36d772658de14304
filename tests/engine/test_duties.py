"""A duty declares what wakes it; the runner knows none by name."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from tests.engine.rig import Rig
from tests.tidy.sources import SRC
from windlass.core.bell import PollDue
from windlass.core.lease import GAP_PART
from windlass.engine.loops import registry, runner
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty, look
from windlass.engine.loops.rescuer import GRACE_S, Rescuer
from windlass.engine.loops.runner import Loops
from windlass.engine.loops.waker import Waker
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.database import Database
from windlass.store.statements import _statements


class Sweeper(EngineDuty):
    """A duty as anybody might add one: it is woken by a bell, by time, or by a moment that the database gives."""

    name = "sweeper"
    bells = (PollDue,)
    turns: ClassVar[asyncio.Queue[str]]

    @classmethod
    def made(cls, engine: Engine) -> Sweeper:
        return cls()

    async def run_once(self) -> Done:
        self.turns.put_nowait(self.name)
        return Done(0)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[str]:
    monkeypatch.setattr(Sweeper, "turns", asyncio.Queue(), raising=False)
    monkeypatch.setattr(runner, "DUTIES", (*registry.DUTIES, Sweeper))
    monkeypatch.setattr(runner, "LOOK_EVERY_S", 60.0)
    return Sweeper.turns


def loops(db: Database, rig: Rig) -> Loops:
    return Loops(db, rig.artifacts, shared_evaluator(), new_id=rig.ids.new, chance=lambda: 0.0)


async def test_a_new_duty_is_woken_by_its_bell(rig: Rig, db: Database, turns: asyncio.Queue[str]) -> None:
    made = loops(db, rig)
    await made.start()
    try:
        await asyncio.wait_for(turns.get(), 10)  # at the start a bell may have been missed
        while not turns.empty():
            turns.get_nowait()
        db.bus.ring([PollDue()])
        assert await asyncio.wait_for(turns.get(), 10) == "sweeper"
    finally:
        await made.stop()


async def test_a_new_duty_is_done_when_its_moment_has_come(
    rig: Rig, db: Database, turns: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sweeper, "bells", ())
    monkeypatch.setitem(_statements(), "due_sweeper", "SELECT windlass.clock() - make_interval(secs => $1::float8)")
    monkeypatch.setattr(Sweeper, "due", Due("due_sweeper", (1.0,)))
    made = loops(db, rig)
    assert "sweeper" in await made.moments()
    await made.start()
    try:
        assert await asyncio.wait_for(turns.get(), 10) == "sweeper"
    finally:
        await made.stop()


async def test_a_new_duty_is_done_every_so_often(
    rig: Rig, db: Database, turns: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sweeper, "bells", ())
    monkeypatch.setattr(Sweeper, "every_s", 3600.0)
    made = loops(db, rig)
    await made.start()
    try:
        assert await asyncio.wait_for(turns.get(), 10) == "sweeper"
    finally:
        await made.stop()


async def test_one_query_asks_for_all_duties(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = rig.db.run

    async def counted(operation: object) -> object:
        asked.append("look")
        return await real(operation)  # type: ignore[arg-type]

    await rig.loops.run_until_idle()
    monkeypatch.setattr(rig.db, "run", counted)
    await rig.loops.look()
    assert asked == ["look"], "an idle engine asks once for all"


def test_parameters_of_duties_do_not_meet() -> None:
    text, values = look([Rescuer.__new__(Rescuer), Waker.__new__(Waker), Rescuer.__new__(Rescuer)], 0.5)
    assert values == [0.5, GAP_PART, GRACE_S, GAP_PART, GRACE_S]
    assert all(f"${number}::float8" in text for number in range(1, 6))


def test_the_runner_knows_no_duty_by_name() -> None:
    text = (SRC / "engine" / "loops" / "runner.py").read_text(encoding="utf-8")
    names = [duty.name for duty in registry.DUTIES]
    assert [name for name in names if f"self.{name}" in text or f"{name.capitalize()}(" in text] == []
