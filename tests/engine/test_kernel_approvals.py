"""A kernel outside of the processes may ask for an approval, and judges again what people have approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.engine.rig import Rig, plan, task
from tests.engine.test_approvals import rows, vote
from tests.engine.test_door import consistent, document, put, row, verdicts
from tests.engine.test_kernel_asker import Gate, gate, state, turn, why
from tests.engine.test_kernels import ALLOW, DENY, silence
from windlass.core.approval import ApprovalState
from windlass.core.constraint import Constraints
from windlass.core.states import JobState
from windlass.core.verdict import ApprovalTerms, Decision, Verdict
from windlass.engine.recheck import recheck

A = ApprovalState
ASK = Verdict(
    Decision.REQUIRE_APPROVAL,
    "k1",
    "mail goes out",
    "hash-of-k1",
    constraints=Constraints(max_retries=2),
    approval=ApprovalTerms(),
    kernel="scripted",
)
FINE = "{id: fine, match: {topics: [job.*]}, decision: allow}"


async def asked(rig: Rig, *answers: Any, **given: Any) -> tuple[Gate, UUID, UUID]:
    """Return a job whose kernel asks for an approval, and the approval. `answers` are the later answers."""
    made = await gate(rig, ASK, *answers, **given)
    await rig.enlist()
    job = await rig.submit(plan(task("a")), caller="ada")
    await turn(rig)
    [found] = await rows(rig, job)
    return made, job, found["id"]


async def approved(rig: Rig, job: UUID) -> list[str]:
    return [found["state"] for found in await rows(rig, job)]


async def test_a_kernel_asks_people_about_a_new_job(rig: Rig) -> None:
    _, job, id = await asked(rig)
    assert await state(rig, job) is JobState.APPROVAL_REQUIRED
    [found] = await rows(rig, job)
    assert (found["rule"], found["rule_hash"], found["reason"]) == ("k1", "hash-of-k1", "mail goes out")
    assert await rig.claim() == []
    assert await vote(rig, id, "grace") is A.APPROVED
    assert await state(rig, job) is JobState.PENDING
    assert "the kernel scripted has not judged the job yet" in await why(rig, job)
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    assert await approved(rig, job) == ["USED"]
    assert (await row(rig, job))["attempts_max"] == 3, "the constraints of the kernel hold"
    assert len(await rig.claim()) == 1
    await consistent(rig)


async def test_a_publish_does_not_replace_the_approval_that_a_kernel_asks_for(rig: Rig) -> None:
    _, job, id = await asked(rig)
    await put(rig, document(FINE))
    await rig.loops.run_until_idle()
    assert await recheck(rig.db, [job]) == 0
    assert await state(rig, job) is JobState.APPROVAL_REQUIRED
    assert await rig.claim() == []
    await vote(rig, id, "grace")
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    assert await approved(rig, job) == ["USED"]


async def test_another_rule_of_the_kernel_needs_another_approval(rig: Rig) -> None:
    _, job, id = await asked(rig, replace(ASK, rule="k2", rule_hash="hash-of-k2"))
    await vote(rig, id, "grace")
    await turn(rig)
    assert await state(rig, job) is JobState.APPROVAL_REQUIRED
    assert sorted(await approved(rig, job)) == ["INVALIDATED", "PENDING"]


async def test_the_kernel_may_deny_what_people_approved(rig: Rig) -> None:
    _, job, id = await asked(rig, DENY)
    await vote(rig, id, "grace")
    await turn(rig)
    assert await state(rig, job) is JobState.DENIED
    assert await approved(rig, job) == ["INVALIDATED"]


async def test_one_approval_is_enough_for_the_policy_and_the_kernel(rig: Rig) -> None:
    await put(rig, document("{id: ask, match: {topics: [job.*]}, decision: require_approval}"))
    _, job, id = await asked(rig)
    await vote(rig, id, "grace")
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    assert await approved(rig, job) == ["USED"]


async def test_an_approval_waits_for_a_silent_kernel(rig: Rig) -> None:
    made, job, id = await asked(rig, silence(), silence(), ALLOW)
    await vote(rig, id, "grace")
    for _ in range(2):
        await turn(rig)
        assert await state(rig, job) is JobState.PENDING
        assert await approved(rig, job) == ["APPROVED"]
        rig.clock.advance(timedelta(seconds=31))
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    assert await approved(rig, job) == ["USED"]
    assert made.kernel.asked == 4


async def test_a_job_that_ran_without_its_kernel_waits_for_the_approval_that_the_kernel_asks_for(rig: Rig) -> None:
    made = await gate(rig, silence(), ASK, fail_mode="open")
    await rig.enlist()
    job = await rig.submit(plan(task("a"), task("b", "a")), caller="ada")
    await turn(rig)
    assert await state(rig, job) is JobState.QUEUED
    rig.clock.advance(timedelta(seconds=31))
    await turn(rig)
    assert (await verdicts(rig, job))[-1]["kernel"] == "scripted"
    assert await rig.claim() == []
    await put(rig, document(FINE))
    await rig.loops.run_until_idle()
    assert await rig.claim() == [], "a publish does not replace the approval"
    [found] = await rows(rig, job)
    assert await vote(rig, found["id"], "grace") is A.APPROVED
    await turn(rig)
    assert await approved(rig, job) == ["USED"]
    assert len(await rig.claim()) == 1
    assert made.kernel.asked == 3


async def test_a_publish_judges_jobs_that_run_without_their_kernel(rig: Rig) -> None:
    await gate(rig, silence(), fail_mode="open")
    await rig.enlist()
    job = await rig.submit(plan(task("a")), caller="ada")
    await turn(rig)
    await put(rig, document(FINE))
    await rig.loops.run_until_idle()
    assert len(await rig.claim()) == 1
    assert (await row(rig, job))["gate_at"] is not None, "the kernel is still asked"
