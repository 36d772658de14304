"""Approvals that a recipe asks for: who may vote, when the votes suffice, and what follows from them in one commit."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.approval import ApprovalState, Choice, Voter
from windlass.core.errors import (
    ApprovalNotActionable,
    ApprovalResolved,
    ApprovalStale,
    ApprovalTerminalRun,
    Forbidden,
    NotFound,
    WindlassError,
)
from windlass.core.plan import Node, NodeKind, Plan
from windlass.engine import approvals, control, signals
from windlass.engine.approvals import Cast
from windlass.engine.loops.pruner import Pruner
from windlass.views import explain, read

DAY_S = 86_400.0
A = ApprovalState


def approval(name: str, *needs: str, wait_s: float = DAY_S, **given: Any) -> Node:
    shown = {"question": "Publish?", **({"show": given.pop("show")} if "show" in given else {})}
    return Node(name, NodeKind.APPROVAL, needs=needs, with_=shown, wait_s=wait_s, **given)


ONE = plan(approval("ok"), task("after", "ok"))
TWO = plan(approval("ok", approval={"need": 2}), task("after", "ok"))
LEADS = {"who": {"roles": ["lead"], "escalate_after_s": 3600.0, "escalate_roles": ["cto"]}}


def voter(caller: str, *roles: str, **given: Any) -> Voter:
    return Voter(caller, frozenset(roles), **{"may_decide": True, **given})


async def begun(rig: Rig, of: Plan, inputs: dict[str, Any] | None = None, **given: Any) -> tuple[UUID, UUID]:
    """Submit a job as `ada`, and return it with the approval that it waits for."""
    job = await rig.submit(of, inputs, **{"caller": "ada", **given})
    await rig.loops.run_until_idle()
    [row] = await rows(rig, job)
    return job, row["id"]


async def rows(rig: Rig, job: UUID) -> list[Any]:
    async with rig.db.connection() as connection:
        found = await connection.fetch("SELECT * FROM windlass.approvals WHERE job_id = $1 ORDER BY id", job)
    return list(found)


async def state_of(rig: Rig, job: UUID) -> str:
    [row] = await rows(rig, job)
    return str(row["state"])


async def vote(rig: Rig, id: UUID, who: Voter | str, choice: Choice = Choice.APPROVE, **given: Any) -> A:
    by = voter(who) if isinstance(who, str) else who
    return await approvals.vote(rig.db, Cast(id, by, choice, **given))


async def notes(rig: Rig) -> list[tuple[str, str]]:
    async with rig.db.connection() as connection:
        found = await connection.fetch("SELECT event, caller FROM windlass.audit_notes ORDER BY id")
    return [(row["event"], row["caller"]) for row in found]


async def types(rig: Rig, job: UUID) -> list[str]:
    return [event.type for event in await read.events(rig.db, job) if event.type.startswith("approval.")]


async def test_a_vote_completes_the_step_that_asked(rig: Rig) -> None:
    job, id = await begun(rig, ONE)
    [step, _] = await read.steps(rig.db, job)
    assert (step.state, step.waiting_for) == ("PARKED", f"approval:{id}")
    assert await vote(rig, id, "grace", reason="looks good") is A.USED
    assert await rig.states(job) == ["COMPLETED", "QUEUED"]
    [step, _] = await read.steps(rig.db, job)
    assert step.output == {"approved": True, "by": ["grace"], "reasons": ["looks good"], "at": step.output["at"]}
    assert await state_of(rig, job) == "USED"
    assert await types(rig, job) == ["approval.requested", "approval.voted", "approval.decided"]
    assert await notes(rig) == [("approval_voted", "grace"), ("approval_used", "grace")]
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_what_is_approved_is_kept_with_the_request(rig: Rig) -> None:
    of = plan(approval("ok", show={"topic": "${inputs.topic}"}), task("after", "ok"))
    job, _ = await begun(rig, of, {"topic": "tides"})
    [row] = await rows(rig, job)
    assert (row["question"], msgspec.json.decode(row["arguments"])) == ("Publish?", {"topic": "tides"})
    assert (row["requester"], row["need"], row["edge"]) == ("ada", 1, "node")
    assert (row["expires_at"] - row["created_at"]).total_seconds() == DAY_S


@pytest.mark.parametrize(
    "who", [voter("ada"), voter("ada", "admin"), voter("grace", may_decide=False), voter("caller-x", is_named=False)]
)
async def test_the_requester_and_people_without_the_right_are_refused(rig: Rig, who: Voter) -> None:
    job, id = await begun(rig, ONE)
    with pytest.raises(Forbidden):
        await vote(rig, id, who)
    assert await state_of(rig, job) == "PENDING"
    assert await notes(rig) == []


async def test_a_caller_of_a_parent_job_may_not_decide_on_its_child(rig: Rig) -> None:
    parent = await rig.submit(plan(task("first"), recipe="above"), caller="boss")
    middle = await rig.submit(plan(task("first"), recipe="middle"), caller="eve", parent=(parent, 0, 0), depth=1)
    _, id = await begun(rig, ONE, parent=(middle, 0, 0), depth=2)
    for who in ("boss", "eve"):
        with pytest.raises(Forbidden, match="a caller of a parent job"):
            await vote(rig, id, who)
    assert await vote(rig, id, "grace") is A.USED


async def test_a_requester_whose_id_was_adopted_is_known_by_the_new_name(rig: Rig) -> None:
    _, id = await begun(rig, ONE, caller="caller-abcdefghijkl")
    async with rig.db.connection() as connection:
        await connection.execute(
            "INSERT INTO windlass.caller_aliases (digest, caller, created_at, adopted_by)"
            " VALUES ('\\x01', 'caller-abcdefghijkl', windlass.clock(), 'grace')"
        )
    with pytest.raises(Forbidden):
        await vote(rig, id, "grace")


async def test_one_person_counts_once_however_often_it_votes(rig: Rig) -> None:
    job, id = await begun(rig, TWO)
    assert await vote(rig, id, "grace", key_id="k1") is A.PENDING
    assert await vote(rig, id, "grace", key_id="k2") is A.PENDING
    assert await rig.states(job) == ["PARKED", "BLOCKED"]
    assert await vote(rig, id, "alan") is A.USED
    [step, _] = await read.steps(rig.db, job)
    assert sorted(step.output["by"]) == ["alan", "grace"]


async def test_an_approval_is_used_once(rig: Rig) -> None:
    job, id = await begun(rig, ONE)
    await vote(rig, id, "grace")
    for who in ("grace", "alan"):
        with pytest.raises(ApprovalResolved):
            await vote(rig, id, who)
    await rig.run_out()
    [_, after] = await read.steps(rig.db, job)
    assert (await rig.state(job), after.attempt) == ("COMPLETED", 1)


async def test_one_reject_ends_it_and_fails_the_step(rig: Rig) -> None:
    job, id = await begun(rig, TWO)
    await vote(rig, id, "grace")
    assert await vote(rig, id, "alan", Choice.REJECT, reason="too soon") is A.REJECTED
    assert await rig.state(job) == "FAILED"
    error = (await read.job(rig.db, job)).error or {}
    assert (error["code"], error["message"]) == ("approval_rejected", "rejected by alan: too soon")
    with pytest.raises(ApprovalResolved):
        await vote(rig, id, "kurt")


async def test_a_rejection_may_be_an_answer_for_the_recipe(rig: Rig) -> None:
    job, id = await begun(rig, plan(approval("ok", approval={"on_reject": "continue"}), task("after", "ok")))
    await vote(rig, id, "alan", Choice.REJECT, reason="no")
    [step, after] = await read.steps(rig.db, job)
    assert (step.output["approved"], step.output["by"], after.state) == (False, ["alan"], "QUEUED")


async def test_an_approval_that_expires_is_never_a_yes(rig: Rig) -> None:
    job, id = await begun(rig, ONE)
    rig.clock.advance(DAY_S)
    with pytest.raises(ApprovalNotActionable):
        await vote(rig, id, "grace")
    await rig.loops.run_until_idle()
    error = (await read.job(rig.db, job)).error or {}
    assert (await rig.state(job), error["code"]) == ("FAILED", "approval_expired")
    assert await state_of(rig, job) == "EXPIRED"
    assert await types(rig, job) == ["approval.requested", "approval.decided"]


async def test_a_job_outlives_the_time_of_its_approval(rig: Rig) -> None:
    job, _ = await begun(rig, plan(approval("ok", wait_s=9 * DAY_S), task("after", "ok")))
    rig.clock.advance(8 * DAY_S)
    await rig.loops.run_until_idle()
    assert await rig.states(job) == ["PARKED", "BLOCKED"]


async def test_more_people_may_decide_after_the_escalation(rig: Rig) -> None:
    job, id = await begun(rig, plan(approval("ok", approval=LEADS), task("after", "ok")))
    with pytest.raises(Forbidden, match="not among the people"):
        await vote(rig, id, voter("carl", "cto"))
    rig.clock.advance(3600)
    await rig.loops.run_until_idle()
    assert await types(rig, job) == ["approval.requested", "approval.escalated"]
    [row] = await rows(rig, job)
    assert (row["notice"], row["escalated_at"] is not None, row["due_at"]) == ("escalated", True, None)
    assert await vote(rig, id, voter("carl", "cto")) is A.USED


async def test_the_end_of_the_job_ends_the_approval(rig: Rig) -> None:
    job, id = await begun(rig, ONE)
    await control.cancel(rig.db, job)
    assert await state_of(rig, job) == "INVALIDATED"
    with pytest.raises(ApprovalTerminalRun):
        await vote(rig, id, "grace")


async def test_a_voter_may_insist_on_what_it_saw(rig: Rig) -> None:
    job, id = await begun(rig, ONE)
    with pytest.raises(ApprovalStale):
        await vote(rig, id, "grace", subject="0" * 64)
    [row] = await rows(rig, job)
    assert await vote(rig, id, "grace", subject=row["subject"]) is A.USED


@pytest.mark.parametrize("change", ["input = '{\"a\": 2}'", 'labels = \'{"env": "prod"}\'', "caller = 'eve'"])
async def test_what_was_changed_after_the_request_does_not_run(rig: Rig, change: str) -> None:
    job, id = await begun(rig, ONE)
    async with rig.db.connection() as connection:
        await connection.execute(f"UPDATE windlass.jobs SET {change} WHERE id = $1", job)
    with pytest.raises(ApprovalStale):
        await vote(rig, id, "grace")
    assert await state_of(rig, job) == "INVALIDATED"
    assert (await read.job(rig.db, job)).error["code"] == "approval_invalidated"  # type: ignore[index]


async def test_no_event_and_no_label_approves(rig: Rig) -> None:
    job, _ = await begun(rig, ONE, labels={"approval_granted": "true"})
    with pytest.raises(WindlassError):
        await signals.send(rig.db, job, "approved", {"approved": True}, id="1", sender="grace")
    assert await rig.states(job) == ["PARKED", "BLOCKED"]


async def test_a_fan_out_asks_for_each_item(rig: Rig) -> None:
    of = plan(approval("ok", each="inputs.pages", show={"page": "${item}"}), task("after", "ok"))
    job = await rig.submit(of, {"pages": ["a", "b"]}, caller="ada")
    await rig.loops.run_until_idle()
    found = await rows(rig, job)
    assert [msgspec.json.decode(row["arguments"]) for row in found] == [{"page": "a"}, {"page": "b"}]
    assert len({row["subject"] for row in found}) == 2
    for row in found:
        assert await vote(rig, row["id"], "grace") is A.USED
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_why_says_how_many_of_whom_are_missing(rig: Rig) -> None:
    job, id = await begun(rig, plan(approval("ok", approval={**LEADS, "need": 2}), task("after", "ok")))
    await vote(rig, id, voter("grace", "lead"))
    [reason] = await explain.why(rig.db, job, "ok")
    assert "waits for an approval: 1 of 2 given, by role lead, until 20" in reason.because
    assert reason.detail["approval"] == str(id)


async def test_an_unknown_approval_is_not_found(rig: Rig) -> None:
    with pytest.raises(NotFound):
        await vote(rig, rig.ids.new(), "grace")


async def test_approvals_are_pruned_with_their_jobs(rig: Rig) -> None:
    job, id = await begun(rig, ONE)
    await vote(rig, id, "grace")
    await rig.run_out()
    rig.clock.advance(2 * DAY_S)
    await Pruner(rig.db, DAY_S).run_once()
    assert await rows(rig, job) == []
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.votes") == 0
