"""New jobs wait for the kernel outside of the processes, and its silence burns nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from tests.engine.test_door import consistent, denied, document, put, row, verdicts
from tests.engine.test_kernels import ALLOW, DENY, Scripted, guarded, silence
from windlass.core.errors import SafetyUnavailable
from windlass.core.states import JobState, StepState
from windlass.core.verdict import KERNEL_BYPASS, Decision, Verdict
from windlass.engine.door import policies_of
from windlass.engine.kernels import KernelGate, announce
from windlass.views import explain, read

S = StepState
BROKEN = SafetyUnavailable("the kernel scripted answered with status 500", is_silent=False)


class Gate:
    """The kernel of the rig's process, and what was counted."""

    def __init__(self, rig: Rig, kernel: Scripted, fail_mode: str | None) -> None:
        self.kernel = kernel
        self.counted: list[tuple[str, str]] = []
        guard = guarded(rig.db, kernel, rig.clock)
        policies_of(rig.db).kernel = KernelGate(
            guard, fail_mode, lambda event, topic: self.counted.append((event, topic))
        )


async def gate(rig: Rig, *answers: Any, fail_mode: str | None = None) -> Gate:
    made = Gate(rig, Scripted(*answers), fail_mode)
    await announce(rig.db, "scripted")
    policies_of(rig.db).expire()
    return made


async def turn(rig: Rig) -> None:
    """Ask about the jobs that are due, once."""
    await rig.loops.kernel_asker.run_once()
    await rig.loops.kernel_asker.resolving()


async def state(rig: Rig, job: UUID) -> JobState:
    return (await read.job(rig.db, job)).state


async def why(rig: Rig, job: UUID) -> str:
    return str(await explain.why(rig.db, job))


async def test_a_new_job_waits_until_the_kernel_lets_it_go(rig: Rig) -> None:
    kernel = (await gate(rig, ALLOW)).kernel
    await rig.enlist()
    job = await rig.submit(plan(task("a"), task("b", "a")))
    assert await state(rig, job) is JobState.PENDING
    assert await rig.claim() == []
    assert kernel.asked == 0, "the kernel is not asked in the submit"
    await turn(rig)
    assert kernel.asked == 1
    assert await state(rig, job) is JobState.QUEUED
    assert len(await rig.claim()) == 1
    await consistent(rig)


async def test_a_refusal_of_the_kernel_ends_the_job(rig: Rig) -> None:
    await gate(rig, Verdict(Decision.DENY, "k1", "no mail today", kernel="scripted"))
    await rig.enlist()
    job = await rig.submit(plan(task("a")))
    await turn(rig)
    view = await read.job(rig.db, job)
    assert view.state is JobState.DENIED
    assert view.error is not None and view.error["code"] == "safety_denied"
    last = (await verdicts(rig, job))[-1]
    assert (last["decision"], last["rule"], last["kernel"]) == ("deny", "k1", "scripted")
    assert await rig.claim() == []


async def test_the_policy_refuses_before_the_kernel_is_asked(rig: Rig) -> None:
    kernel = (await gate(rig, ALLOW)).kernel
    await put(rig, document("{id: no, match: {topics: [job.*]}, decision: deny}"))
    await denied(rig)
    await turn(rig)
    assert kernel.asked == 0


async def test_the_stricter_of_policy_and_kernel_counts(rig: Rig) -> None:
    await gate(rig, ALLOW)
    await put(rig, document("{id: ask, match: {topics: [job.*]}, decision: require_approval}"))
    job = await rig.submit(plan(task("a")))
    assert await state(rig, job) is JobState.PENDING
    await turn(rig)
    assert await state(rig, job) is JobState.APPROVAL_REQUIRED


@pytest.mark.covers("COR-71", "COR-70")
async def test_a_silent_kernel_holds_jobs_for_ten_minutes_and_then_they_run(rig: Rig) -> None:
    """Check 10."""
    kernel = (await gate(rig, silence())).kernel
    await rig.enlist()
    jobs = [await rig.submit(plan(task("a"))) for _ in range(5)]
    for _ in range(20):
        await turn(rig)
        rig.clock.advance(timedelta(seconds=31))
    for job in jobs:
        assert await state(rig, job) is JobState.PENDING
        assert "the kernel scripted does not answer" in await why(rig, job)
        found = await row(rig, job)
        assert found["bypassed_at"] is None
        assert len(await verdicts(rig, job)) == 1, "a silence leaves no row"
    assert await rig.claim() == []
    assert kernel.asked <= 60, "the breaker lets three probes through in 31 s"
    kernel.answers = [ALLOW]
    for _ in range(4):
        await turn(rig)
        rig.clock.advance(timedelta(seconds=31))
    assert {await state(rig, job) for job in jobs} == {JobState.QUEUED}
    assert {step.attempt for step in await rig.claim(10)} == {1}, "silence burns no attempt"


@pytest.mark.covers("COR-72", "COR-116")
async def test_in_the_open_mode_a_job_runs_marked_and_is_denied_afterwards(rig: Rig) -> None:
    """Check 12."""
    made = await gate(rig, silence(), fail_mode="open")
    await rig.enlist()
    job = await rig.submit(plan(task("a")))
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    assert (await row(rig, job))["bypassed_at"] is not None
    assert (await verdicts(rig, job))[-1]["rule"] == KERNEL_BYPASS
    notes = await rig.db.run(lambda c: c.fetch("SELECT event, caller FROM windlass.audit_notes ORDER BY id"))
    assert [note["event"] for note in notes] == ["kernel_set", "policy_bypassed"]
    assert made.counted == [("unavailable", "job.r"), ("fail_open", "job.r")]
    assert len(await rig.claim()) == 1
    made.kernel.answers = [DENY]
    rig.clock.advance(timedelta(seconds=31))
    await turn(rig)
    assert await state(rig, job) is JobState.DENIED
    await consistent(rig)


async def test_in_the_open_mode_a_job_that_the_kernel_allows_afterwards_goes_on(rig: Rig) -> None:
    made = await gate(rig, silence(), ALLOW, fail_mode="open")
    job = await rig.submit(plan(task("a")))
    await turn(rig)
    rig.clock.advance(timedelta(seconds=31))
    await turn(rig)
    found = await row(rig, job)
    assert (found["state"], found["gate_at"]) == ("QUEUED", None)
    assert found["bypassed_at"] is not None, "the mark stays"
    rig.clock.advance(timedelta(seconds=61))
    await turn(rig)
    assert made.kernel.asked == 2


async def test_in_the_open_mode_a_kernel_that_is_still_silent_is_asked_again(rig: Rig) -> None:
    made = await gate(rig, silence(), fail_mode="open")
    job = await rig.submit(plan(task("a")))
    for _ in range(3):
        await turn(rig)
        rig.clock.advance(timedelta(seconds=31))
    assert made.kernel.asked == 3
    assert made.counted.count(("fail_open", "job.r")) == 1
    assert await state(rig, job) is JobState.QUEUED


async def test_an_answer_that_is_an_error_lets_nothing_pass_in_the_open_mode(rig: Rig) -> None:
    await gate(rig, BROKEN, fail_mode="open")
    job = await rig.submit(plan(task("a")))
    await turn(rig)
    assert await state(rig, job) is JobState.PENDING
    assert (await row(rig, job))["bypassed_at"] is None


@pytest.mark.covers("COR-73")
@pytest.mark.parametrize(("setting", "expected"), [(None, JobState.QUEUED), ("closed", JobState.PENDING)])
async def test_the_policy_says_the_fail_mode_unless_the_setting_does(
    rig: Rig, setting: str | None, expected: JobState
) -> None:
    await gate(rig, silence(), fail_mode=setting)
    await put(
        rig, document("{id: fine, match: {topics: [job.*]}, decision: allow}") + "input_policy: {fail_mode: open}\n"
    )
    job = await rig.submit(plan(task("a")))
    await turn(rig)
    assert await state(rig, job) is expected


async def test_a_process_without_the_kernel_holds_jobs_and_leaves_them_to_the_others(rig: Rig) -> None:
    await announce(rig.db, "scripted")
    policies_of(rig.db).expire()
    job = await rig.submit(plan(task("a")))
    await turn(rig)
    await rig.loops.run_until_idle()
    assert await state(rig, job) is JobState.PENDING


async def test_two_processes_do_not_ask_about_the_same_job(rig: Rig) -> None:
    kernel = (await gate(rig, ALLOW)).kernel
    for _ in range(10):
        await rig.submit(plan(task("a")))
    await asyncio.gather(*(rig.loops.kernel_asker.run_once() for _ in range(3)))
    await rig.loops.kernel_asker.resolving()
    assert kernel.asked == 10


async def test_a_job_whose_asker_died_is_asked_about_again(rig: Rig) -> None:
    kernel = (await gate(rig, ALLOW)).kernel
    job = await rig.submit(plan(task("a")))
    await rig.loops.kernel_asker.run_once()
    await rig.loops.kernel_asker.close()
    assert await state(rig, job) is JobState.PENDING
    rig.clock.advance(timedelta(seconds=31))
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    assert kernel.asked <= 2


async def test_jobs_that_waited_are_asked_about_at_a_pace(rig: Rig) -> None:
    kernel = (await gate(rig, ALLOW)).kernel
    for _ in range(80):
        await rig.submit(plan(task("a")))
    for _ in range(3):
        await turn(rig)
    assert kernel.asked == 50, "a tenth of a second's questions at once"
    rig.clock.advance(timedelta(seconds=1))
    for _ in range(3):
        await turn(rig)
    assert kernel.asked == 80


async def test_without_a_kernel_nothing_waits_for_one(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    assert await state(rig, job) is JobState.QUEUED
    await gate(rig, ALLOW)
    await announce(rig.db, None)
    policies_of(rig.db).expire()
    assert await state(rig, await rig.submit(plan(task("a")))) is JobState.QUEUED
