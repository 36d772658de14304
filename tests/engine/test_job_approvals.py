"""Approvals of whole jobs, which a rule of the policy asks for: requested at the submit, looked at again at the use."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from tests.engine.test_approvals import rows, types, vote, voter
from tests.engine.test_door import consistent, document, put
from windlass.core.approval import ApprovalState, Choice
from windlass.core.errors import ApprovalOutdated, ApprovalResolved, ApprovalStale, ApprovalTerminalRun, Forbidden
from windlass.core.plan import Plan
from windlass.engine import control
from windlass.engine.recheck import recheck
from windlass.views import explain, read

A = ApprovalState
HOUR_S = 3600.0
MAIL = plan(task("send"), recipe="mail")
ASKS = "{id: mail, match: {topics: [job.mail]}, decision: require_approval, reason: mail goes out}"
OTHER = "{id: other, match: {topics: [job.other]}, decision: deny}"
TWO = (
    "{id: mail, match: {topics: [job.mail]}, decision: require_approval,"
    " approval: {need: 2, who: {roles: [lead]}, expires: 2h, escalate: {after: 1h, to: [cto]}}}"
)


async def held(rig: Rig, *rules: str, of: Plan = MAIL, **given: Any) -> tuple[UUID, UUID]:
    """Publish the rules, submit a job as `ada`, and return it with its approval."""
    await put(rig, document(*rules))
    job = await rig.submit(of, {"to": "all"}, **{"caller": "ada", **given})
    [row] = await rows(rig, job)
    return job, row["id"]


async def states(rig: Rig, job: UUID) -> list[str]:
    """The states of the job's approvals, the oldest first."""
    async with rig.db.connection() as connection:
        found = await connection.fetch(
            "SELECT state FROM windlass.approvals WHERE job_id = $1 ORDER BY created_at, state", job
        )
    return [row["state"] for row in found]


async def error_of(rig: Rig, job: UUID) -> tuple[str, str]:
    view = await read.job(rig.db, job)
    return view.state, (view.error or {}).get("code", "")


@pytest.mark.covers("COR-10")
async def test_a_job_waits_from_its_submit_and_goes_on_with_its_approval(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    [row] = await rows(rig, job)
    assert (await rig.state(job), row["rule"], row["reason"], row["no"]) == (
        "APPROVAL_REQUIRED", "mail", "mail goes out", None,
    )  # fmt: skip
    assert await types(rig, job) == ["approval.requested"]
    assert await rig.claim() == []
    [reason] = await explain.why(rig.db, job)
    assert "waits for an approval by mail: 0 of 1 given" in reason.because
    assert await vote(rig, id, "grace") is A.USED
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    assert await types(rig, job) == ["approval.requested", "approval.voted", "approval.decided"]
    await consistent(rig)


async def test_labels_do_not_approve(rig: Rig) -> None:
    job, _ = await held(rig, ASKS, labels={"approval_granted": "true"})
    await rig.loops.run_until_idle()
    assert (await rig.state(job), await rig.claim()) == ("APPROVAL_REQUIRED", [])


async def test_the_requester_and_a_caller_above_it_may_not_decide(rig: Rig) -> None:
    parent = await rig.submit(plan(task("first"), recipe="above"), caller="boss")
    job, id = await held(rig, ASKS, parent=(parent, 0, 0), depth=1)
    for who in ("ada", "boss"):
        with pytest.raises(Forbidden):
            await vote(rig, id, who)
    assert await states(rig, job) == ["PENDING"]


async def test_two_people_of_the_rule_must_approve(rig: Rig) -> None:
    job, id = await held(rig, TWO)
    with pytest.raises(Forbidden):
        await vote(rig, id, "grace")
    for _ in range(2):
        assert await vote(rig, id, voter("grace", "lead")) is A.PENDING
    assert await vote(rig, id, voter("alan", "lead")) is A.USED
    assert await rig.state(job) == "QUEUED"


async def test_of_two_approvals_at_once_one_is_used(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    answers = await asyncio.gather(*(vote(rig, id, who) for who in ("grace", "alan")), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["ApprovalResolved", "ApprovalState"]
    with pytest.raises(ApprovalResolved):
        await vote(rig, id, "kurt")
    await rig.run_out()
    [step] = await read.steps(rig.db, job)
    assert (await rig.state(job), step.attempt) == ("COMPLETED", 1)


async def test_a_rejection_denies_the_job(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    assert await vote(rig, id, "grace", Choice.REJECT, reason="no") is A.REJECTED
    assert await error_of(rig, job) == ("DENIED", "approval_rejected")
    assert await rig.claim() == []
    await consistent(rig)


async def test_an_approval_that_expires_denies_the_job(rig: Rig) -> None:
    job, _ = await held(rig, TWO)
    rig.clock.advance(2 * HOUR_S)
    await rig.loops.run_until_idle()
    assert (await error_of(rig, job), await states(rig, job)) == (("DENIED", "approval_expired"), ["EXPIRED"])
    await consistent(rig)


async def test_an_escalation_adds_voters_and_does_not_move_the_expiry(rig: Rig) -> None:
    job, id = await held(rig, TWO)
    rig.clock.advance(HOUR_S)
    await rig.loops.run_until_idle()
    assert await types(rig, job) == ["approval.requested", "approval.escalated"]
    assert await vote(rig, id, voter("carl", "cto")) is A.PENDING
    rig.clock.advance(HOUR_S)
    await rig.loops.run_until_idle()
    assert await error_of(rig, job) == ("DENIED", "approval_expired")


async def test_a_policy_that_denies_meanwhile_wins(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    await put(rig, document("{id: no-mail, match: {topics: [job.mail]}, decision: deny}"), new_only=True)
    with pytest.raises(ApprovalOutdated):
        await vote(rig, id, "grace")
    assert (await error_of(rig, job), await states(rig, job)) == (("DENIED", "safety_denied"), ["INVALIDATED"])


async def test_an_unrelated_rule_leaves_the_approval_good(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    await put(rig, document(ASKS, OTHER))
    await rig.loops.run_until_idle()
    assert await vote(rig, id, "grace") is A.USED
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_another_rule_asks_again(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    await put(rig, document(TWO), new_only=True)
    with pytest.raises(ApprovalOutdated, match="the policy has changed"):
        await vote(rig, id, "grace")
    assert (await rig.state(job), sorted(await states(rig, job))) == ("APPROVAL_REQUIRED", ["INVALIDATED", "PENDING"])
    new = next(row for row in await rows(rig, job) if row["state"] == "PENDING")
    assert (new["id"] != id, new["need"]) == (True, 2)
    await vote(rig, new["id"], voter("grace", "lead"))
    assert await vote(rig, new["id"], voter("alan", "lead")) is A.USED


async def test_a_used_approval_survives_a_publish_of_the_same_rule(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    await vote(rig, id, "grace")
    await put(rig, document(ASKS, OTHER))
    await recheck(rig.db, [job])
    assert (await rig.state(job), await states(rig, job)) == ("QUEUED", ["USED"])
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_a_policy_that_no_longer_asks_lets_the_job_go_on(rig: Rig) -> None:
    job, _ = await held(rig, ASKS)
    await put(rig, document(OTHER))
    await recheck(rig.db, [job])
    assert (await rig.state(job), await states(rig, job)) == ("QUEUED", ["INVALIDATED"])


async def test_a_job_that_was_allowed_is_asked_about_after_a_publish(rig: Rig) -> None:
    await put(rig, document(OTHER))
    job = await rig.submit(MAIL, {"to": "all"}, caller="ada")
    await put(rig, document(ASKS))
    await recheck(rig.db, [job])
    [row] = await rows(rig, job)
    assert (row["state"], await rig.claim()) == ("PENDING", [])
    assert await vote(rig, row["id"], "grace") is A.USED
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    await consistent(rig)


async def test_an_approved_job_that_is_throttled_needs_no_second_approval(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    await put(rig, document("{id: slow, match: {topics: [job.mail]}, decision: throttle}"), new_only=True)
    assert await vote(rig, id, "grace") is A.APPROVED
    assert await rig.state(job) == "PENDING"
    await put(rig, document(ASKS), new_only=True)
    rig.clock.advance(60)
    await rig.loops.run_until_idle()
    assert (await rig.state(job), await states(rig, job)) == ("QUEUED", ["USED"])


@pytest.mark.parametrize("change", ['input = \'{"to": "me"}\'', 'labels = \'{"env": "prod"}\''])
async def test_a_job_that_was_changed_after_the_request_does_not_run(rig: Rig, change: str) -> None:
    job, id = await held(rig, ASKS)
    async with rig.db.connection() as connection:
        await connection.execute(f"UPDATE windlass.jobs SET {change} WHERE id = $1", job)
    with pytest.raises(ApprovalStale):
        await vote(rig, id, "grace")
    assert (await rig.state(job), sorted(await states(rig, job))) == ("APPROVAL_REQUIRED", ["INVALIDATED", "PENDING"])
    assert await rig.claim() == []


async def test_a_cancelled_job_ends_its_approval(rig: Rig) -> None:
    job, id = await held(rig, ASKS)
    await control.cancel(rig.db, job)
    assert await states(rig, job) == ["INVALIDATED"]
    with pytest.raises(ApprovalTerminalRun):
        await vote(rig, id, "grace")


async def test_a_job_does_not_expire_before_its_approval(rig: Rig) -> None:
    job, id = await held(
        rig, "{id: mail, match: {topics: [job.mail]}, decision: require_approval, approval: {expires: 72h}}"
    )
    rig.clock.advance(71 * HOUR_S)
    await rig.loops.run_until_idle()
    assert await rig.state(job) == "APPROVAL_REQUIRED"
    assert await vote(rig, id, "grace") is A.USED
