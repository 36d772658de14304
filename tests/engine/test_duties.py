"""A duty declares what wakes it; the runner knows none by name."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from tests.engine.rig import Rig, plan, task
from tests.tidy.sources import SRC
from windlass.core.bell import PollDue
from windlass.core.lease import GAP_PART, RESCUE_AFTER_S
from windlass.engine.loops import registry, runner
from windlass.engine.loops.duty import AnyRow, Done, Due, Earliest, Engine, EngineDuty, Moment, look
from windlass.engine.loops.rescuer import Rescuer
from windlass.engine.loops.runner import Loops
from windlass.engine.loops.waker import Waker
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.database import Database
from windlass.store.statements import _statements

UNTIL = datetime(2030, 1, 1, tzinfo=UTC)
TICKET = ("INSERT INTO windlass.tickets (digest, context, expires_at) VALUES ('x', '{}', $1)", UNTIL)


class Sweeper(EngineDuty):
    """A new duty: it is woken by a bell, by time, or by a moment that the database gives."""

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
    return Loops(db, rig.artifacts, shared_evaluator(), new_id=rig.ids.new, spread=lambda: 0.0)


async def test_a_new_duty_is_woken_by_its_bell(rig: Rig, db: Database, turns: asyncio.Queue[str]) -> None:
    made = loops(db, rig)
    await made.start()
    try:
        await asyncio.wait_for(turns.get(), 60)  # at the start a bell may have been missed
        while not turns.empty():
            turns.get_nowait()
        db.bus.ring([PollDue()])
        assert await asyncio.wait_for(turns.get(), 60) == "sweeper"
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
        assert await asyncio.wait_for(turns.get(), 60) == "sweeper"
    finally:
        await made.stop()


@pytest.mark.parametrize(
    ("due", "row"),
    [
        (AnyRow("tickets"), True),
        (AnyRow("tickets"), False),
        (Earliest("tickets", "expires_at"), True),
        (Earliest("tickets", "expires_at"), False),
    ],
)
async def test_a_duty_that_names_a_table_needs_no_statement(
    rig: Rig, db: Database, turns: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch, due: Moment, row: bool
) -> None:
    if row:
        async with db.connection() as connection:
            await connection.execute(*TICKET)
    monkeypatch.setattr(Sweeper, "due", due)
    moments = await loops(db, rig).moments()
    assert ("sweeper" in moments) is row
    if row and isinstance(due, Earliest):
        assert moments["sweeper"] == UNTIL


async def test_a_duty_that_names_a_state_counts_its_rows_only(
    rig: Rig, db: Database, turns: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.submit(plan(task("only")))
    for state, is_due in (("QUEUED", True), ("READY", False)):
        monkeypatch.setattr(Sweeper, "due", AnyRow("steps", state))
        assert ("sweeper" in await loops(db, rig).moments()) is is_due


@pytest.mark.parametrize("due", [AnyRow("steps; DROP TABLE x"), AnyRow("steps", "' OR true"), Earliest("steps", "a b")])
def test_what_cannot_be_a_name_is_refused(due: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sweeper, "due", due)
    with pytest.raises(ValueError, match="cannot stand in a statement"):
        look([Sweeper()])


@pytest.mark.covers("COR-29")
async def test_a_new_duty_is_done_every_so_often(
    rig: Rig, db: Database, turns: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sweeper, "bells", ())
    monkeypatch.setattr(Sweeper, "every_s", 3600.0)
    made = loops(db, rig)
    await made.start()
    try:
        assert await asyncio.wait_for(turns.get(), 60) == "sweeper"
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
    assert values == [0.5, GAP_PART, RESCUE_AFTER_S, GAP_PART, RESCUE_AFTER_S]
    assert all(f"${number}::float8" in text for number in range(1, 6))


def test_the_runner_knows_no_duty_by_name() -> None:
    text = (SRC / "engine" / "loops" / "runner.py").read_text(encoding="utf-8")
    names = [duty.name for duty in registry.DUTIES]
    assert [name for name in names if f"self.{name}" in text or f"{name.capitalize()}(" in text] == []
