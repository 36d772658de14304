"""A step's handler runs where it belongs, and what it does becomes the step's outcome."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from tests.worker.yard import Yard, node, until_state
from windlass.core.retry import Retry
from windlass.core.states import JobState, StepState


@pytest.mark.parametrize("handler", ["add", "add_later", "add_in_thread"])
async def test_a_handler_runs_and_its_value_is_the_output(yard: Yard, handler: str) -> None:
    async with yard.working():
        (job,) = await yard.submit(node(handler, with_={"a": "${inputs.a}", "b": 2}), inputs={"a": 40})
        assert (await yard.end(job)).state is JobState.COMPLETED
        assert (await yard.step(job)).output == 42


async def test_a_cpu_handler_runs_in_a_process_that_is_kept(yard: Yard) -> None:
    async with yard.working(processes=1):
        pids = set()
        for job in await yard.submit(node("add_in_process", with_={"a": 1, "b": 2}), count=2):
            assert (await yard.end(job)).state is JobState.COMPLETED
            output = (await yard.step(job)).output
            assert output["sum"] == 3
            pids.add(output["pid"])
        assert len(pids) == 1
        assert os.getpid() not in pids


@pytest.mark.covers("SCR-22")
async def test_a_step_gets_the_outputs_of_others_as_its_hints_ask(yard: Yard) -> None:
    first = node("double_scene", "first", with_={"scene": {"title": "t", "length_s": 1.5}})
    second = node("double_scene", "second", with_={"scene": "${steps.first.outputs}"}, needs=("first",))
    third = node("add", "third", with_={"a": "${int(steps.second.outputs.length_s) + 1}", "b": 0}, needs=("second",))
    async with yard.working():
        (job,) = await yard.submit(first, second, third)
        assert (await yard.end(job)).state is JobState.COMPLETED
        assert (await yard.step(job, 1)).output == {"title": "t", "length_s": 6.0}
        assert (await yard.step(job, 2)).output == 7


async def test_many_steps_run_at_once(yard: Yard) -> None:
    async with yard.working(concurrency=50):
        jobs = await yard.submit(node("add_later", with_={"a": 1, "b": 2}), count=200)
        for job in jobs:
            assert (await yard.end(job)).state is JobState.COMPLETED


async def test_the_context_tells_the_attempt_its_key(yard: Yard) -> None:
    async with yard.working():
        (job,) = await yard.submit(node("who"))
        await yard.end(job)
        expected = {"key": f"{job}/who", "attempt": 1, "step": "who", "index": None, "has_time": True}
        assert (await yard.step(job)).output == expected


async def test_a_checkpoint_reaches_the_next_attempt(yard: Yard) -> None:
    async with yard.loops(), yard.working():
        (job,) = await yard.submit(node("fail_once"))
        assert (await yard.end(job)).state is JobState.COMPLETED
        assert (await yard.step(job)).output == {"seen": {"pages": 3}, "attempt": 2, "key": f"{job}/fail_once"}


@pytest.mark.parametrize(
    ("given", "code", "attempts"),
    [
        (node("fail", with_={"how": "permanent"}), "permanent", 1),
        (node("fail", with_={"how": "transient"}, retry=Retry(max_attempts=2, base_s=0.01)), "transient", 2),
        (node("fail", with_={"how": "other"}, retry=Retry(max_attempts=2, base_s=0.01)), "exception", 2),
        (node("fail"), "bad_arguments", 1),
        (node("fail", with_={"how": "x", "why": "y"}), "bad_arguments", 1),
        (node("fail", with_={"how": "${inputs.missing}"}), "bad_arguments", 1),
        (node("add_in_process", with_={"a": 1}), "bad_arguments", 1),
        (node("say", with_={"what": "set"}), "bad_output", 1),
        (node("say", with_={"what": "nan"}), "bad_output", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_failure_says_what_it_is(yard: Yard, given: Any, code: str, attempts: int) -> None:
    async with yard.loops(), yard.working():
        (job,) = await yard.submit(given)
        assert (await yard.end(job)).state is JobState.FAILED
        step = await yard.step(job)
        assert (step.error["code"], step.attempt) == (code, attempts)


@pytest.mark.parametrize(("what", "state"), [("snooze", StepState.PARKED), ("parked", StepState.PARKED)])
async def test_what_a_handler_says_is_an_outcome(yard: Yard, what: str, state: StepState) -> None:
    async with yard.working():
        (job,) = await yard.submit(node("say", with_={"what": what}))
        await until_state(yard, job, state)
        assert ((await yard.step(job)).waiting_for or "").startswith({"snooze": "snooze", "parked": "external:"}[what])


async def test_a_handler_can_cancel_its_job(yard: Yard) -> None:
    async with yard.working():
        (job,) = await yard.submit(node("say", with_={"what": "cancel"}))
        assert (await yard.end(job)).state is JobState.CANCELLED


async def test_a_big_output_travels_by_reference(yard: Yard) -> None:
    reader = node("length", with_={"text": "${steps.big.outputs.text}"}, needs=("big",))
    async with yard.working():
        (job,) = await yard.submit(node("big", with_={"count": 300_000}), reader)
        assert (await yard.end(job)).state is JobState.COMPLETED
        assert list((await yard.step(job)).output) == ["$artifact"]
        assert (await yard.step(job, 1)).output == 300_000


async def test_a_step_of_an_older_release_that_this_worker_does_not_have_is_put_off(yard: Yard) -> None:
    (job,) = await yard.submit(node("add", with_={"a": 1, "b": 2}))
    of_older = "UPDATE windlass.steps SET lane = '' WHERE job_id = $1"
    await yard.db.run(lambda connection: connection.execute(of_older, job))
    async with yard.working(steps={}):
        step = await until_state(yard, job, StepState.PARKED)
        assert step.attempt == 1
        await asyncio.sleep(0.1)
        assert (await yard.step(job)).attempt == 1


@pytest.mark.parametrize("handler", ["progress_in_thread", "progress_in_process"])
async def test_progress_is_thinned_and_its_last_word_is_kept(yard: Yard, handler: str) -> None:
    async with yard.working():
        (job,) = await yard.submit(node(handler))
        assert (await yard.end(job)).state is JobState.COMPLETED
        progress = await yard.events(job, "step.progress")
        assert 1 <= len(progress) < 50
        assert progress[-1].payload == {"pct": 100.0, "message": "at 100"}
        assert (await yard.step(job)).output == f"{job}/{handler}"
