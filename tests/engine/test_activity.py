"""What open jobs are doing: one word each, the same in the list, in its filter and in the overview."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from tests.engine import crowd
from tests.engine.crowd import Row
from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import Node, NodeKind
from windlass.core.retry import Retry
from windlass.core.states import JobState
from windlass.engine import budgets, control
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.views import activity, listing, overview
from windlass.views.activity import Activity, Doing
from windlass.views.listing import JobFilter

A = Activity
EVENT = Node("yes", NodeKind.EVENT, run="approved")


async def doing(rig: Rig, job: UUID) -> Doing | None:
    async with rig.db.connection() as connection:
        return (await activity.doing(connection, [job])).get(job)


async def listed(rig: Rig, *words: Activity, event: str | None = None, caller: str | None = None) -> list[UUID]:
    """All pages of two, to the end."""
    found: list[UUID] = []
    wanted = JobFilter(caller, activities=words, event=event)
    seen = listing.Page([], None)
    while True:
        seen = await listing.page(rig.db, wanted, before=seen.next, limit=2)
        assert all(seen.doing[job.id].activity in (words or (A.WAITING,)) for job in seen.jobs)
        found += [job.id for job in seen.jobs]
        if seen.next is None:
            return found


async def furnished(rig: Rig) -> dict[str, UUID]:
    """Jobs that do all kinds of things."""
    flaky = plan(task("a", retry=Retry(max_attempts=3, base_s=60)), recipe="flaky")
    made = {"retry": await rig.submit(flaky)}
    await rig.run_one(Failure(Fault("x", "no")))
    made["child"] = await rig.submit(plan(Node("sub", NodeKind.RECIPE, run="r"), recipe="parent"))
    await rig.submit(plan(task("a")))
    await rig.loops.run_until_idle()
    for _ in range(2):
        await rig.claim_one()
    made["asks"] = await rig.submit(plan(EVENT, recipe="asked"))
    made["both"] = await rig.submit(plan(Node("other", NodeKind.EVENT, run="chosen"), task("a"), recipe="both"))
    await rig.loops.run_until_idle()
    await rig.claim_one()
    made["timer"] = await rig.submit(plan(Node("t", NodeKind.TIMER, with_={"seconds": 90}), recipe="timed"))
    made["paused"] = await rig.submit(plan(EVENT, recipe="asked"))
    await rig.loops.run_until_idle()
    await control.pause(rig.db, made["paused"], source="test")
    made["queued"] = await rig.submit(plan(task("a")))
    made["line"] = await rig.submit(plan(task("a", concurrency="k"), recipe="line"))
    await rig.loops.run_until_idle()
    return made


async def test_every_open_job_is_told_by_what_it_does(rig: Rig) -> None:
    made = await furnished(rig)
    told = {name: await doing(rig, job) for name, job in made.items()}
    assert told == {
        "retry": Doing(A.SLEEPING, "retry"),
        "child": Doing(A.RUNNING, "child"),
        "asks": Doing(A.WAITING, "event:approved"),
        # A person is needed, also while other steps run.
        "both": Doing(A.WAITING, "event:chosen"),
        "timer": Doing(A.SLEEPING, "timer"),
        "paused": Doing(A.PAUSED, None),
        "queued": Doing(A.QUEUED, None),
        "line": told["line"],
    }
    await rig.run_out()
    assert await doing(rig, made["queued"]) is None


async def test_the_filter_the_list_and_the_overview_agree(rig: Rig) -> None:
    made = await furnished(rig)
    everything = (await listing.page(rig.db, JobFilter(None), limit=100)).doing
    totals = (await overview.overview(rig.db, None)).totals
    for word in Activity:
        expected = sorted((job for job, one in everything.items() if one.activity is word), reverse=True)
        assert await listed(rig, word) == expected, word
        assert totals[word] == len(expected), word
    assert totals["open"] == len(everything)
    assert (await overview.overview(rig.db, "local")).totals == totals
    assert await listed(rig, A.WAITING) == [made["both"], made["asks"]]
    assert await listed(rig, A.SLEEPING, A.PAUSED) == [made["paused"], made["timer"], made["retry"]]
    assert await listed(rig, event="approved") == [made["asks"]]
    assert await listed(rig, A.WAITING, caller="eve") == []


async def test_several_jobs_that_wait_for_one_event_lead_to_just_these(rig: Rig) -> None:
    await furnished(rig)
    second = await rig.submit(plan(EVENT, recipe="asked"))
    await rig.loops.run_until_idle()
    people = [one for one in (await overview.overview(rig.db, None)).attention if one.kind == "waiting_person"]
    assert (2, "/jobs?event=approved") in [(one.count, one.link) for one in people]
    assert second in await listed(rig, event="approved") and len(await listed(rig, event="approved")) == 2


async def test_more_open_jobs_than_are_looked_at_one_by_one_are_scanned(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await furnished(rig)
    monkeypatch.setattr(listing, "OPEN_MAX", 3)
    monkeypatch.setattr(listing, "_ACTIVE_BATCH", 2)
    monkeypatch.setattr(listing, "_ACTIVE_READS_MAX", 1)
    assert await listed(rig, A.SLEEPING) == [made["timer"], made["retry"]]
    monkeypatch.setattr(listing, "SCAN_MAX", 1)
    assert await listed(rig, A.WAITING) == [made["both"], made["asks"]]


async def test_other_conditions_narrow_a_filter_by_activity(rig: Rig) -> None:
    made = await furnished(rig)
    found = await listing.page(rig.db, JobFilter(None, activities=(A.WAITING,), recipe="both"))
    assert [job.id for job in found.jobs] == [made["both"]]
    found = await listing.page(rig.db, JobFilter(None, activities=(A.SLEEPING,), states=(JobState.COMPLETED,)))
    assert found.jobs == [] and found.next is None
    with pytest.raises(BadInput):
        await listing.page(rig.db, JobFilter(None, event="\x00"))


async def test_an_old_job_that_waits_is_found_among_many_finished_ones_at_once(db: Database) -> None:
    async with db.connection() as connection:
        await crowd.insert(connection, [Row(0, state=JobState.PROCESSING)])
        await connection.execute("UPDATE windlass.jobs SET due_at = now()")
        await connection.execute("INSERT INTO windlass.waits VALUES ($1, 0, 'approved', '{}')", Row(0).id)
        await crowd.insert_many(connection, 20_000, 100)
        for statement, values in (
            ("activity_waiting", "'ffffffff-ffff-ffff-ffff-ffffffffffff', uuid_nil(), 100, NULL"),
            ("activity_of", f"ARRAY['{Row(0).id}']::uuid[], 10"),
            ("activity_open", "100"),
        ):
            nodes = await _explain(connection, statement, values.replace("uuid_nil()", f"'{UUID(int=0)}'"))
            looked = sum(n["Actual Rows"] * n["Actual Loops"] for n in nodes if n.get("Relation Name") == "jobs")
            assert looked <= 2, (statement, nodes)
            assert not [n for n in nodes if n["Node Type"] == "Seq Scan" and n["Relation Name"] == "jobs"], statement
    found = await listing.page(db, JobFilter(None, activities=(A.WAITING,)))
    assert ([job.id for job in found.jobs], found.next) == ([Row(0).id], None)


async def _explain(connection: Any, statement: str, values: str) -> list[dict[str, Any]]:
    await connection.execute(f"PREPARE look AS {sql(statement)}")
    try:
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE look ({values})")
    finally:
        await connection.execute("DEALLOCATE look")
    found, todo = [], [json.loads(text)[0]["Plan"]]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += node.get("Plans", [])
    return found


async def test_a_budget_that_holds_a_job_is_told(rig: Rig) -> None:
    await budgets.set(rig.db, "recipe", "dear", "0.5")
    job = await rig.submit(plan(task("a", cost=1.0), recipe="dear"))
    await rig.loops.run_until_idle()
    assert await doing(rig, job) == Doing(A.QUEUED, "budget:recipe:dear")
    [short] = [one for one in (await overview.overview(rig.db, None)).attention if one.kind == "budget_short"]
    assert (short.count, short.link, short.title) == (1, f"/jobs/{job}", "The budget of recipe dear is used up")
    assert (await overview.overview(rig.db, "local")).attention == [short]
    assert (await overview.overview(rig.db, "eve")).attention == []
