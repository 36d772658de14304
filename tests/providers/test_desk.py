"""Handlers hand work to a provider, through real workers, and it is begun once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.providers.ground import Ground, node, providers_yaml, until
from tests.worker.yard import until_state
from windlass.core.external import WorkKey
from windlass.core.outcome import Parked
from windlass.core.plan import Node
from windlass.core.retry import Retry
from windlass.engine import control, external, workers
from windlass.engine.claim import claim
from windlass.engine.settle import settle
from windlass.providers.adapter import Started, StartRequest
from windlass.providers.desk import Place
from windlass.providers.errors import ConnectionLost
from windlass.providers.registry import Registry
from windlass.testing.fake_provider import Fault
from windlass.views import providers as provider_views
from windlass.worker.outside import Capabilities


async def made(on: Ground, job_id: UUID) -> Any:
    """What the job's step has made, once the job is over."""
    view = await on.yard.end(job_id)
    assert view.state == "COMPLETED", view.error
    return (await on.yard.step(job_id)).output


async def complaint(on: Ground, job_id: UUID) -> dict[str, Any]:
    """Why the job failed."""
    view = await on.yard.end(job_id)
    assert view.state in ("FAILED", "TIMEOUT")
    return (await on.yard.step(job_id)).error  # type: ignore[no-any-return]


async def until_cancelled_there(on: Ground, count: int = 1) -> None:
    async def is_so() -> bool:
        return len(on.fake.entries("cancelled")) >= count

    await until(is_so)


@pytest.mark.covers("SCR-19", "SCR-45")
@pytest.mark.parametrize("name", ["render", "render_plainly", "without_a_handler"])
async def test_a_step_is_parked_while_its_provider_works_and_then_has_what_it_made(on: Ground, name: str) -> None:
    await on.fake.behave(seconds=None, output={"url": "https://made"})
    [job_id] = await on.submit(node(name))
    async with on.running() as worker:
        step = await until_state(on.yard, job_id, "PARKED")
        assert step.waiting_for == "external:fake" and step.wake_at is not None
        assert worker.running == 0
        work = await on.until_work(job_id, "RUNNING")
        assert [work.external_id] == [entry.id for entry in on.fake.entries("accepted")]
        await on.fake.finish()
        assert await made(on, job_id) == {"url": "https://made"}
    assert [one.state for one in await on.work(job_id)] == ["ENDED"]
    [accepted] = on.fake.entries("accepted")
    assert accepted.key == str(WorkKey(job_id, 0, 1)) and accepted.input["prompt"] == "a fox"
    assert await on.open_slots() == 0


async def test_many_steps_are_each_done_once(on: Ground) -> None:
    jobs = await on.submit(count=40)
    async with on.running():
        for job_id in jobs:
            assert (await made(on, job_id))["echo"]["prompt"] == "a fox"
    assert on.fake.accepted() == {str(WorkKey(job_id, 0, 1)): 1 for job_id in jobs}
    assert await on.open_slots() == 0


async def test_a_cpu_handler_is_told_that_it_reaches_no_provider_and_what_it_spent_is_kept(on: Ground) -> None:
    [job_id] = await on.submit(node("render_in_process"))
    async with on.running():
        error = await complaint(on, job_id)
    assert "cpu=True" in error["message"] and error["code"] == "wrong_state"
    [cost] = await on.costs(job_id)
    assert (cost["amount"], cost["seconds"]) == (Decimal("0.25"), 2.0)
    assert not on.fake.entries("accepted")


async def test_what_a_handler_says_it_spent_adds_up(on: Ground) -> None:
    [job_id] = await on.submit(Node("spend", run="spend"))
    async with on.running():
        assert await made(on, job_id) == "spent"
    [cost] = await on.costs(job_id)
    assert tuple(cost) == (1, None, Decimal("0.15"), 3, 4, 1.5)


async def test_a_step_without_a_provider_is_told_how_to_name_one(on: Ground) -> None:
    [job_id] = await on.submit(Node("unprovided", run="unprovided"))
    async with on.running():
        error = await complaint(on, job_id)
    assert '@wl.step(provider="…")' in error["message"]


@pytest.mark.parametrize("known", [False, True])
async def test_a_worker_that_does_not_know_the_provider_fails_the_step_with_what_to_do(on: Ground, known: bool) -> None:
    if known:
        on.use(Registry.read(providers_yaml(on.fake).replace("fake:", "other:"), {}))
        capabilities = Capabilities(on.desk())
    else:
        capabilities = Capabilities()
    [job_id] = await on.submit()
    async with on.running(capabilities=capabilities):
        error = await complaint(on, job_id)
    assert "WINDLASS_PROVIDERS" in error["message"] and "'fake'" in error["message"]
    assert await on.open_slots() == 0


async def test_a_definite_no_fails_the_step_and_is_asked_once(on: Ground) -> None:
    await on.fake.fail(Fault("start", "status", status=422))
    [job_id] = await on.submit()
    async with on.running():
        error = await complaint(on, job_id)
    assert error["code"] == "invalid_request"
    assert (await on.yard.step(job_id)).attempt == 1
    assert [(one.state, one.status) for one in await on.work(job_id)] == [("ENDED", "invalid_request")]


@pytest.mark.parametrize("kind", ["lose_after", "garbage", "crash_after"])
async def test_an_answer_that_was_lost_is_asked_for_again_under_the_same_key(on: Ground, kind: str) -> None:
    await on.fake.fail(Fault("start", kind, times=1))
    # A provider that starts again must be there before the breaker opens.
    wait_s = 3.0 if kind == "crash_after" else 0.1
    [job_id] = await on.submit(node(retry=Retry(max_attempts=20, base_s=wait_s, factor=1, jitter=0)))
    async with on.running():
        if kind == "crash_after":
            await on.fake.ended()
            await on.fake.start()
        await made(on, job_id)
    assert on.fake.accepted() == {str(WorkKey(job_id, 0, 1)): 1}
    assert len(on.fake.entries("repeated")) == 1


async def test_a_lost_answer_that_a_webhook_has_told_by_now_is_no_failure(
    on: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    await on.fake.behave(seconds=0.3)
    adapter = on.by_name["fake"].adapter
    real = adapter.start_job

    async def lose(request: StartRequest) -> Started:
        started = await real(request)
        key = WorkKey.parse(request.key)
        assert key is not None and started.external_id is not None
        await external.orphaned(on.db, key, "fake", started.external_id)
        raise ConnectionLost("the answer was lost")

    monkeypatch.setattr(adapter, "start_job", lose)
    [job_id] = await on.submit()
    async with on.running():
        await made(on, job_id)
    assert (await on.yard.step(job_id)).attempt == 1
    assert len(on.fake.entries("accepted")) == 1


async def test_a_provider_that_is_busy_costs_no_attempt_and_is_left_alone_meanwhile(on: Ground) -> None:
    await on.fake.fail(Fault("start", "status", status=429, retry_after="1", times=1))
    [job_id] = await on.submit()
    async with on.running():
        await until_state(on.yard, job_id, "PARKED")
        [view] = await provider_views.views(on.db, "fake")
        assert view.paused_until is not None
        await made(on, job_id)
    step = await on.yard.step(job_id)
    assert (step.attempt, step.failures) == (2, 0)


async def test_a_storm_of_refusals_fails_nothing(on: Ground) -> None:
    await on.fake.fail(Fault("any", "status", status=429, retry_after="0.05", times=60))
    jobs = await on.submit(count=20)
    async with on.running():
        for job_id in jobs:
            await made(on, job_id)
    assert all([(await on.yard.step(job_id)).failures == 0 for job_id in jobs])
    accepted = on.fake.accepted()
    assert len(accepted) == 20 and set(accepted.values()) == {1}
    assert await on.open_slots() == 0


async def test_a_second_piece_of_work_is_refused_and_the_first_is_not_left_running(on: Ground) -> None:
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit(node("render_twice"))
    async with on.running():
        error = await complaint(on, job_id)
        assert "has already begun work" in error["message"]
        await until_cancelled_there(on)
        await on.until_work(job_id, "ENDED")
    assert len(on.fake.entries("accepted")) == 1


async def test_work_that_its_handler_does_not_wait_for_is_cancelled(on: Ground) -> None:
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit(node("render_and_go_on"))
    async with on.running():
        assert await made(on, job_id) == "never mind"
        await until_cancelled_there(on)
        await on.until_work(job_id, "ENDED")


async def test_work_begun_for_an_attempt_that_was_cancelled_is_cancelled_there(on: Ground) -> None:
    # A provider that looks nothing up: only we know what it calls the work.
    await on.set_up(options="{cancel: 'DELETE /jobs/{id}'}")
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit(node("render_and_linger"))
    async with on.running():

        async def is_begun() -> bool:
            return bool(on.fake.entries("accepted"))

        await until(is_begun)
        await control.cancel(on.db, job_id)
        await until_cancelled_there(on)
        await on.until_work(job_id, "ENDED")
    assert await on.open_slots() == 0


async def test_a_request_outlives_the_handler_that_was_stopped_and_its_work_is_cancelled(on: Ground) -> None:
    await on.set_up(options="{cancel: 'DELETE /jobs/{id}'}")
    await on.fake.behave(seconds=None)
    await on.fake.fail(Fault("start", "delay", seconds=0.6))
    [job_id] = await on.submit()
    async with on.running():
        await on.until_work(job_id, "SUBMITTING")
        await control.cancel(on.db, job_id)
        await until_cancelled_there(on)
        await on.until_work(job_id, "ENDED")


async def test_a_worker_that_ends_in_the_middle_of_a_request_leaves_no_second_piece_of_work(on: Ground) -> None:
    # The provider makes two jobs of two requests, also with equal keys: only our own record prevents that.
    await on.fake.behave(seconds=None, honours_keys=False)
    await on.fake.fail(Fault("start", "delay", seconds=0.6))
    [job_id] = await on.submit()
    async with on.running() as worker:
        await on.until_work(job_id, "SUBMITTING")
        worker.stop(now=True)
        await on.until_work(job_id, "RUNNING")
    async with on.running():
        await until_state(on.yard, job_id, "PARKED")
        await on.fake.finish()
        await made(on, job_id)
    assert len(on.fake.entries("accepted")) == 1


@pytest.mark.parametrize("name", ["render", "render_plainly"])
async def test_an_attempt_that_ran_out_of_time_hands_its_request_to_the_next(on: Ground, name: str) -> None:
    await on.fake.behave(seconds=0.2, honours_keys=False)
    await on.fake.fail(Fault("start", "delay", seconds=0.8, times=1))
    [job_id] = await on.submit(node(name, timeout_s=0.5))
    async with on.running():
        await made(on, job_id)
    assert (await on.yard.step(job_id)).attempt > 1
    assert len(on.fake.entries("accepted")) == 1


@pytest.mark.parametrize("name", ["render", "render_plainly"])
async def test_an_attempt_that_ran_out_of_time_for_good_leaves_no_work_running(on: Ground, name: str) -> None:
    await on.set_up(options="{cancel: 'DELETE /jobs/{id}'}")
    await on.fake.behave(seconds=None)
    await on.fake.fail(Fault("start", "delay", seconds=0.8, times=1))
    [job_id] = await on.submit(node(name, timeout_s=0.4, retry=Retry(max_attempts=1)))
    async with on.running():
        assert (await complaint(on, job_id))["code"] == "attempt_timeout"
        await until_cancelled_there(on)
        await on.until_work(job_id, "ENDED")


async def test_a_report_that_comes_too_late_leaves_no_work_running(on: Ground) -> None:
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit()
    async with on.yard.loops(), on.polling():
        await until_state(on.yard, job_id, "QUEUED")
        worker = on.yard.ids.new()
        await workers.enlist(on.db, worker, host="h", pid=1, queues=[on.yard.queue], concurrency=1)
        [claimed] = await claim(on.db, worker=worker, queues=[on.yard.queue], limit=1)
        desk = on.desk()
        work = await desk.start(Place(job_id, 0, claimed.attempt, "render", "fake"), input={"prompt": "a fox"})
        await control.cancel(on.db, job_id)
        assert isinstance(work, Parked)
        report = claimed.report(work)
        settled = await settle(on.db, [report], spread=lambda: 0.0)
        assert settled.took_effect == (False,)
        desk.heard([report], settled.took_effect)
        await until_cancelled_there(on)
        await on.until_work(job_id, "ENDED")
        await desk.close()


async def test_a_provider_that_answers_at_once_gives_the_value_and_its_cost(on: Ground) -> None:
    await on.set_up(options="{submit: POST /now}", prices="{'*': {call: 0.05}}")
    await on.fake.behave(output={"text": "a fox"})
    [job_id] = await on.submit(node("render"))
    async with on.running(with_poller=False):
        assert await made(on, job_id) == {"text": "a fox"}
    [cost] = await on.costs(job_id)
    assert (cost["provider"], cost["amount"]) == ("fake", Decimal("0.05"))
    assert [one.state for one in await on.work(job_id)] == ["ENDED"]


async def test_a_provider_that_fails_at_once_fails_the_step(on: Ground) -> None:
    await on.set_up(options="{submit: POST /now}")
    await on.fake.behave(outcome="failed", error="no such style")
    [job_id] = await on.submit(node("render", retry=Retry(max_attempts=1)))
    async with on.running(with_poller=False):
        assert "no such style" in (await complaint(on, job_id))["message"]
    assert [one.state for one in await on.work(job_id)] == ["ENDED"]


async def test_a_wait_shorter_than_the_schedule_is_polled_all_the_same(on: Ground) -> None:
    await on.set_up(poll="[60s]")
    await on.fake.behave(seconds=0.1)
    [job_id] = await on.submit(node(wait_s=3.0))
    async with on.running():
        await made(on, job_id)


async def test_a_wait_that_is_too_long_cancels_the_work_and_tries_again_under_a_new_key(on: Ground) -> None:
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit(node(wait_s=0.3))
    async with on.running():

        async def is_second() -> bool:
            return len(on.fake.entries("accepted")) == 2

        await until(is_second)
        await until_cancelled_there(on)
        [first, second] = [entry.key for entry in on.fake.entries("accepted")]
        assert (first, second) == (str(WorkKey(job_id, 0, 1)), str(WorkKey(job_id, 0, 2)))
        await control.cancel(on.db, job_id)
    assert await on.open_slots() == 0
