"""Events that jobs are sent: they reach the step that waits for them once, whether they come early, late or twice."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, Conflict, NotFound, TooLarge, WrongState
from windlass.core.plan import Node, NodeKind, Plan
from windlass.core.signal import fits
from windlass.engine import control, rerun, signals
from windlass.engine.loops.pruner import Pruner
from windlass.engine.signals import Sent
from windlass.store.plans import plan_of
from windlass.testing.faults import FaultyDatabase, Moment
from windlass.views import read


def event(name: str, *needs: str, of: str = "approved", **given: Any) -> Node:
    return Node(name, NodeKind.EVENT, run=of, needs=needs, **given)


ONE = plan(event("wait"), task("after", "wait", with_={"by": "${steps.wait.outputs.by}"}))
LATE = plan(task("first"), event("wait", "first"))


async def send(rig: Rig, job: UUID, body: Any = None, *, id: str = "1", name: str = "approved") -> Sent:
    return await signals.send(rig.db, job, name, body, id=id, sender="ada")


async def waits(rig: Rig) -> list[tuple[int, str, Any]]:
    async with rig.db.connection() as connection:
        rows = await connection.fetch("SELECT no, name, match FROM windlass.waits ORDER BY job_id, no")
    return [(row["no"], row["name"], msgspec.json.decode(row["match"])) for row in rows]


async def taken(rig: Rig, job: UUID) -> dict[str, int | None]:
    return {one.id: one.taken_no for one in await signals.sent_to(rig.db, job)}


async def outputs(rig: Rig, job: UUID) -> list[Any]:
    return [step.output for step in await read.steps(rig.db, job)]


async def begun(rig: Rig, of: Plan, inputs: dict[str, Any] | None = None, **given: Any) -> UUID:
    job = await rig.submit(of, inputs, **given)
    await rig.loops.run_until_idle()
    return job


async def test_an_event_completes_the_step_that_waits_for_it(rig: Rig) -> None:
    job = await begun(rig, ONE)
    [step, _] = await read.steps(rig.db, job)
    assert (step.state, step.waiting_for, step.wake_at) == ("PARKED", "event:approved", None)
    assert await waits(rig) == [(0, "approved", {})]
    assert await send(rig, job, {"by": "ada"}) == "delivered"
    assert await waits(rig) == []
    assert await rig.states(job) == ["COMPLETED", "QUEUED"]
    assert (await read.steps(rig.db, job))[0].output == {"by": "ada"}
    assert await taken(rig, job) == {"1": 0}
    [told] = [one for one in await read.events(rig.db, job) if one.type == "step.completed"]
    assert (told.source, told.idempotency_key) == ("ada", "1")
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_an_event_that_comes_early_is_kept_for_the_step(rig: Rig) -> None:
    job = await begun(rig, LATE)
    assert await send(rig, job, [7]) == "kept"
    assert await taken(rig, job) == {"1": None}
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    assert await taken(rig, job) == {"1": 1}
    assert (await read.steps(rig.db, job))[1].output == [7]
    assert await waits(rig) == []


async def test_of_early_events_the_first_that_fits_is_taken(rig: Rig) -> None:
    job = await begun(rig, plan(task("first"), event("wait", "first", with_={"ok": "${inputs.ok}"})), {"ok": True})
    for id, body in (("a", {"ok": 1}), ("b", {"ok": True, "n": 1}), ("c", {"ok": True, "n": 2})):
        assert await send(rig, job, body, id=id) == "kept"
    await rig.run_out()
    assert await taken(rig, job) == {"a": None, "b": 1, "c": None}
    assert (await read.steps(rig.db, job))[1].output == {"ok": True, "n": 1}


async def test_an_event_goes_to_the_step_that_it_fits(rig: Rig) -> None:
    both = plan(event("a", with_={"who": "a"}), event("b", with_={"who": "b"}), event("c", of="other"))
    job = await begun(rig, both)
    assert await send(rig, job, {"who": "c"}, id="1") == "kept"
    assert await send(rig, job, {"who": "b"}, id="2") == "delivered"
    assert await send(rig, job, {"who": "b"}, id="3") == "kept"
    assert await send(rig, job, {"who": "a"}, id="4", name="other") == "delivered"
    assert await send(rig, job, {"who": "a"}, id="5") == "delivered"
    assert await taken(rig, job) == {"1": None, "2": 1, "3": None, "4": 2, "5": 0}
    assert await rig.state(job) == "COMPLETED"


async def test_what_an_event_must_hold_may_come_from_another_step(rig: Rig) -> None:
    job = await begun(rig, plan(task("ask"), event("wait", "ask", with_={"ticket": "${steps.ask.outputs.id}"})))
    await rig.run_out('{"id": 17}')
    assert await waits(rig) == [(1, "approved", {"ticket": 17})]
    assert await send(rig, job, {"ticket": 18}, id="x") == "kept"
    assert await send(rig, job, {"ticket": 17}, id="y") == "delivered"


async def test_a_match_that_is_too_large_fails_the_step(rig: Rig) -> None:
    job = await begun(rig, plan(event("wait", with_={"x": "${inputs.x}"})), {"x": "x" * 70_000})
    assert (await read.job(rig.db, job)).error["code"] == "bad_event"
    assert await waits(rig) == []


async def test_each_child_of_a_fan_out_waits_for_its_own(rig: Rig) -> None:
    fan = event("wait", "first", each="inputs.ns", with_={"n": "${item}"})
    job = await begun(rig, plan(task("first"), fan), {"ns": [5, 6, 7]})
    assert await send(rig, job, {"n": 7}, id="early") == "kept"
    await rig.run_out()
    assert [n for n, _, _ in await waits(rig)] == [2, 3]
    assert await send(rig, job, {"n": 6}, id="a") == "delivered"
    assert await send(rig, job, {"n": 5}, id="b") == "delivered"
    assert await rig.state(job) == "COMPLETED"
    assert await taken(rig, job) == {"early": 4, "a": 3, "b": 2}


async def test_a_row_that_was_left_behind_takes_nothing_from_others(rig: Rig) -> None:
    """Nothing leaves one behind; if something did, the one door would still hold."""
    job = await begun(rig, plan(event("a"), event("b")))
    assert await send(rig, job, 1, id="1") == "delivered"
    async with rig.db.connection() as connection:
        await connection.execute("INSERT INTO windlass.waits VALUES ($1, 0, 'approved', '{}')", job)
    assert await send(rig, job, 2, id="2") == "delivered"
    assert await outputs(rig, job) == [1, 2]


async def test_the_same_id_again_changes_nothing(rig: Rig) -> None:
    job = await begun(rig, plan(event("a"), event("b")))
    assert await send(rig, job, {"x": 1}) == "delivered"
    before = await rig.types(job)
    assert await send(rig, job, {"x": 1}) == "already"
    assert await rig.types(job) == before
    with pytest.raises(Conflict, match="'1' was used for another event"):
        await send(rig, job, {"x": True})
    assert await send(rig, job, {"x": 1}, id="2") == "delivered"
    assert await rig.state(job) == "COMPLETED"
    assert await send(rig, job, {"x": 1}) == "already", "also when the job has ended since"


async def test_who_cannot_be_told_is_told_so(rig: Rig) -> None:
    job = await begun(rig, ONE)
    with pytest.raises(NotFound):
        await send(rig, rig.ids.new())
    with pytest.raises(BadInput, match="no step of the job waits for an event 'aproved'") as caught:
        await send(rig, job, name="aproved")
    assert caught.value.remedy == "Did you mean approved?"
    with pytest.raises(BadInput) as caught:
        await send(rig, await begun(rig, plan(task("a"), recipe="deaf")))
    assert caught.value.remedy == "Its recipe waits for none"
    await control.cancel(rig.db, job)
    with pytest.raises(WrongState, match="is CANCELLED"):
        await send(rig, job)
    await control.delete(rig.db, job)
    with pytest.raises(NotFound):
        await send(rig, job)
    assert await signals.sent_to(rig.db, job) == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"id": ""}, BadInput),
        ({"id": "x" * 256}, BadInput),
        ({"id": "a\x00"}, BadInput),
        ({"body": "\ud800"}, BadInput),
        ({"body": object()}, BadInput),
        ({"body": {"$artifact": {"sha256": "0" * 64, "size": 1}}}, BadInput),
        ({"body": "x" * (64 * 1024)}, TooLarge),
    ],
)
async def test_what_cannot_be_kept_is_refused(rig: Rig, given: dict[str, Any], error: type[Exception]) -> None:
    job = await begun(rig, ONE)
    with pytest.raises(error):
        await send(rig, job, **given)
    assert await signals.sent_to(rig.db, job) == []


async def test_events_that_nobody_waits_for_are_kept_up_to_a_limit(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "KEPT_MAX", 2)
    job = await begun(rig, plan(task("first"), event("wait", "first", each="inputs.ns")), {"ns": [1, 2, 3]})
    for id in "ab":
        assert await send(rig, job, id=id) == "kept"
    with pytest.raises(TooLarge, match="2 events are already kept"):
        await send(rig, job, id="c")
    await rig.run_out()
    assert await send(rig, job, id="c") == "delivered"


async def test_a_wait_that_lasts_too_long_fails_the_step(rig: Rig) -> None:
    job = await begun(rig, plan(event("wait", wait_s=3600.0), task("after", "wait")))
    rig.clock.advance("59m")
    await rig.loops.run_until_idle()
    assert await rig.states(job) == ["PARKED", "BLOCKED"]
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    [step, after] = await read.steps(rig.db, job)
    assert (step.state, step.error["code"], after.state) == ("FAILED", "wait_timeout", "ABANDONED")
    assert await waits(rig) == []
    with pytest.raises(WrongState, match="is TIMEOUT"):
        await send(rig, job)


async def test_an_event_that_comes_after_its_steps_time_is_not_that_steps(rig: Rig) -> None:
    job = await begun(rig, plan(event("wait", wait_s=60.0), task("other")))
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    assert await send(rig, job) == "kept"
    assert (await rig.states(job))[0] == "FAILED"


async def test_a_paused_job_is_told_and_starts_nothing(rig: Rig) -> None:
    job = await begun(rig, ONE)
    await control.pause(rig.db, job)
    assert await send(rig, job, {"by": "ada"}) == "delivered"
    assert await rig.states(job) == ["COMPLETED", "HELD"]
    await control.resume(rig.db, job)
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_a_step_that_a_pause_kept_from_waiting_finds_what_came_meanwhile(rig: Rig) -> None:
    job = await rig.submit(ONE)
    await control.pause(rig.db, job)
    await rig.loops.run_until_idle()
    assert await send(rig, job, {"by": "ada"}) == "kept"
    await control.resume(rig.db, job)
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_a_job_that_ends_waits_for_nothing(rig: Rig) -> None:
    job = await begun(rig, plan(event("a"), event("b")))
    assert len(await waits(rig)) == 2
    await control.cancel(rig.db, job)
    assert await waits(rig) == []


async def test_a_retried_job_keeps_what_it_was_told_and_waits_for_the_rest(rig: Rig) -> None:
    job = await begun(rig, plan(event("a", with_={"n": 1}), event("b", with_={"n": 2})))
    assert await send(rig, job, {"n": 1}) == "delivered"
    await control.cancel(rig.db, job)
    again = await rerun.retry(rig.db, job, rig.ids.new())
    await rig.loops.run_until_idle()
    assert await rig.states(again) == ["COMPLETED", "PARKED"]
    assert await send(rig, again, {"n": 2}) == "delivered"
    assert await rig.state(again) == "COMPLETED"


async def test_retention_removes_the_events_with_their_job(rig: Rig) -> None:
    job = await begun(rig, ONE)
    await send(rig, job, {"by": "ada"})
    await rig.run_out()
    rig.clock.advance(100)
    await Pruner(rig.db, 10.0).run_once()
    assert await signals.sent_to(rig.db, job) == []


async def test_senders_with_one_id_at_once_are_heard_once(rig: Rig) -> None:
    job = await begun(rig, plan(event("a"), event("b")))
    answers = await asyncio.gather(*(send(rig, job, {"x": 1}) for _ in range(8)))
    assert sorted(answers) == ["already"] * 7 + ["delivered"]
    assert sorted(await rig.states(job)) == ["COMPLETED", "PARKED"]


async def test_senders_at_once_each_reach_a_step(rig: Rig) -> None:
    job = await begun(rig, plan(event("a", each="inputs.ns")), {"ns": list(range(8))})
    answers = await asyncio.gather(*(send(rig, job, n, id=str(n)) for n in range(8)))
    assert answers == ["delivered"] * 8
    assert await rig.state(job) == "COMPLETED"
    assert sorted((await outputs(rig, job))[1:]) == list(range(8))


async def test_an_event_that_meets_the_router_is_not_missed(rig: Rig) -> None:
    """The router parks the step and the event looks for it, at the same moment: one of them sees the other."""
    answers = []
    for n in range(12):
        job = await rig.submit(plan(event("wait")))
        sent, _ = await asyncio.gather(send(rig, job, n), rig.loops.router.run_once())
        answers.append(sent)
        await rig.loops.run_until_idle()
        assert await rig.state(job) == "COMPLETED", sent
        assert await outputs(rig, job) == [n]
        assert await waits(rig) == []
    assert set(answers) <= {"delivered", "kept"}


@pytest.mark.parametrize("seed", range(12))
async def test_in_any_order_nothing_is_missed_and_nothing_is_taken_twice(rig: Rig, seed: int) -> None:
    """Events, routers, workers and time in a random order; then each event that fits is taken once."""
    rng = random.Random(seed)
    steps = [
        event("any"),
        event("one", with_={"n": 1}, wait_s=rng.choice([None, 50.0])),
        event("later", "work", with_={"n": "${inputs.n}"}),
        event("each", "work", each="inputs.ns", with_={"n": "${item}"}),
        event("other", "one", of="other"),
        task("work"),
    ]
    order = ["any", "one", "work", "each", "later", "other"]
    job = await rig.submit(plan(*sorted(steps, key=lambda node: order.index(node.name))), {"n": 2, "ns": [1, 2, 2, 3]})
    bodies: dict[str, Any] = {}

    async def told() -> None:
        id = rng.choice([*bodies, str(len(bodies))])
        is_new = id not in bodies
        bodies.setdefault(id, {"n": rng.randint(1, 4), "id": id})
        name = "other" if int(id) % 5 == 4 else "approved"
        sent = await send(rig, job, bodies[id], id=id, name=name)
        assert (sent == "already") is not is_new

    async def worked() -> None:
        for one in await rig.claim():
            await rig.settle(one)

    async def passed() -> None:
        rig.clock.advance(rng.choice([1, 30]))

    for _ in range(40):
        acts = [told, told, rig.loops.router.run_once, rig.loops.waker.run_once, worked, passed]
        try:
            await asyncio.gather(*(act() for act in rng.sample(acts, rng.choice([1, 1, 2]))))
        except WrongState:
            break
    await rig.run_out()
    found = {step.no: step for step in await read.steps(rig.db, job)}
    sent_now = await signals.sent_to(rig.db, job)
    takers = [one.taken_no for one in sent_now if one.taken_no is not None]
    assert len(takers) == len(set(takers))
    by_taker = {one.taken_no: one.body for one in sent_now if one.taken_no is not None}
    is_event = {no for no, node in enumerate((await read_plan_of(rig, job)).nodes) if node.kind is NodeKind.EVENT}
    done = {no: step.output for no, step in found.items() if step.node in is_event and step.state == "COMPLETED"}
    assert {no: output for no, output in done.items() if found[no].fan is None} == by_taker
    parked = await waits(rig)
    open_now = [no for no, s in found.items() if s.state == "PARKED" and (s.waiting_for or "").startswith("event")]
    assert [no for no, _, _ in parked] == open_now
    for one in sent_now:
        if one.taken_no is None:
            assert not [no for no, name, match in parked if name == one.name and fits(match, one.body)]


async def read_plan_of(rig: Rig, job: UUID) -> Plan:
    return await plan_of(rig.db, (await read.job(rig.db, job)).plan)


class TestACommitWhoseAnswerWasLost:
    @pytest.fixture
    def rig(self, shaky: Rig) -> Rig:
        return shaky

    @pytest.mark.parametrize("moment", list(Moment))
    async def test_is_done_once(self, rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
        job = await begun(rig, plan(event("a"), event("b")))
        faulty.faults.append(moment)
        assert await send(rig, job, 1, id="a") == "delivered"
        assert await taken(rig, job) == {"a": 0}
        assert await rig.states(job) == ["COMPLETED", "PARKED"]

    @pytest.mark.parametrize("moment", list(Moment))
    async def test_gives_an_early_event_to_one_step(self, rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
        job = await rig.submit(plan(event("a"), event("b")))
        assert await send(rig, job, 1, id="a") == "kept"
        # The router first looks what there is to do, and then writes.
        faulty.faults.extend([None, moment])
        await rig.loops.router.run_once()
        await rig.loops.run_until_idle()
        assert sorted(await rig.states(job)) == ["COMPLETED", "PARKED"]
        assert len(await waits(rig)) == 1
