"""The harness that users test their recipes with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import windlass as wl
from windlass.core.errors import Conflict, NotFound
from windlass.examples.nightly_report import nightly_report
from windlass.examples.trailer import render, trailer
from windlass.testing import Harness, VirtualClock, fail_always, fail_times, harness, returning


@wl.step
async def greet(name: str) -> str:
    return f"hello {name}"


@wl.step(retry=wl.Retry(max_attempts=3, base_s=10, jitter=0))
def shout(text: str) -> str:
    return text.upper()


@wl.step(parks=True)
async def ask(question: str) -> wl.Parked:
    return wl.Parked(f"an answer to {question}")


@wl.recipe
def welcome(name: str):
    return shout(greet(name))


@wl.recipe
def patient(name: str):
    return greet(name).after(wl.sleep("8h"))


@wl.recipe
def survey(question: str):
    return shout(ask(question))


@pytest.fixture
async def h(dsn: str) -> AsyncIterator[Harness]:
    async with harness(dsn) as made:
        yield made


async def test_a_recipe_runs_to_its_result(h: Harness) -> None:
    job = await h.submit(welcome, name="Ada")
    assert await h.result(job) == "HELLO ADA"


async def test_hours_pass_at_once(h: Harness) -> None:
    before = h.clock.now()
    job = await h.submit(patient, name="Ada")
    assert await h.run(job) == "COMPLETED"
    assert h.clock.now() - before == timedelta(hours=8)


async def test_a_failing_handler_is_tried_again_after_its_wait(h: Harness) -> None:
    before = h.clock.now()
    h.stub(shout, fail_times(2, ConnectionError("busy"), then=shout))
    job = await h.submit(welcome, name="Ada")
    assert await h.result(job) == "HELLO ADA"
    assert h.clock.now() - before == timedelta(seconds=10 + 20)
    assert (await h.steps(job))["shout"].attempt == 3


async def test_a_permanent_failure_is_not_tried_again(h: Harness) -> None:
    h.stub("greet", fail_always(wl.Permanent("no such name")))
    job = await h.submit(welcome, name="?")
    assert await h.run(job) == "FAILED"
    await h.assert_steps(job, {"greet": "FAILED", "shout": "ABANDONED"})


async def test_an_async_handler_can_be_made_to_fail(h: Harness) -> None:
    h.stub(greet, fail_times(1, TimeoutError, then=greet))
    job = await h.submit(welcome, name="Ada")
    assert await h.result(job) == "HELLO ADA"


async def test_a_handler_can_be_replaced_by_a_value(h: Harness) -> None:
    h.stub(greet, returning("hi"))
    assert await h.result(await h.submit(welcome, name="Ada")) == "HI"


async def test_a_handler_can_be_replaced_between_runs(h: Harness) -> None:
    assert await h.result(await h.submit(welcome, name="Ada")) == "HELLO ADA"
    h.stub(greet, returning("hi"))
    assert await h.result(await h.submit(welcome, name="Ada")) == "HI"


async def test_a_step_that_waits_outside_is_left_waiting_until_it_is_answered(h: Harness) -> None:
    job = await h.submit(survey, question="why")
    assert await h.run(job) == "PROCESSING"
    await h.assert_steps(job, {"ask": "PARKED"})
    assert await h.answer(job, "ask", "because")
    assert not await h.answer(job, "ask", "twice")
    assert await h.result(job) == "BECAUSE"


async def test_a_step_that_waits_outside_can_be_refused(h: Harness) -> None:
    job = await h.submit(survey, question="why")
    await h.run(job)
    assert await h.refuse(job, "ask", "nobody knows")
    assert await h.run(job) == "FAILED"
    with pytest.raises(NotFound):
        await h.answer(job, "nonsense", 1)


async def test_advancing_lets_everything_due_happen_at_its_own_moment(h: Harness) -> None:
    job = await h.submit(survey, question="why", ttl="3h")
    before = h.clock.now()
    await h.advance("2h")
    await h.assert_status(job, "PROCESSING")
    await h.advance("2h")
    await h.assert_status(job, "EXPIRED")
    assert h.clock.now() - before == timedelta(hours=4)
    assert (await h.view(job)).finished_at == before + timedelta(hours=3)


async def test_a_deadline_ends_a_job_between_two_retries(h: Harness) -> None:
    h.stub(shout, fail_always(ConnectionError("down")))
    job = await h.submit(welcome, name="Ada", deadline="15s")
    assert await h.run(job) == "TIMEOUT"


async def test_a_failed_assertion_shows_the_history(h: Harness) -> None:
    h.stub(greet, fail_always(wl.Permanent("no such name")))
    job = await h.submit(welcome, name="?")
    with pytest.raises(AssertionError, match=r"(?s)is FAILED, not COMPLETED.*step\.failed +greet.*no such name"):
        await h.result(job)
    with pytest.raises(AssertionError, match="shout is ABANDONED, not COMPLETED"):
        await h.assert_steps(job, {"shout": "COMPLETED"})


async def test_the_history_of_an_open_job_says_what_it_waits_for(h: Harness) -> None:
    job = await h.submit(survey, question="why")
    await h.run()
    assert "waits for an answer to why" in await h.history(job)


async def test_the_same_key_gives_the_same_job(h: Harness) -> None:
    first = await h.submit(welcome, name="Ada", key="k")
    assert (await h.submit(welcome, name="Ada", key="k")).job_id == first.job_id
    with pytest.raises(Conflict):
        await h.submit(welcome, name="Bob", key="k")


async def test_the_examples_run(h: Harness) -> None:
    h.stub(render, fail_times(1, OSError("no GPU"), then=render))
    film = await h.result(await h.submit(trailer, topic="the sea", scenes=3))
    assert film["film"]["shots"] == 3
    assert (await h.result(await h.submit(nightly_report, day="2025-06-01", settle_s=3600))).startswith("Orders of")


async def test_a_harness_makes_its_own_database() -> None:
    async with harness() as h:
        assert await h.result(await h.submit(welcome, name="Ada")) == "HELLO ADA"


def test_a_clock_does_not_go_back() -> None:
    clock = VirtualClock()
    now = clock.now()
    assert clock.advance("1h30m") - now == timedelta(minutes=90)
    assert not clock.reach(now)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(timedelta(seconds=-1))


@wl.recipe
def approved(name: str):
    verdict = wl.wait_for("approved", timeout="2d")
    return greet(name).after(verdict)


async def test_a_run_stops_at_a_wait_with_a_timeout(h: Harness) -> None:
    before = h.clock.now()
    job = await h.submit(approved, name="Ada")
    assert await h.run(job) == "DISPATCHING"
    assert h.clock.now() == before
    await h.advance("30h")
    await h.assert_steps(job, {"approved": "PARKED"})
    await h.send(job, "approved")
    assert await h.result(job) == "hello Ada"


async def test_a_wait_ends_at_its_own_moment_while_a_timer_runs_on(h: Harness) -> None:
    @wl.recipe
    def both():
        wl.wait_for("approved", timeout="1h")
        return greet("Ada").after(wl.sleep("8h"))

    job = await h.submit(both)
    assert await h.run(job) == "TIMEOUT"
    [failed] = [event for event in await h.events(job) if event.type == "step.failed"]
    assert failed.at - (await h.view(job)).created_at == timedelta(hours=1)
