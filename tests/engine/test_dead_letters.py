"""Failed jobs that were neither run again nor discarded: which callers see them, and that none is run twice."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, CountChanged, NotFound
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import Node, NodeKind
from windlass.engine import control, recipes, redrive, rerun
from windlass.engine.bulk import Bulk
from windlass.views import dead_letters, read
from windlass.views.dead_letters import DeadLetters

ONE = plan(task("a"), recipe="one")


def boom(message: str, code: str = "boom") -> Failure:
    return Failure(Fault(code, message), is_retryable=False)


async def fail(rig: Rig, *messages: str, caller: str = "ada", of: Any = ONE) -> list[UUID]:
    made = []
    for message in messages:
        made.append(await rig.submit(of, caller=caller))
        await rig.run_one(boom(message))
        rig.clock.advance(1)
    return made


async def kinds(rig: Rig, caller: str | None = None) -> list[DeadLetters]:
    return (await dead_letters.look(rig.db, caller)).kinds


async def deal(rig: Rig, kind: DeadLetters, caller: str | None = None, **given: Any) -> Bulk:
    wish = {"limit": 500, "dry_run": False, "expect": None, "source": "ada", "request_id": None, **given}
    start, expect = wish.pop("start", "failed"), wish.pop("expect")
    found = await dead_letters.of_kind(rig.db, caller, kind.fingerprint, expect)
    return await redrive.redrive(rig.db, found, start, new_id=rig.ids.new, **wish)


async def drop(rig: Rig, kind: DeadLetters, caller: str | None = None, **given: Any) -> Bulk:
    wish = {"dry_run": False, "expect": None, "source": "ada", "reason": "old", **given}
    found = await dead_letters.of_kind(rig.db, caller, kind.fingerprint, wish.pop("expect"))
    return await redrive.discard(rig.db, found, **wish)


@pytest.mark.covers("JN-26", "JN-66")
async def test_failures_are_told_by_kind_the_last_first(rig: Rig) -> None:
    first = await fail(rig, "no answer after 3 s", "no answer after 7 s")
    other = await fail(rig, "disk full")
    last = await fail(rig, "no answer after 12 s")
    look = await dead_letters.look(rig.db, None)
    assert (look.looked_at, look.is_capped) == (4, False)
    assert [kind.job_ids for kind in look.kinds] == [(*last, *reversed(first)), tuple(other)]
    kind = look.kinds[0]
    assert (kind.code, kind.recipe, kind.step, kind.message) == ("boom", "one", "a", "no answer after 12 s")
    assert (kind.last_at - kind.first_at).total_seconds() == 3
    assert kind.versions == (1,)


async def test_a_new_version_of_a_recipe_is_told(rig: Rig) -> None:
    await fail(rig, "x")
    await fail(rig, "x", of=plan(task("a"), task("z", "a"), recipe="one"))
    [kind] = await kinds(rig)
    assert kind.versions == (1, 2)


async def test_callers_see_their_own_and_admins_all(rig: Rig) -> None:
    await fail(rig, "x")
    await fail(rig, "x", "y", caller="bob")
    assert sum(len(kind.job_ids) for kind in await kinds(rig)) == 3
    [mine] = await kinds(rig, "ada")
    assert len(mine.job_ids) == 1
    assert sum(len(kind.job_ids) for kind in await kinds(rig, "bob")) == 2
    assert await kinds(rig, "eve") == []
    # Nor may one touch the others' by knowing their fingerprint.
    with pytest.raises(NotFound):
        await deal(rig, mine, "eve")
    told = await deal(rig, mine, "ada")
    assert len(told.done) == 1 and len(await kinds(rig, "bob")) == 2


async def test_what_was_dealt_with_is_no_dead_letter(rig: Rig) -> None:
    retried, rerun_, deleted, cancelled, left = await fail(rig, "1", "2", "3", "4", "5")
    await rerun.retry(rig.db, retried, rig.ids.new())
    await rerun.rerun(rig.db, rerun_, rig.ids.new(), from_step="a")
    await control.delete(rig.db, deleted)
    other = await rig.submit(ONE)
    await control.cancel(rig.db, other)
    [kind] = await kinds(rig)
    assert kind.job_ids == (left, cancelled)


async def test_a_part_of_another_job_is_that_jobs_affair(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="leaf"))
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="leaf", with_={}), recipe="root"))
    await rig.loops.run_until_idle()
    await rig.run_one(boom("x"))
    await rig.loops.run_until_idle()
    assert await rig.state(job) == "FAILED"
    assert [kind.job_ids for kind in await kinds(rig)] == [(job,)]


@pytest.mark.parametrize(("start", "first"), [("failed", "COMPLETED"), ("first", "QUEUED")])
async def test_a_kind_is_run_again_once(rig: Rig, start: str, first: str) -> None:
    two = plan(task("a"), task("b", "a"), recipe="two")
    jobs = []
    for _ in range(3):
        jobs.append(await rig.submit(two, caller="bob"))
        await rig.run_one()
        await rig.run_one(boom("x"))
    [kind] = await kinds(rig)
    assert await deal(rig, kind, dry_run=True) == Bulk(3, False)
    with pytest.raises(CountChanged):
        await deal(rig, kind, expect=2)
    told = await deal(rig, kind, start=start, expect=3, limit=2)
    assert (told.matched, [old for old, _ in told.done], told.refused) == (3, [jobs[2], jobs[1]], ())
    for old, new in told.done:
        assert new is not None
        view = await read.job(rig.db, new)
        assert (view.retry_of, view.caller, (await rig.states(new))[0]) == (old, "bob", first)
    rest = await deal(rig, kind)
    assert [old for old, _ in rest.done] == [jobs[0]]
    with pytest.raises(NotFound):
        await deal(rig, kind)
    # A job that fails again is a new dead letter.
    while taken := await rig.claim():
        for one in taken:
            await rig.settle(one, boom("x") if one.no == 1 else None)
    assert {len(kind.job_ids) for kind in await kinds(rig)} == {3}


async def test_two_who_press_at_once_run_no_job_twice(rig: Rig) -> None:
    jobs = await fail(rig, *["x"] * 6)
    [kind] = await kinds(rig)
    answers = await asyncio.gather(*(deal(rig, kind) for _ in range(3)), return_exceptions=True)
    done = [old for told in answers if isinstance(told, Bulk) for old, _ in told.done]
    assert sorted(done) == sorted(jobs), "each once"
    refused = {code for told in answers if isinstance(told, Bulk) for _, code in told.refused}
    assert refused <= {"wrong_state"}
    assert len(await read.jobs(rig.db, limit=100)) == 12


async def test_one_who_discards_and_one_who_redrives_share_them(rig: Rig) -> None:
    jobs = await fail(rig, *["x"] * 6)
    [kind] = await kinds(rig)
    told = await asyncio.gather(deal(rig, kind), drop(rig, kind), return_exceptions=True)
    # The later request finds none if the other has finished.
    assert all(isinstance(one, Bulk | NotFound) for one in told), told
    done = [old for one in told if isinstance(one, Bulk) for old, _ in one.done]
    assert sorted(done) == sorted(jobs)
    assert await kinds(rig) == []


async def test_a_discarded_job_stays_as_it_is(rig: Rig) -> None:
    jobs = await fail(rig, "x", "x")
    [kind] = await kinds(rig)
    assert await drop(rig, kind, dry_run=True) == Bulk(2, False)
    with pytest.raises(CountChanged):
        await drop(rig, kind, expect=1)
    told = await drop(rig, kind, expect=2, reason="test data")
    assert [old for old, _ in told.done] == jobs[::-1] and told.refused == ()
    assert [await rig.state(job) for job in jobs] == ["FAILED"] * 2
    with pytest.raises(NotFound):
        await drop(rig, kind)
    # A discarded job can still be run again.
    await rerun.retry(rig.db, jobs[0], rig.ids.new())


async def test_a_job_that_was_dealt_with_meanwhile_is_told_of(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = await fail(rig, "x", "x")
    [kind] = await kinds(rig)
    real = dead_letters.look

    async def slow(*given: Any) -> Any:
        found = await real(*given)
        await control.delete(rig.db, jobs[0])
        await rerun.retry(rig.db, jobs[1], rig.ids.new())
        return found

    monkeypatch.setattr(dead_letters, "look", slow)
    told = await deal(rig, kind)
    assert (told.done, dict(told.refused)) == ((), {jobs[0]: "not_found", jobs[1]: "wrong_state"})


async def test_only_the_newest_are_looked_at(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = await fail(rig, *["x"] * 4)
    monkeypatch.setattr(dead_letters, "LOOKED_MAX", 3)
    for caller in (None, "ada"):
        look = await dead_letters.look(rig.db, caller)
        assert (look.looked_at, look.is_capped, look.kinds[0].job_ids) == (3, True, tuple(jobs[:0:-1]))


@pytest.mark.parametrize("reason", ["\x00", "\ud800"])
async def test_a_reason_that_is_no_text_is_refused(rig: Rig, reason: str) -> None:
    await fail(rig, "x")
    [kind] = await kinds(rig)
    with pytest.raises(BadInput):
        await drop(rig, kind, reason=reason)


async def test_odd_errors_have_a_kind_too(rig: Rig) -> None:
    await fail(rig, "", "é" * 5_000, "0" * 5_000)
    async with rig.db.connection() as connection:
        job = await rig.submit(ONE)
        await rig.run_one(boom("x"))
        await connection.execute("UPDATE windlass.jobs SET error = NULL WHERE id = $1", job)
    found = await kinds(rig)
    assert len(found) == 4 and all(len(kind.message) <= 1_000 for kind in found)
