"""Work at providers: submitted once and answered once, in any order of webhooks, polls and reports."""

from __future__ import annotations

import pytest

from tests.engine.outside import (
    CHAIN,
    DONE,
    FAILED,
    FAL,
    ONCE,
    P,
    answer,
    asked,
    claim_again,
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
from tests.engine.rig import Rig, plan, task
from windlass.core.errors import NotFound
from windlass.core.external import ID_MAX, Said, WorkKey
from windlass.core.outcome import Cost, Failure, Fault, Lost, Parked, Released, Report, Snooze, Success
from windlass.core.plan import OnFailure
from windlass.engine import control, external
from windlass.engine import settle as settling
from windlass.engine.answer import BATCH_MAX
from windlass.engine.external import Answer, Applied
from windlass.engine.loops.duty import Done
from windlass.engine.loops.pruner import Pruner
from windlass.engine.loops.webhook_applier import WebhookApplier
from windlass.views import read

A = Applied


async def output(rig: Rig, job: object) -> object:
    [step] = [step for step in await read.steps(rig.db, job) if step.no == 0]  # type: ignore[arg-type]
    return step.output


# ---------------------------------------------------------------- the way it goes


@pytest.mark.covers("SCR-46", "SCR-64")
async def test_the_first_answer_settles_the_step_and_the_second_is_late(rig: Rig) -> None:
    ask = await parked(rig, CHAIN)
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id, view.attempt, view.round) == ("RUNNING", ask.external_id, 1, 1)
    assert await rig.states(ask.job) == ["PARKED", "BLOCKED"]
    assert await answer(rig, webhook(ask.external_id)) == [A.APPLIED]
    assert await rig.states(ask.job) == ["COMPLETED", "QUEUED"]
    assert await states(rig, ask.job) == ["ENDED"]
    events = await rig.types(ask.job)
    assert await answer(rig, poll(ask.external_id, FAILED)) == [A.LATE]
    assert await answer(rig, webhook(ask.external_id, FAILED, "evt-2")) == [A.LATE]
    assert await rig.types(ask.job) == events
    assert await event_states(rig) in (["LATE", "APPLIED"], ["APPLIED", "LATE"])


async def test_the_intent_is_there_before_the_provider_is_asked(rig: Rig) -> None:
    ask = await asked(rig)
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id, view.due_at, view.submitted_at) == ("SUBMITTING", None, None, None)
    assert ask.intent == external.Intent(WorkKey(ask.job, 0, 1), None, "SUBMITTING", True)
    again = await intend(rig, ask.one)
    assert again == ask.intent._replace(is_new=False), "the same round, and so the same key"


@pytest.mark.parametrize("attempt", [0, 2])
async def test_an_attempt_that_is_not_the_running_one_may_not_ask(rig: Rig, attempt: int) -> None:
    one = await claimed(rig)
    assert await external.intend(rig.db, one.job_id, one.no, attempt, FAL) is None
    assert await work(rig, one.job_id) == []


async def test_a_cancelled_job_may_not_ask(rig: Rig) -> None:
    one = await claimed(rig)
    await control.cancel(rig.db, one.job_id)
    assert await external.intend(rig.db, one.job_id, one.no, one.attempt, FAL) is None


async def test_a_failure_that_may_be_tried_again_begins_another_round(rig: Rig) -> None:
    ask = await parked(rig)
    assert await answer(rig, poll(ask.external_id, FAILED)) == [A.APPLIED]
    assert await rig.states(ask.job) == ["PARKED"]
    rig.clock.advance(10)
    await rig.loops.waker.run_once()
    intent = await intend(rig, await claim_again(rig, ask.job))
    assert (intent.key.round, intent.is_new, intent.external_id) == (2, True, None)
    assert await states(rig, ask.job) == ["ENDED", "SUBMITTING"]
    assert await answer(rig, webhook(ask.external_id)) == [A.LATE], "of the old round"
    assert await rig.states(ask.job) == ["RUNNING"]


async def test_what_the_provider_cancelled_fails_the_step(rig: Rig) -> None:
    ask = await parked(rig)
    assert await answer(rig, webhook(ask.external_id, Said(P.CANCELLED))) == [A.APPLIED]
    assert await rig.states(ask.job) == ["FAILED"]
    assert await states(rig, ask.job) == ["ENDED"]


@pytest.mark.parametrize("said", [Said(P.UNKNOWN), Said(P.RUNNING), Said(P.QUEUED)])
async def test_what_is_not_the_end_settles_nothing(rig: Rig, said: Said) -> None:
    ask = await parked(rig)
    for source in (poll(ask.external_id, said), webhook(ask.external_id, said)):
        assert await answer(rig, source) == [A.NOTED]
    assert await rig.states(ask.job) == ["PARKED"]
    [view] = await work(rig, ask.job)
    assert (view.state, view.status) == ("RUNNING", said.status)
    assert view.due_at is not None, "it is polled as before"


async def test_a_synchronous_answer_ends_the_round_with_the_step(rig: Rig) -> None:
    ask = await asked(rig)
    assert await rig.settle(ask.one, Success("1"))
    assert await states(rig, ask.job) == ["ENDED"]
    assert await due(rig) == []


async def test_work_whose_step_somebody_else_completed_is_cancelled(rig: Rig) -> None:
    ask = await parked(rig)
    report = Report(ask.job, 0, 1, Success("1"), source="callback")
    assert (await settling.settle(rig.db, [report], spread=lambda: 0.0)).took_effect == (True,)
    assert await states(rig, ask.job) == ["CANCELLING"]
    ask = await asked(rig)
    report = Report(ask.job, 0, 1, Success("1"), source="callback")
    assert (await settling.settle(rig.db, [report], spread=lambda: 0.0)).took_effect == (True,)
    assert await states(rig, ask.job) == ["CANCELLING"], "it may have been accepted"


async def test_one_answer_settles_every_step_that_waits_for_it(rig: Rig) -> None:
    """A provider may take two equal requests for one."""
    asks = [await parked(rig, external_id="shared") for _ in range(3)]
    assert await answer(rig, webhook("shared")) == [A.APPLIED]
    assert [await rig.state(ask.job) for ask in asks] == ["COMPLETED"] * 3
    late = await parked(rig, external_id="shared")
    assert await answer(rig, webhook("shared", id="evt-2")) == [A.APPLIED], "ended rows do not hide the last"
    assert await rig.state(late.job) == "COMPLETED"


# ---------------------------------------------------------------- progress and costs


async def test_progress_and_previews_reach_the_job_while_the_step_is_parked(rig: Rig) -> None:
    ask = await parked(rig)
    said = Said(P.RUNNING, progress_pct=40.0, message="drawing", preview='{"frame":1}')
    assert await answer(rig, webhook(ask.external_id, said)) == [A.NOTED]
    view = await read.job(rig.db, ask.job)
    assert (view.state, view.progress) == ("PREVIEW", {"pct": 40.0, "message": "drawing"})
    assert await answer(rig, poll(ask.external_id, Said(P.RUNNING, progress_pct=50.0))) == [A.NOTED]
    assert await rig.state(ask.job) == "PROCESSING"
    events = await read.events(rig.db, ask.job)
    told = [(event.type, event.source) for event in events if event.type in ("step.preview", "step.progress")]
    assert told == [("step.preview", "webhook"), ("step.progress", "webhook"), ("step.progress", "poller")]
    assert await event_states(rig) == ["NOTED"]


async def test_progress_and_the_end_may_come_in_one_batch(rig: Rig) -> None:
    ask = await parked(rig)
    half = Said(P.RUNNING, progress_pct=50.0)
    said = await answer(
        rig,
        webhook(ask.external_id, half, "1"),
        webhook(ask.external_id, DONE, "2"),
        webhook(ask.external_id, half, "3"),
        webhook(ask.external_id, FAILED, "4"),
        webhook(ask.external_id, DONE, "2"),
    )
    assert said == [A.NOTED, A.APPLIED, A.LATE, A.LATE, A.REPLAYED]
    assert await rig.state(ask.job) == "COMPLETED"


async def test_progress_of_an_attempt_that_is_over_is_late(rig: Rig) -> None:
    ask = await asked(rig)
    await rig.settle(ask.one, Failure(Fault("timeout", "the provider was slow")))
    half = Said(P.RUNNING, progress_pct=50.0)
    assert await answer(rig, webhook(ask.external_id, half, key=ask.intent.key)) == [A.LATE]


async def test_what_the_work_cost_is_kept_with_its_attempt(rig: Rig) -> None:
    ask = await parked(rig)
    said = Said(P.SUCCEEDED, "1", cost=Cost("0.125", tokens_in=7, seconds=1.5))
    assert await answer(rig, webhook(ask.external_id, said)) == [A.APPLIED]
    rows = await rig.db.run(lambda c: c.fetch("SELECT no, attempt, provider, amount::text, tokens_in FROM costs"))
    assert [tuple(row) for row in rows] == [(0, 1, FAL, "0.125", 7)]


async def test_work_that_was_in_vain_is_paid_for_all_the_same(rig: Rig) -> None:
    cancelled, retried = await parked(rig), await parked(rig, within_s=60)
    await control.cancel(rig.db, cancelled.job)
    rig.clock.advance(60)
    await rig.loops.waker.run_once()
    said = Said(P.SUCCEEDED, "1", cost=Cost("0.5"))
    for ask in (cancelled, retried):
        for source in (webhook(ask.external_id, said, str(ask.job)), poll(ask.external_id, said)):
            assert await answer(rig, source) == [A.LATE]
    rows = await rig.db.run(lambda c: c.fetch("SELECT job_id, attempt, amount::text FROM costs ORDER BY job_id"))
    assert [tuple(row) for row in rows] == [(cancelled.job, 1, "0.5"), (retried.job, 1, "0.5")]
    assert await rig.state(cancelled.job) == "CANCELLED"


# ---------------------------------------------------------------- early, late, doubled


async def test_a_webhook_that_comes_before_its_submit_is_recorded_is_not_lost(rig: Rig) -> None:
    ask = await asked(rig)
    assert await answer(rig, webhook(ask.external_id)) == [A.WAITING]
    assert await answer(rig, webhook(ask.external_id)) == [A.REPLAYED]
    assert await WebhookApplier(rig.db, rig.spread).run_once() == Done(0)
    assert await park(rig, ask)
    assert await event_states(rig) == ["DUE"]
    assert await WebhookApplier(rig.db, rig.spread).run_once() == Done(1)
    assert await rig.state(ask.job) == "COMPLETED"
    assert await event_states(rig) == ["APPLIED"]
    assert await output(rig, ask.job) == {"url": "x"}
    assert await WebhookApplier(rig.db, rig.spread).run_once() == Done(0)


async def test_the_engine_applies_what_was_kept_by_itself(rig: Rig) -> None:
    ask = await asked(rig)
    await answer(rig, webhook(ask.external_id))
    await park(rig, ask)
    await rig.loops.look()
    assert await rig.state(ask.job) == "COMPLETED"


async def test_several_events_that_were_kept_are_applied_in_their_order(rig: Rig) -> None:
    ask = await asked(rig)
    for id, said in (("1", Said(P.RUNNING, progress_pct=50.0)), ("2", DONE), ("3", FAILED)):
        assert await answer(rig, webhook(ask.external_id, said, id)) == [A.WAITING]
        rig.clock.advance(1)
    await park(rig, ask)
    await WebhookApplier(rig.db, rig.spread).run_once()
    assert await rig.state(ask.job) == "COMPLETED"
    assert sorted(await event_states(rig)) == ["APPLIED", "LATE", "NOTED"]


async def test_a_webhook_that_names_our_key_settles_the_step_before_its_submit_is_recorded(rig: Rig) -> None:
    ask = await asked(rig)
    assert await answer(rig, webhook(ask.external_id, key=ask.intent.key)) == [A.APPLIED]
    assert await rig.state(ask.job) == "COMPLETED"
    assert not await park(rig, ask), "the worker comes late"
    await external.orphaned(rig.db, ask.intent.key, FAL, ask.external_id)
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id) == ("ENDED", ask.external_id), "nothing is cancelled"


async def test_a_key_does_not_overrule_what_the_provider_called_the_work(rig: Rig) -> None:
    ask = await parked(rig)
    assert await answer(rig, webhook("another", key=ask.intent.key)) == [A.WAITING]
    assert await rig.states(ask.job) == ["PARKED"]


@pytest.mark.covers("COR-110")
async def test_a_replay_is_refused_whatever_it_says(rig: Rig) -> None:
    ask = await parked(rig)
    half = Said(P.RUNNING, progress_pct=50.0)
    assert await answer(rig, webhook(ask.external_id, half)) == [A.NOTED]
    assert await answer(rig, webhook(ask.external_id, DONE)) == [A.REPLAYED]
    assert await rig.states(ask.job) == ["PARKED"]


async def test_ids_of_events_are_a_providers_own(rig: Rig) -> None:
    asks = [await parked(rig) for _ in range(2)]
    other = webhook(asks[1].external_id)._replace(provider="replicate")
    assert await answer(rig, webhook(asks[0].external_id), other) == [A.APPLIED, A.WAITING]


async def test_an_answer_for_work_that_nobody_knows_is_kept_only_if_it_is_an_event(rig: Rig) -> None:
    assert await answer(rig, poll("who")) == [A.WAITING]
    assert await answer(rig, webhook(None, Said(P.UNKNOWN))) == [A.WAITING]
    assert await event_states(rig) == ["WAITING"]


async def test_an_answer_after_cancel_is_late_and_the_cancel_goes_on(rig: Rig) -> None:
    ask = await parked(rig)
    await control.cancel(rig.db, ask.job)
    assert await states(rig, ask.job) == ["CANCELLING"]
    half = Said(P.RUNNING, progress_pct=50.0)
    assert await answer(rig, webhook(ask.external_id, half)) == [A.LATE]
    [taken] = await due(rig)
    assert (taken.state, taken.external_id) == ("CANCELLING", ask.external_id)
    assert await answer(rig, webhook(ask.external_id, DONE, "evt-2")) == [A.LATE]
    assert await states(rig, ask.job) == ["ENDED"], "there is nothing left to cancel"
    assert await rig.state(ask.job) == "CANCELLED"


async def test_an_early_event_of_a_job_that_was_cancelled_meanwhile_is_late(rig: Rig) -> None:
    ask = await asked(rig)
    assert await answer(rig, webhook(ask.external_id)) == [A.WAITING]
    await control.cancel(rig.db, ask.job)
    assert not await park(rig, ask)
    await external.orphaned(rig.db, ask.intent.key, FAL, ask.external_id)
    assert await states(rig, ask.job) == ["CANCELLING"]
    await rig.loops.run_until_idle()
    assert await rig.state(ask.job) == "CANCELLED"
    assert await event_states(rig) == ["LATE"]
    assert await states(rig, ask.job) == ["ENDED"], "it has ended there by itself"


async def test_an_early_event_is_late_once_another_has_told_by_our_key_what_the_work_is_called(rig: Rig) -> None:
    ask = await asked(rig)
    assert await answer(rig, webhook(ask.external_id, FAILED, "1")) == [A.WAITING]
    told = await answer(
        rig, webhook(ask.external_id, DONE, "2", key=ask.intent.key), webhook(ask.external_id, FAILED, "3")
    )
    assert told == [A.APPLIED, A.WAITING]
    await rig.loops.run_until_idle()
    assert sorted(await event_states(rig)) == ["APPLIED", "LATE", "LATE"]
    assert await rig.state(ask.job) == "COMPLETED"


# ---------------------------------------------------------------- attempts that are cut short


@pytest.mark.parametrize("outcome", [Lost(), Released()])
async def test_the_work_of_a_lost_attempt_is_taken_over_by_the_next(rig: Rig, outcome: Lost | Released) -> None:
    ask = await asked(rig)
    assert await rig.settle(ask.one, outcome)
    [one] = await rig.claim()
    assert one.attempt == 2
    intent = await intend(rig, one)
    assert (intent.key, intent.is_new) == (ask.intent.key, False)
    [view] = await work(rig, ask.job)
    assert view.attempt == 2
    assert await rig.settle(one, Parked(FAL, 60.0, ask.external_id))
    assert await answer(rig, webhook(ask.external_id)) == [A.APPLIED]
    assert await states(rig, ask.job) == ["ENDED"]


async def test_an_answer_for_a_lost_attempt_waits_for_the_next(rig: Rig) -> None:
    """The webhook names our key, its attempt is lost, and the next has not begun."""
    ask = await asked(rig)
    await rig.settle(ask.one, Lost())
    assert await answer(rig, webhook(ask.external_id, key=ask.intent.key)) == [A.WAITING]
    [one] = await rig.claim()
    assert await answer(rig, poll(ask.external_id)) == [A.WAITING], "it has not asked yet"
    intent = await intend(rig, one)
    assert (intent.external_id, intent.state, intent.is_new) == (ask.external_id, "RUNNING", False)
    assert await rig.settle(one, Parked(FAL, 60.0, ask.external_id))
    await WebhookApplier(rig.db, rig.spread).run_once()
    assert await rig.state(ask.job) == "COMPLETED"
    assert await event_states(rig) == ["APPLIED"]


async def test_an_answer_for_an_attempt_that_will_be_tried_again_waits_for_it(rig: Rig) -> None:
    """The start seemed to fail and did not: a timeout."""
    ask = await asked(rig)
    await rig.settle(ask.one, Failure(Fault("timeout", "")))
    assert await states(rig, ask.job) == ["SUBMITTING"]
    assert await answer(rig, webhook(ask.external_id, key=ask.intent.key)) == [A.WAITING]
    rig.clock.advance(10)
    await rig.loops.waker.run_once()
    one = await claim_again(rig, ask.job)
    assert (await intend(rig, one)).external_id == ask.external_id
    assert await rig.settle(one, Parked(FAL, 60.0, ask.external_id))
    await WebhookApplier(rig.db, rig.spread).run_once()
    assert await rig.state(ask.job) == "COMPLETED"


@pytest.mark.covers("SCR-69")
async def test_an_event_that_cannot_be_taken_yet_is_put_back(rig: Rig) -> None:
    ask = await asked(rig)
    await answer(rig, webhook(ask.external_id))
    await park(rig, ask)
    await answer(rig, poll(ask.external_id, FAILED))
    assert await rig.states(ask.job) == ["PARKED"]
    await WebhookApplier(rig.db, rig.spread).run_once()
    assert await event_states(rig) == ["LATE"], "the poll came first"


async def test_a_worker_that_comes_back_hands_its_work_to_the_next_attempt(rig: Rig) -> None:
    ask = await asked(rig)
    await rig.settle(ask.one, Lost())
    assert not await park(rig, ask)
    await external.orphaned(rig.db, ask.intent.key, FAL, ask.external_id)
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id) == ("RUNNING", ask.external_id)
    [one] = await rig.claim()
    assert (await intend(rig, one)).external_id == ask.external_id


async def test_work_of_an_attempt_that_nobody_will_take_over_is_cancelled(rig: Rig) -> None:
    ask = await asked(rig)
    await control.cancel(rig.db, ask.job)
    assert await states(rig, ask.job) == ["CANCELLING"]
    [taken] = await due(rig)
    assert taken.external_id is None
    await external.polled(rig.db, [external.Polled(taken, "UNKNOWN", None, is_over=True)])
    assert await states(rig, ask.job) == ["ENDED"]
    await external.orphaned(rig.db, ask.intent.key, FAL, ask.external_id)
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id, view.ended_at) == ("CANCELLING", ask.external_id, None)
    assert [taken.external_id for taken in await due(rig)] == [ask.external_id]


async def test_work_that_was_begun_twice_is_cancelled_once(rig: Rig) -> None:
    """A provider that does not honour keys began it for both attempts."""
    ask = await parked(rig)
    await external.orphaned(rig.db, ask.intent.key, FAL, "twin")
    await external.orphaned(rig.db, ask.intent.key, FAL, "twin")
    views = await work(rig, ask.job)
    assert [(v.state, v.external_id) for v in views] == [("RUNNING", ask.external_id), ("CANCELLING", "twin")]
    assert await answer(rig, webhook("twin")) == [A.LATE]
    assert await answer(rig, webhook(ask.external_id, id="evt-2")) == [A.APPLIED]


async def test_work_that_the_provider_gave_before_is_not_begun_anew(rig: Rig) -> None:
    """It answers a new request with old work, which is over."""
    ask = await parked(rig)
    await answer(rig, poll(ask.external_id, FAILED))
    rig.clock.advance(10)
    await rig.loops.waker.run_once()
    one = await claim_again(rig, ask.job)
    intent = await intend(rig, one)
    await external.orphaned(rig.db, intent.key, FAL, ask.external_id)
    assert await states(rig, ask.job) == ["ENDED", "SUBMITTING"]


async def test_work_that_turns_out_to_be_another_is_cancelled(rig: Rig) -> None:
    ask = await asked(rig)
    await rig.settle(ask.one, Lost())
    await external.orphaned(rig.db, ask.intent.key, FAL, "first")
    [one] = await rig.claim()
    assert await rig.settle(one, Parked(FAL, 60.0, "second"))
    views = await work(rig, ask.job)
    assert [(v.state, v.external_id) for v in views] == [("RUNNING", "second"), ("CANCELLING", "first")]
    assert await answer(rig, webhook("first")) == [A.LATE]
    assert await answer(rig, webhook("second", id="evt-2")) == [A.APPLIED]


async def test_work_that_was_not_told_before_is_known_once_its_step_waits(rig: Rig) -> None:
    one = await claimed(rig)
    assert await rig.settle(one, Parked(FAL, 60.0, "mine"))
    assert [(v.state, v.round) for v in await work(rig, one.job_id)] == [("RUNNING", 1)]
    assert await answer(rig, webhook("mine")) == [A.APPLIED]


async def test_a_definite_no_ends_the_round_and_only_that_one(rig: Rig) -> None:
    ask = await asked(rig)
    await external.rejected(rig.db, ask.intent.key, "429", attempt=7)
    assert await states(rig, ask.job) == ["SUBMITTING"], "another attempt's word"
    await external.rejected(rig.db, ask.intent.key, "429", attempt=1)
    [view] = await work(rig, ask.job)
    assert (view.state, view.status) == ("ENDED", "429")
    assert (await intend(rig, ask.one)).key.round == 2
    assert await rig.settle(ask.one, Parked(FAL, 60.0, "second"))
    await external.rejected(rig.db, WorkKey(ask.job, 0, 2), "429")
    assert await states(rig, ask.job) == ["ENDED", "RUNNING"], "it was accepted"


async def test_an_ambiguous_no_keeps_the_key(rig: Rig) -> None:
    ask = await asked(rig)
    await rig.settle(ask.one, Failure(Fault("connection_lost", ""), after_s=1))
    rig.clock.advance(1)
    await rig.loops.waker.run_once()
    assert (await intend(rig, await claim_again(rig, ask.job))).key == ask.intent.key


@pytest.mark.parametrize("outcome", [Snooze(1), Failure(Fault("connection_lost", ""), after_s=1)])
@pytest.mark.parametrize("is_over", [True, False])
async def test_work_that_was_heard_of_while_its_start_seemed_to_fail_is_waited_for(
    rig: Rig, outcome: Snooze | Failure, is_over: bool
) -> None:
    ask = await asked(rig)
    begun = webhook(ask.external_id, Said(P.RUNNING), "1", key=ask.intent.key)
    assert await answer(rig, begun) == [A.NOTED]
    await rig.settle(ask.one, outcome)
    assert await states(rig, ask.job) == ["RUNNING"]
    if is_over:
        assert await answer(rig, webhook(ask.external_id, DONE, "2")) == [A.WAITING]
        assert await answer(rig, poll(ask.external_id)) == [A.WAITING]
    rig.clock.advance(1)
    await rig.loops.waker.run_once()
    one = await claim_again(rig, ask.job)
    intent = await intend(rig, one)
    assert intent == external.Intent(ask.intent.key, ask.external_id, "RUNNING", False), "nothing is asked for"
    assert await rig.settle(one, Parked(FAL, 60.0, ask.external_id))
    if is_over:
        await WebhookApplier(rig.db, rig.spread).run_once()
    else:
        assert await answer(rig, poll(ask.external_id)) == [A.APPLIED]
    assert await rig.state(ask.job) == "COMPLETED"


async def test_work_whose_step_is_to_be_tried_again_by_word_from_outside_is_cancelled(rig: Rig) -> None:
    ask = await parked(rig)
    report = Report(ask.job, 0, 1, Failure(Fault("boom", "")), source="callback")
    assert (await settling.settle(rig.db, [report], spread=lambda: 0.0)).took_effect == (True,)
    assert await states(rig, ask.job) == ["CANCELLING"]


async def test_a_wait_that_lasts_too_long_is_tried_again_in_a_new_round_and_the_old_one_cancelled(rig: Rig) -> None:
    ask = await parked(rig, within_s=60)
    rig.clock.advance(60)
    await rig.loops.waker.run_once()
    assert await states(rig, ask.job) == ["CANCELLING"]
    assert await answer(rig, webhook(ask.external_id)) == [A.LATE]
    rig.clock.advance(5)
    await rig.loops.waker.run_once()
    intent = await intend(rig, await claim_again(rig, ask.job))
    assert (intent.key.round, intent.is_new) == (2, True)


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_step_that_fails_for_good_has_its_work_cancelled(rig: Rig, is_recorded: bool) -> None:
    once = plan(task("a", provider=FAL, retry=ONCE))
    if is_recorded:
        ask = await parked(rig, once, within_s=5)
        rig.clock.advance(5)
        await rig.loops.waker.run_once()
    else:
        ask = await asked(rig, once)
        await rig.settle(ask.one, Failure(Fault("boom", "")))
    assert await rig.states(ask.job) == ["FAILED"]
    assert await states(rig, ask.job) == ["CANCELLING"]


async def test_a_step_that_parks_in_the_batch_that_ends_its_job_has_its_work_cancelled(rig: Rig) -> None:
    two = plan(task("a", provider=FAL), task("b", retry=ONCE), on_failure=OnFailure.STOP)
    ask = await asked(rig, two)
    reports = [
        Report(ask.job, 0, 1, Parked(FAL, 60.0, ask.external_id)),
        Report(ask.job, 1, 1, Failure(Fault("boom", ""))),
    ]
    await rig.claim()
    await settling.settle(rig.db, reports, spread=lambda: 0.0)
    assert await rig.state(ask.job) == "FAILED"
    [view] = await work(rig, ask.job)
    assert (view.state, view.external_id) == ("CANCELLING", ask.external_id)


async def test_an_expired_job_has_its_work_cancelled(rig: Rig) -> None:
    ask = await parked(rig)
    rig.clock.advance(10 * 86400)
    await rig.loops.expirer.run_once()
    assert await states(rig, ask.job) == ["CANCELLING"]


# ---------------------------------------------------------------- many at once, and nonsense


async def test_a_fan_out_is_answered_in_one_batch(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", each="inputs.xs", provider=FAL), task("b", "a")), {"xs": list(range(50))})
    await rig.loops.router.run_once()
    await rig.loops.router.run_once()
    await grant(rig, job)
    ones = await rig.claim(100)
    assert len(ones) == 50
    reports = []
    for one in ones:
        await intend(rig, one)
        reports.append(Report(job, one.no, one.attempt, Parked(FAL, 60.0, f"req-{one.no}")))
    await settling.settle(rig.db, reports, spread=lambda: 0.0)
    said = await answer(rig, *(webhook(f"req-{one.no}", id=f"evt-{one.no}") for one in ones))
    assert said == [A.APPLIED] * 50
    assert (await rig.states(job))[:2] == ["COMPLETED", "QUEUED"]
    assert set(await states(rig, job)) == {"ENDED"}


async def test_there_is_a_limit_to_one_batch(rig: Rig) -> None:
    with pytest.raises(ValueError, match="at most 500"):
        await answer(rig, *[poll("x")] * (BATCH_MAX + 1))
    assert await answer(rig) == []


async def test_one_providers_nonsense_does_not_hold_up_the_others(rig: Rig) -> None:
    asks = [await parked(rig) for _ in range(3)]
    bad = "x" * (ID_MAX + 1)
    said = await answer(
        rig,
        webhook(asks[0].external_id, Said(P.SUCCEEDED, "{not json"), "1"),
        webhook("a\x00b", DONE, "2"),
        webhook(bad, DONE, "3"),
        webhook(asks[1].external_id, Said(P.RUNNING, message="half a \ud800", preview="{"), bad),
        webhook(asks[2].external_id, Said(P.FAILED, fault=Fault("c", "\udfff"), cost=Cost("much")), "5\x00"),
        webhook(None, DONE, "6", key=WorkKey(asks[0].job, 99, 1)),
    )
    assert said == [A.APPLIED, A.WAITING, A.WAITING, A.NOTED, A.APPLIED, A.WAITING]
    assert await rig.states(asks[0].job) == ["FAILED"]
    assert await answer(rig, webhook(asks[1].external_id, DONE, bad)) == [A.REPLAYED], "by a digest of its id"


# ---------------------------------------------------------------- events that are kept


async def test_an_event_can_be_read_and_applied_again(rig: Rig) -> None:
    ask = await parked(rig)
    assert await answer(rig, webhook(None, Said(P.UNKNOWN))) == [A.WAITING]
    seen = []

    def parse(headers: dict[str, str], body: bytes) -> tuple[str | None, Said, WorkKey | None]:
        seen.append((headers, body))
        return ask.external_id, DONE, None

    assert await external.reapply(rig.db, FAL, "evt-1", parse) == A.APPLIED
    assert seen == [({"x-a": "b"}, b'{"raw":1}')]
    assert await rig.state(ask.job) == "COMPLETED"
    assert await external.reapply(rig.db, FAL, "evt-1", parse) == A.LATE
    assert await event_states(rig) == ["APPLIED"], "what it did is not forgotten"
    with pytest.raises(NotFound, match="no event evt-9"):
        await external.reapply(rig.db, FAL, "evt-9", parse)


async def test_an_event_that_is_still_unknown_stays_kept(rig: Rig) -> None:
    await answer(rig, webhook("who"))
    assert await external.reapply(rig.db, FAL, "evt-1", lambda h, b: ("who", DONE, None)) == A.WAITING
    assert await event_states(rig) == ["WAITING"]


async def test_events_are_listed_the_newest_first(rig: Rig) -> None:
    ask = await parked(rig)
    await answer(rig, webhook(ask.external_id, id="1"))
    rig.clock.advance(1)
    await answer(rig, webhook("who", id="2"))
    rows = await external.events(rig.db, FAL)
    assert [(row.id, row.state, row.external_id, row.job_id) for row in rows] == [
        ("2", "WAITING", "who", None),
        ("1", "APPLIED", ask.external_id, ask.job),
    ]
    assert [row.id for row in await external.events(rig.db, FAL, state="WAITING")] == ["2"]
    assert await external.events(rig.db, "replicate") == []


async def test_events_are_forgotten_after_the_time_of_retention(rig: Rig) -> None:
    await answer(rig, webhook("who", id="1"))
    rig.clock.advance(100)
    await answer(rig, webhook("who", id="2"))
    pruner = Pruner(rig.db, 50.0)
    assert (await pruner.run_once()).count == 1
    assert [row.id for row in await external.events(rig.db, FAL)] == ["2"]


async def test_what_is_kept_of_unknown_work_costs_the_engine_nothing(rig: Rig) -> None:
    for start in range(0, 1000, 500):
        await answer(rig, *(webhook(f"other-{i}", id=str(i)) for i in range(start, start + 500)))
    assert (await WebhookApplier(rig.db, rig.spread).run_once()).count == 0


async def test_what_is_told_by_an_answer_names_its_source(rig: Rig) -> None:
    ask = await parked(rig)
    await answer(rig, Answer(FAL, ask.external_id, DONE, "poller"))
    events = await read.events(rig.db, ask.job)
    assert [event.source for event in events if event.type == "step.completed"] == ["poller"]
