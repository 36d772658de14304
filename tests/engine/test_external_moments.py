"""External work when the connection breaks at the worst moment, and when two act at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.engine.outside import (
    CHAIN,
    DONE,
    FAILED,
    FAL,
    ONE,
    Asked,
    P,
    answer,
    asked,
    claimed,
    due,
    event_states,
    grant,
    intend,
    park,
    parked,
    poll,
    states,
    webhook,
    work,
)
from tests.engine.rig import Rig
from windlass.app.entropy import Ids
from windlass.core.bell import AnswerDue, Bell, PollDue
from windlass.core.external import Said, poll_wait_s
from windlass.core.outcome import Cost, Parked, Report
from windlass.engine import control, external
from windlass.engine import settle as settling
from windlass.engine.external import Applied, Polled
from windlass.engine.loops.webhook_applier import WebhookApplier
from windlass.store import drafts, provider_jobs
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.testing.clock import VirtualClock
from windlass.testing.faults import FaultyDatabase, Moment
from windlass.views import read
from windlass.views.work import forgotten

A = Applied
MOMENTS = list(Moment)


@pytest.fixture
def rig(shaky: Rig) -> Rig:
    return shaky


async def whole(rig: Rig, job: Any) -> None:
    """The job's events have no gap."""
    view = await read.job(rig.db, job)
    events = await read.events(rig.db, view.id)
    assert [event.seq for event in events] == list(range(1, view.event_seq + 1))


# ---------------------------------------------------------------- the commit whose outcome is unknown


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_intent_is_one_round(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    first = await asked(rig)
    faulty.faults.append(moment)
    assert (await intend(rig, first.one)).key == first.intent.key
    assert await states(rig, first.job) == ["SUBMITTING"]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_submit_is_recorded_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await asked(rig)
    await answer(rig, webhook(ask.external_id))
    faulty.faults.append(moment)
    await park(rig, ask)
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id) == ("RUNNING", ask.external_id)
    assert await event_states(rig) == ["DUE"]
    await WebhookApplier(rig.db, rig.spread).run_once()
    assert await rig.state(ask.job) == "COMPLETED"
    await whole(rig, ask.job)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("said", [DONE, FAILED, Said(P.RUNNING, progress_pct=5.0)])
async def test_a_webhook_takes_effect_once(rig: Rig, faulty: FaultyDatabase, moment: Moment, said: Said) -> None:
    ask = await parked(rig, CHAIN)
    before = len(await rig.types(ask.job))
    faulty.faults.append(moment)
    [told] = await answer(rig, webhook(ask.external_id, said))
    assert (told is A.REPLAYED) == (moment is Moment.AFTER)
    types = (await rig.types(ask.job))[before:]
    assert (
        types
        == {
            P.SUCCEEDED: ["step.completed", "step.queued"],
            P.FAILED: ["step.parked"],
            P.RUNNING: ["step.progress"],
        }[said.status]
    )
    assert await event_states(rig) == ["NOTED" if said.status is P.RUNNING else "APPLIED"]
    await whole(rig, ask.job)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_poll_takes_effect_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await parked(rig, CHAIN)
    faulty.faults.append(moment)
    said = Said(P.SUCCEEDED, "1", cost=Cost("1.5"))
    assert await answer(rig, poll(ask.external_id, said)) == [A.LATE if moment is Moment.AFTER else A.APPLIED]
    assert await rig.states(ask.job) == ["COMPLETED", "QUEUED"]
    assert await rig.db.run(lambda c: c.fetchval("SELECT sum(amount)::text FROM costs")) == "1.5"
    await whole(rig, ask.job)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_early_webhook_is_kept_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await asked(rig)
    faulty.faults.append(moment)
    await answer(rig, webhook(ask.external_id))
    assert await event_states(rig) == ["WAITING"]
    await park(rig, ask)
    faulty.faults.append(moment)
    await WebhookApplier(rig.db, rig.spread).run_once()
    assert await rig.state(ask.job) == "COMPLETED"
    assert await event_states(rig) == ["APPLIED"]
    await whole(rig, ask.job)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_what_a_late_worker_began_is_cancelled_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await parked(rig)
    faulty.faults.append(moment)
    await external.orphaned(rig.db, ask.intent.key, FAL, "twin")
    assert await states(rig, ask.job) == ["RUNNING", "CANCELLING"]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_rejection_ends_one_round(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await asked(rig)
    faulty.faults.append(moment)
    await external.rejected(rig.db, ask.intent.key, "400")
    assert await states(rig, ask.job) == ["ENDED"]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_poll_is_counted_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await parked(rig)
    rig.clock.advance(30)
    [taken] = await due(rig)
    faulty.faults.append(moment)
    await external.polled(rig.db, [Polled(taken, "RUNNING", 60.0)])
    [view] = await work(rig, ask.job)
    assert (view.polls, view.status) == (1, "RUNNING")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_cancel_reaches_the_work_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    ask = await parked(rig)
    faulty.faults.append(moment)
    await control.cancel(rig.db, ask.job)
    assert await states(rig, ask.job) == ["CANCELLING"]


# ---------------------------------------------------------------- the poller's side


@pytest.mark.covers("SCR-63")
async def test_work_is_asked_for_by_its_schedule(rig: Rig) -> None:
    await parked(rig)
    waits = []
    for _ in range(5):
        wait_s = (await external.next_due(rig.db, [FAL, "other"]))[FAL]
        waits.append(wait_s)
        rig.clock.advance(wait_s - 0.001)
        assert await due(rig) == []
        rig.clock.advance(0.001)
        [taken] = await due(rig)
        await external.polled(rig.db, [Polled(taken, "RUNNING", poll_wait_s(taken.polls + 1, 0.5))])
    assert waits == pytest.approx([30, 60, 120, 120, 120])
    assert await external.next_due(rig.db, ["other"]) == {}


async def test_a_provider_has_a_first_wait_of_its_own(rig: Rig) -> None:
    ask = await asked(rig)
    again = await external.intend(rig.db, ask.job, 0, 1, FAL, poll_s=1.0)
    assert again is not None and not again.is_new
    await control.cancel(rig.db, ask.job)
    job = await rig.submit(ONE)
    await rig.loops.router.run_once()
    await grant(rig, job)
    [one] = await rig.claim()
    await external.intend(rig.db, job, 0, one.attempt, FAL, poll_s=2.5)
    await rig.settle(one, Parked(FAL, 60.0, "x"))
    [view] = await work(rig, job)
    assert view.due_at is not None and (view.due_at - rig.clock.now()).total_seconds() == pytest.approx(2.5)


async def test_what_is_being_asked_for_is_given_to_nobody_else_for_a_while(rig: Rig) -> None:
    await parked(rig)
    rig.clock.advance(30)
    [first] = await due(rig, lease_s=20)
    assert await due(rig) == []
    rig.clock.advance(20)
    [second] = await due(rig, lease_s=20)
    await external.polled(rig.db, [Polled(first, "RUNNING", 999.0)])
    assert (await external.next_due(rig.db, [FAL]))[FAL] == pytest.approx(20), "whoever overslept is not heard"
    await external.polled(rig.db, [Polled(second, "RUNNING", 60.0)])
    assert (await external.next_due(rig.db, [FAL]))[FAL] == pytest.approx(60)


async def test_a_poll_does_not_put_off_a_cancel(rig: Rig) -> None:
    ask = await parked(rig)
    rig.clock.advance(30)
    [taken] = await due(rig)
    await external.polled(rig.db, [Polled(taken, "RUNNING", 0.0)])
    [taken] = await due(rig)
    await control.cancel(rig.db, ask.job)
    await external.polled(rig.db, [Polled(taken, "RUNNING", 120.0)])
    [cancel] = await due(rig)
    assert (cancel.state, cancel.polls) == ("CANCELLING", 0), "its tries are counted anew"
    await external.polled(rig.db, [Polled(cancel, None, 5.0)])
    assert (await external.next_due(rig.db, [FAL]))[FAL] == pytest.approx(5), "it did not work; try again"
    rig.clock.advance(5)
    [cancel] = await due(rig)
    await external.polled(rig.db, [Polled(cancel, "CANCELLED", None, is_over=True)])
    [view] = await work(rig, ask.job)
    assert (view.state, view.status, view.due_at) == ("ENDED", "CANCELLED", None)


async def test_a_poll_does_not_put_off_a_cancel_of_the_same_moment(rig: Rig) -> None:
    ask = await parked(rig)
    rig.clock.advance(30)
    [taken] = await due(rig, lease_s=0)
    await control.cancel(rig.db, ask.job)
    await external.polled(rig.db, [Polled(taken, "RUNNING", 120.0)])
    assert [work.state for work in await due(rig)] == ["CANCELLING"]


async def test_work_that_is_given_back_unasked_is_no_poll_and_work_may_be_given_up(rig: Rig) -> None:
    ask = await parked(rig)
    rig.clock.advance(30)
    [taken] = await due(rig)
    await external.polled(rig.db, [Polled(taken, None, 1.0, is_poll=False)])
    [view] = await work(rig, ask.job)
    assert (view.polls, view.status) == (0, None)
    rig.clock.advance(1)
    [taken] = await due(rig)
    await external.polled(rig.db, [Polled(taken, "UNKNOWN", None)])
    [view] = await work(rig, ask.job)
    assert (view.state, view.due_at) == ("RUNNING", None), "its step's deadline stays"
    await external.polled(rig.db, [])


async def test_only_a_cancel_can_be_over_without_an_answer(rig: Rig) -> None:
    await parked(rig)
    rig.clock.advance(30)
    [taken] = await due(rig)
    with pytest.raises(ValueError, match="only a cancel"):
        await external.polled(rig.db, [Polled(taken, "UNKNOWN", None, is_over=True)])


async def test_polls_of_one_provider_are_not_anothers(rig: Rig) -> None:
    await parked(rig)
    rig.clock.advance(30)
    assert await external.due(rig.db, 10, 60.0, provider="replicate") == []
    assert len(await due(rig)) == 1


async def test_two_pollers_never_take_the_same(rig: Rig) -> None:
    count = 60
    for _ in range(count):
        await parked(rig)
    rig.clock.advance(30)
    taken = await asyncio.gather(*(due(rig, 7) for _ in range(12)))
    keys = [one.key for some in taken for one in some]
    assert len(keys) == len(set(keys))
    while rest := await due(rig, 7):
        keys += [one.key for one in rest]
    assert len(keys) == len(set(keys)) == count


async def test_what_is_not_over_can_be_listed_and_what_is_ours_told_from_the_rest(rig: Rig) -> None:
    old = await parked(rig)
    rig.clock.advance(100)
    young = await parked(rig)
    done = await parked(rig)
    await answer(rig, poll(done.external_id))
    assert [view.job_id for view in await forgotten(rig.db, FAL, 50.0)] == [old.job]
    assert [view.job_id for view in await forgotten(rig.db, FAL, -1.0)] == [old.job, young.job]
    assert await forgotten(rig.db, "other", -1.0) == []
    ids = [old.external_id, done.external_id, "theirs"]
    assert await external.known(rig.db, FAL, ids) == {old.external_id, done.external_id}


async def test_who_must_act_at_once_is_told(rig: Rig) -> None:
    heard: list[type[Bell]] = []
    await rig.db.listen(PollDue, lambda bell: heard.append(type(bell)))
    await rig.db.listen(AnswerDue, lambda bell: heard.append(type(bell)))
    heard.clear()  # the looks at the start

    async def rung(kind: type[Bell]) -> None:
        async with asyncio.timeout(60):
            while kind not in heard:
                await asyncio.sleep(0.005)
        heard.clear()

    early = await asked(rig)
    await answer(rig, webhook(early.external_id))
    await park(rig, early)
    await rung(AnswerDue)
    await control.cancel(rig.db, early.job)
    await rung(PollDue)
    one = await claimed(rig)
    await external.intend(rig.db, one.job_id, one.no, one.attempt, FAL, poll_s=1.0)
    await rig.settle(one, Parked(FAL, 60.0, "soon"))
    await rung(PollDue)
    await external.orphaned(rig.db, external.WorkKey(one.job_id, one.no, 1), FAL, "twin")
    await rung(PollDue)


# ---------------------------------------------------------------- two at once


@pytest.mark.covers("SCR-60", "SCR-66", "SCR-70")
async def test_of_answers_that_come_at_once_exactly_one_is_applied(rig: Rig) -> None:
    asks = [await parked(rig, CHAIN) for _ in range(20)]
    told = await asyncio.gather(
        *(answer(rig, webhook(ask.external_id, id=f"{ask.job}-{n}")) for ask in asks for n in range(2)),
        *(answer(rig, poll(ask.external_id, said)) for ask in asks for said in (DONE, FAILED)),
        *(answer(rig, *(poll(ask.external_id) for ask in order)) for order in (asks, asks[::-1])),
    )
    assert Counter(one for some in told for one in some)[A.APPLIED] == len(asks)
    for ask in asks:
        await whole(rig, ask.job)
        types = await rig.types(ask.job)
        assert types.count("step.completed") + types.count("step.parked") == 2
        assert await states(rig, ask.job) == ["ENDED"]


async def test_of_one_event_that_comes_twice_at_once_one_is_applied(rig: Rig) -> None:
    for n in range(10):
        ask = await parked(rig)
        told = await asyncio.gather(*(answer(rig, webhook(ask.external_id, id=str(n))) for _ in range(4)))
        assert Counter(one for [one] in told) == {A.APPLIED: 1, A.REPLAYED: 3}


async def test_one_events_id_for_two_jobs_at_once_has_one_effect(rig: Rig) -> None:
    """The ids are the provider's: an id has one effect, however the provider uses it."""
    for n in range(10):
        asks = [await parked(rig) for _ in range(3)]
        told = await asyncio.gather(*(answer(rig, webhook(ask.external_id, id=str(n))) for ask in asks))
        assert Counter(one for [one] in told) == {A.APPLIED: 1, A.REPLAYED: 2}
        assert Counter([await rig.state(ask.job) for ask in asks]) == {"COMPLETED": 1, "PROCESSING": 2}


async def test_a_webhook_and_the_record_of_its_submit_never_miss_each_other(rig: Rig) -> None:
    asks = [await asked(rig) for _ in range(40)]

    async def webhooks(some: list[Asked]) -> None:
        for ask in some:
            await answer(rig, webhook(ask.external_id, id=str(ask.job)))

    async def parks(some: list[Asked]) -> None:
        for ask in some:
            assert await park(rig, ask)

    await asyncio.gather(webhooks(asks[:20]), parks(asks[:20]), webhooks(asks[20:]), parks(asks[20:]))
    while (await WebhookApplier(rig.db, rig.spread).run_once()).count:
        pass
    assert {await rig.state(ask.job) for ask in asks} == {"COMPLETED"}


async def test_whoever_keeps_an_event_waits_for_a_record_that_is_being_written(rig: Rig, dsn: str) -> None:
    """The narrow gap: the record has looked for events and is not committed when the event looks for the record."""
    ask = await asked(rig)
    other = await Database.open(dsn, now=rig.clock.now)
    try:
        async with other.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await drafts.lock(connection, [ask.job])
            row = ([ask.job], [0], [1], [FAL], [ask.external_id])
            locks = provider_jobs.id_locks([(FAL, ask.external_id)])
            await connection.execute(sql("work_recorded"), *row, locks)
            await connection.execute(sql("event_known"), [FAL], [ask.external_id])
            keeping = asyncio.create_task(answer(rig, webhook(ask.external_id)))
            await blocked(connection)
            await transaction.commit()
            assert await keeping == [A.WAITING]
    finally:
        await other.close()
    assert await event_states(rig) == ["DUE"]


async def blocked(connection: Any) -> None:
    """Until a connection waits for a lock."""
    async with asyncio.timeout(60):
        while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.005)


async def test_two_webhook_appliers_apply_an_event_once(rig: Rig) -> None:
    asks = [await asked(rig, CHAIN) for _ in range(20)]
    for ask in asks:
        await answer(rig, webhook(ask.external_id, id=str(ask.job)))
        await park(rig, ask)
    await asyncio.gather(*(WebhookApplier(rig.db, rig.spread).run_once() for _ in range(4)))
    for ask in asks:
        assert (await rig.types(ask.job)).count("step.completed") == 1
        await whole(rig, ask.job)
    assert set(await event_states(rig)) == {"APPLIED"}


async def test_a_cancel_and_an_answer_at_once_leave_nothing_open(rig: Rig) -> None:
    for _ in range(15):
        ask = await parked(rig)
        _, [told] = await asyncio.gather(control.cancel(rig.db, ask.job), answer(rig, poll(ask.external_id)))
        state = await rig.state(ask.job)
        assert (state, told) in (("COMPLETED", A.APPLIED), ("CANCELLED", A.LATE))
        assert await states(rig, ask.job) == ["ENDED"]


async def test_a_deadline_and_an_answer_at_once_end_the_step_once(rig: Rig) -> None:
    asks = [await parked(rig, within_s=60) for _ in range(15)]
    rig.clock.advance(60)
    _, *told = await asyncio.gather(rig.loops.waker.run_once(), *(answer(rig, poll(ask.external_id)) for ask in asks))
    for ask, [one] in zip(asks, told, strict=True):
        assert (await rig.state(ask.job), one) in (("COMPLETED", A.APPLIED), ("PROCESSING", A.LATE))
        # Late or not, the provider has said that it is done: nothing is left to cancel.
        assert await states(rig, ask.job) == ["ENDED"]


async def test_an_intent_and_a_cancel_at_once_leave_nothing_open(rig: Rig) -> None:
    for _ in range(15):
        one = await claimed(rig)
        asking = external.intend(rig.db, one.job_id, one.no, one.attempt, FAL)
        intent, _ = await asyncio.gather(asking, control.cancel(rig.db, one.job_id))
        assert await states(rig, one.job_id) == ([] if intent is None else ["CANCELLING"])


async def test_an_intent_waits_for_whoever_is_ending_its_attempt(rig: Rig, dsn: str) -> None:
    one = await claimed(rig)
    other = await Database.open(dsn, now=rig.clock.now)
    try:
        async with other.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await drafts.lock(connection, [one.job_id])
            await connection.execute("UPDATE steps SET state = 'CANCELLED' WHERE job_id = $1", one.job_id)
            asking = asyncio.create_task(external.intend(rig.db, one.job_id, one.no, one.attempt, FAL))
            await blocked(connection)
            await transaction.commit()
            assert await asking is None
    finally:
        await other.close()
    assert await states(rig, one.job_id) == []


async def test_an_intent_and_an_orphan_at_once_get_rounds_of_their_own(rig: Rig, dsn: str) -> None:
    ask = await asked(rig)
    await external.rejected(rig.db, ask.intent.key, "429")
    other = await Database.open(dsn, now=rig.clock.now)
    try:
        async with other.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await external.orphaned(rig.db, ask.intent.key, FAL, "first")
            await connection.execute(sql("work_orphaned"), ask.job, 0, 1, FAL, "second")
            asking = asyncio.create_task(intend(rig, ask.one))
            await blocked(connection)
            await transaction.commit()
            assert (await asking).key.round == 3
    finally:
        await other.close()
    assert await states(rig, ask.job) == ["CANCELLING", "CANCELLING", "SUBMITTING"]


async def test_an_intent_needs_nothing_of_its_job_but_its_step(rig: Rig, dsn: str) -> None:
    """Of a wide job, workers ask for many steps while others claim and settle."""
    one = await claimed(rig)
    other = await Database.open(dsn, now=rig.clock.now)
    try:
        async with other.connection() as connection, connection.transaction():
            await drafts.lock(connection, [one.job_id])
            async with asyncio.timeout(60):
                assert await external.intend(rig.db, one.job_id, one.no, one.attempt, FAL) is not None
    finally:
        await other.close()


# ---------------------------------------------------------------- what it costs


class Counting(FaultyDatabase):
    """Counts the statements of its operations."""

    count = 0

    async def attempt(self, operation: Any) -> Any:
        async def counted(connection: Any) -> Any:
            def seen(_: Any) -> None:
                Counting.count += 1

            connection.add_query_logger(seen)
            try:
                return await operation(connection)
            finally:
                connection.remove_query_logger(seen)

        return await super().attempt(counted)


async def test_a_batch_takes_as_many_statements_as_one_answer(
    rig: Rig, dsn: str, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts
) -> None:
    counting = await Counting.open(dsn, now=clock.now)
    try:
        counts = []
        for size in (1, 1, 40):
            asks = [await asked(rig) for _ in range(size)]
            reports = [Report(a.job, 0, 1, Parked(FAL, 60.0, a.external_id)) for a in asks]
            await settling.settle(rig.db, reports, spread=lambda: 0.0)
            Counting.count = 0
            answers = [webhook(a.external_id, id=str(a.job)) for a in asks]
            assert set(await external.answer(counting, answers, spread=lambda: 0.0)) == {A.APPLIED}
            counts.append(Counting.count)
        assert counts[1] == counts[2]
        assert counts[2] <= 18
    finally:
        await counting.close()


# How a row is found, by one of these columns or more; anything less would read all that a provider was ever asked.
_NARROW = ("external_id = ", "no = ", "id = ", "due_at <= ")  # a ctid is an id
_STATEMENTS = {
    "work_intend": 6, "work_rejected": 5, "work_orphaned": 5, "work_moved": 3, "work_swept": 1, "work_recorded": 6,
    "event_known": 2, "work_find": 6, "work_read": 3, "work_answered": 6, "work_known": 2, "event_seen": 2,
    "event_moved": 7, "work_due": 3, "work_polled": 10, "work_of": 1,
}  # fmt: skip


async def test_rows_are_looked_up_one_by_one_even_by_plans_made_when_there_were_none(fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn, max_size=1)
    try:
        for name in _STATEMENTS:
            await _check_plan(db, name)
        # What is only read is so even when the planner knows for sure that there is nothing.
        await db.run(lambda connection: connection.execute("ANALYZE"))
        for name in (
            "work_find",
            "work_read",
            "work_known",
            "event_seen",
            "event_known",
            "work_intend",
            "work_rejected",
        ):
            await _check_plan(db, name)
    finally:
        await db.close()


async def _check_plan(db: Database, name: str) -> None:
    nothing = ", ".join(["NULL"] * _STATEMENTS[name])
    async with db.connection() as connection:
        await connection.execute(f"PREPARE looked AS {sql(name)}")
        plan = [row[0] for row in await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE looked ({nothing})")]
        await connection.execute("DEALLOCATE looked")
    scans = [i for i, line in enumerate(plan) if " on " in line and "Scan" in line and "Function" not in line]
    assert scans
    for i in scans:
        if "CTE Scan" not in plan[i] and "Subquery Scan" not in plan[i]:
            found = plan[i + 1]
            assert ("Index Cond" in found or "TID Cond" in found) and any(narrow in found for narrow in _NARROW), (
                "\n".join(plan)
            )
