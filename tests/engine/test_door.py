"""The door: a new job is judged in the commit that makes it, whoever asks for the job."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.control import Targets
from windlass.core.errors import Conflict, Denied
from windlass.core.hold import Hold
from windlass.core.plan import Node, NodeKind
from windlass.core.states import JobState, StepState
from windlass.engine import children, publish, recipes, rerun
from windlass.engine.bulk import bulk
from windlass.engine.submit import Submission, submit
from windlass.testing.checker import Tables, check_tables
from windlass.views import dead_letters, explain, read

S = StepState
DENY_BAD = """
version: "1"
default_decision: allow
rules:
- {id: no-bad, match: {topics: [job.bad]}, decision: deny, reason: bad jobs are not allowed}
tests: []
"""


def document(*rules: str, default: str = "allow") -> str:
    listed = "".join(f"- {rule}\n" for rule in rules)
    return f'version: "1"\ndefault_decision: {default}\nrules:\n{listed}'


async def put(rig: Rig, text: str, **given: Any) -> int:
    """Publish this document, and let the process hear of it."""
    found = await publish.publish(rig.db, {"main": text}, by="op", untested="a test", **given)
    from windlass.engine.door import policies_of

    policies_of(rig.db).expire()
    return found.head.no


async def row(rig: Rig, job: UUID) -> Any:
    async with rig.db.connection() as connection:
        return await connection.fetchrow("SELECT * FROM windlass.jobs WHERE id = $1", job)


async def verdicts(rig: Rig, job: UUID) -> list[Any]:
    async with rig.db.connection() as connection:
        return await connection.fetch("SELECT * FROM windlass.verdicts WHERE job_id = $1 ORDER BY seq", job)


async def consistent(rig: Rig) -> None:
    async with rig.db.connection() as connection:
        wrong = check_tables(await Tables.read(connection), is_serial=False)
    assert [text for text in wrong if "is still" not in text] == []


async def denied(rig: Rig, **given: Any) -> Denied:
    bad = given.pop("of", None) or plan(task("a"), task("b", "a"), recipe="bad")
    await recipes.register(rig.db, bad)
    [answer] = await submit(rig.db, [Submission(bad, {}, rig.ids.new(), **given)])
    assert isinstance(answer, Denied)
    return answer


async def test_without_a_policy_no_job_is_judged(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    found = await row(rig, job)
    assert (found["policy"], found["rule"], found["state"]) == (None, None, "QUEUED")
    assert await verdicts(rig, job) == []


@pytest.mark.covers("COR-09")
async def test_an_allowed_job_costs_two_columns_and_no_row(rig: Rig) -> None:
    no = await put(rig, document("{id: good, match: {topics: [job.r]}, decision: allow}", default="deny"))
    for job in (await rig.submit(plan(task("a"))), await rig.submit(plan(task("a"), task("b", "a")))):
        found = await row(rig, job)
        assert (found["policy"], found["rule"], found["state"]) == (no, "good", "QUEUED")
        assert await verdicts(rig, job) == []
    await consistent(rig)


@pytest.mark.covers("COR-11", "COR-61")
async def test_a_denied_job_is_kept_and_never_runs(rig: Rig) -> None:
    no = await put(rig, DENY_BAD)
    await rig.enlist()
    answer = await denied(rig, idempotency_key="k")
    job = UUID(answer.job_id)
    assert (answer.code, answer.rule) == ("safety_denied", "no-bad")
    view = await read.job(rig.db, job)
    assert view.state is JobState.DENIED and view.error is not None and view.error["code"] == "safety_denied"
    assert await rig.states(job) == [S.DENIED, S.ABANDONED]
    assert await rig.types(job) == ["job.submitted", "job.denied"]
    [verdict] = await verdicts(rig, job)
    assert (verdict["decision"], verdict["rule"], verdict["policy"], verdict["edge"]) == (
        "deny",
        "no-bad",
        no,
        "submit",
    )
    assert await rig.claim() == []
    await consistent(rig)


async def test_a_repeat_of_a_denied_submit_gets_the_same_answer(rig: Rig) -> None:
    await put(rig, DENY_BAD)
    first = await denied(rig, idempotency_key="k")
    again = await denied(rig, idempotency_key="k")
    assert (again.job_id, again.rule, str(again)) == (first.job_id, first.rule, str(first))
    # Also after the policy changed: the answer is about the first submit.
    await put(rig, document("{id: fine, match: {topics: [job.*]}, decision: allow}"))
    assert (await denied(rig, idempotency_key="k")).job_id == first.job_id


async def test_a_denied_job_is_a_dead_letter(rig: Rig) -> None:
    await put(rig, DENY_BAD)
    answer = await denied(rig)
    look = await dead_letters.look(rig.db, None)
    assert [(kind.code, kind.job_ids) for kind in look.kinds] == [("safety_denied", (UUID(answer.job_id),))]


async def test_a_batch_gets_an_answer_for_each_job(rig: Rig) -> None:
    await put(rig, DENY_BAD)
    good, bad = plan(task("a")), plan(task("a"), recipe="bad")
    await recipes.register(rig.db, good)
    await recipes.register(rig.db, bad)
    wishes = [Submission(one, {}, rig.ids.new(), idempotency_key=f"k{i}") for i, one in enumerate((good, bad, good))]
    answers = await submit(rig.db, wishes)
    assert [isinstance(one, Denied) for one in answers] == [False, True, False]
    repeated = await submit(rig.db, [one._replace(job_id=rig.ids.new()) for one in wishes])
    assert [getattr(one, "job_id", None) for one in map(str_id, repeated)] == [
        getattr(one, "job_id", None) for one in map(str_id, answers)
    ]
    await consistent(rig)


class Id:
    def __init__(self, job_id: str) -> None:
        self.job_id = job_id


def str_id(answer: Any) -> Id:
    assert not isinstance(answer, Conflict)
    return Id(str(answer.job_id))


@pytest.mark.covers("COR-82")
async def test_a_throttled_job_waits_and_is_asked_about_again(rig: Rig) -> None:
    await put(rig, document("{id: slow, match: {topics: [job.r]}, decision: throttle}"))
    await rig.enlist()
    job = await rig.submit(plan(task("a"), task("b", "a")))
    found = await row(rig, job)
    assert (found["state"], found["policy"], found["gate_tries"]) == ("PENDING", None, 1)
    assert 5.0 <= (found["gate_at"] - found["created_at"]).total_seconds() <= 5.6
    assert await rig.states(job) == [S.HELD, S.BLOCKED]
    [reason, _] = await explain.why(rig.db, job)
    assert "throttles" in reason.because
    assert await rig.claim() == []
    rig.clock.advance(6)
    await rig.loops.run_until_idle()
    found = await row(rig, job)
    assert found["gate_tries"] == 2 and 8.0 <= (found["gate_at"] - rig.clock.now()).total_seconds() <= 8.6
    no = await put(rig, document("{id: go, match: {topics: [job.r]}, decision: allow}"))
    rig.clock.advance(9)
    await rig.loops.run_until_idle()
    found = await row(rig, job)
    assert (found["state"], found["policy"], found["gate_at"], found["gate_tries"]) == ("QUEUED", no, None, None)
    await rig.run_out()
    assert await rig.state(job) is JobState.COMPLETED
    await consistent(rig)


@pytest.mark.covers("COR-10")
async def test_a_job_that_needs_an_approval_waits(rig: Rig) -> None:
    await put(rig, document("{id: ask, match: {topics: [job.r]}, decision: require_approval}"))
    await rig.enlist()
    job = await rig.submit(plan(task("a"), task("c", when="true")))
    assert await rig.state(job) is JobState.APPROVAL_REQUIRED
    steps = await read.steps(rig.db, job)
    assert [Hold(step.holds) for step in steps] == [Hold.APPROVAL, Hold.APPROVAL | Hold.ROUTE]
    await rig.loops.run_until_idle()
    assert await rig.claim() == []
    [verdict] = await verdicts(rig, job)
    assert verdict["decision"] == "require_approval"
    await put(rig, document("{id: go, match: {topics: [job.r]}, decision: allow}"))
    await rig.run_out()
    assert await rig.state(job) is JobState.COMPLETED
    await consistent(rig)


async def test_a_child_job_passes_the_door(rig: Rig) -> None:
    await put(rig, DENY_BAD)
    await rig.enlist()
    await recipes.register(rig.db, plan(task("x"), recipe="bad"))
    parent = await rig.submit(plan(Node("call", NodeKind.RECIPE, "bad"), recipe="outer"))
    await rig.loops.run_until_idle()
    child = await rig.sole_job("bad")
    assert await rig.state(child) is JobState.DENIED
    view = await read.job(rig.db, parent)
    assert view.state is JobState.DENIED and view.error is not None and view.error["code"] == "safety_denied"
    assert await rig.states(parent) == [S.DENIED]
    await consistent(rig)


async def test_a_spawned_job_passes_the_door(rig: Rig) -> None:
    await put(rig, DENY_BAD)
    await rig.enlist()
    await recipes.register(rig.db, plan(task("x"), recipe="bad"))
    await rig.submit(plan(task("a"), recipe="outer"))
    one = await rig.claim_one()
    for _ in range(2):
        with pytest.raises(Denied) as refused:
            await children.spawn(rig.db, rig.ids.new(), (one.job_id, one.no, one.attempt), "bad", {})
        assert await rig.sole_job("bad") == UUID(refused.value.job_id)


async def test_a_rerun_a_retry_and_a_bulk_retry_pass_the_door(rig: Rig) -> None:
    await rig.enlist()
    job = await rig.submit(plan(task("a"), recipe="bad"))
    await rig.run_out()
    await put(rig, DENY_BAD)
    with pytest.raises(Denied) as first:
        await rerun.rerun(rig.db, job, rig.ids.new(), key="k")
    with pytest.raises(Denied) as again:
        await rerun.rerun(rig.db, job, rig.ids.new(), key="k")
    assert first.value.job_id == again.value.job_id
    assert await rig.state(UUID(first.value.job_id)) is JobState.DENIED
    with pytest.raises(Denied):
        await rerun.retry(rig.db, UUID(first.value.job_id), rig.ids.new())
    found = await bulk(
        rig.db,
        Targets((UUID(first.value.job_id),), False),
        "retry",
        new_id=rig.ids.new,
        limit=10,
        dry_run=False,
        expect=None,
        reason="",
        source="op",
        request_id=None,
    )
    assert [code for _, code in found.refused] == ["safety_denied"]
    await consistent(rig)


async def test_a_process_that_has_not_heard_of_a_publish_judges_again(rig: Rig) -> None:
    await put(rig, document("{id: go, match: {topics: [job.*]}, decision: allow}"))
    await rig.submit(plan(task("a")))
    # Another process publishes, and no bell arrives.
    await publish.publish(rig.db, {"main": DENY_BAD}, by="op", untested="a test")
    assert (await denied(rig)).rule == "no-bad"


async def test_a_job_of_a_process_that_does_not_know_of_any_policy_is_judged_before_it_is_claimed(rig: Rig) -> None:
    await rig.enlist()
    await rig.submit(plan(task("a"), recipe="other"))
    await publish.publish(rig.db, {"main": DENY_BAD}, by="op", untested="a test")
    # The process still believes that nothing was published.
    bad = await rig.submit(plan(task("a"), recipe="bad"))
    from windlass.engine.door import policies_of

    policies_of(rig.db).expire()
    assert [one.job_id for one in await rig.claim()] != [bad]
    assert await rig.state(bad) is JobState.DENIED


@pytest.mark.parametrize("processes", [8])
async def test_velocity_is_exact_over_many_submitters(rig: Rig, processes: int) -> None:
    limit = "velocity: {max_requests: 50, window_seconds: 3600, key: caller}"
    await put(rig, document(f"{{id: fast, match: {{topics: [job.r]}}, {limit}, decision: deny}}"))
    of = plan(task("a"))
    await recipes.register(rig.db, of)

    async def many() -> list[Any]:
        found = []
        for _ in range(10):
            found += await submit(rig.db, [Submission(of, {}, rig.ids.new())])
        return found

    answers = [one for part in await asyncio.gather(*(many() for _ in range(processes))) for one in part]
    refused = [one for one in answers if isinstance(one, Denied)]
    assert len(answers) - len(refused) == 50
    view = await read.job(rig.db, UUID(refused[0].job_id))
    assert view.error is not None and view.error["code"] == "velocity_exceeded"
    rig.clock.advance(3700)
    assert not isinstance((await submit(rig.db, [Submission(of, {}, rig.ids.new())]))[0], Denied)


async def test_a_repeat_of_a_submit_does_not_count_for_velocity(rig: Rig) -> None:
    limit = "velocity: {max_requests: 2, window_seconds: 60, key: caller}"
    await put(rig, document(f"{{id: fast, match: {{topics: [job.r]}}, {limit}, decision: deny}}"))
    first = await rig.submit(plan(task("a")), idempotency_key="k")
    for _ in range(5):
        assert await rig.submit(plan(task("a")), idempotency_key="k") == first
    wishes = [Submission(plan(task("a")), {}, rig.ids.new()) for _ in range(2)]
    assert [isinstance(one, Denied) for one in await submit(rig.db, wishes)] == [False, True]
