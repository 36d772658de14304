"""Submitting: a job, durably, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, Conflict, NotFound, WrongState
from windlass.engine import control, recipes, rerun
from windlass.engine import submit as submit_module
from windlass.engine.recipes import NAME_KEPT_S, NamedPlans, Registered
from windlass.engine.submit import Accepted, Submission, Webhook, submit
from windlass.engine.submitter import Submitter
from windlass.views import read
from windlass.views import recipes as recipe_views

ONE = plan(task("a"))
HOOK = Webhook("https://example.org/told", b"sealed")


async def webhooks(rig: Rig) -> list[tuple[object, ...]]:
    async with rig.db.connection() as connection:
        rows = await connection.fetch(
            "SELECT job_id, caller, url, secret, state FROM windlass.webhooks ORDER BY job_id"
        )
    return [tuple(row) for row in rows]


@pytest.mark.covers("SCR-04", "SCR-06")
async def test_a_submitted_job_is_there_with_its_steps_and_first_event(rig: Rig) -> None:
    job = await rig.submit(
        plan(task("a"), task("b", "a")), {"x": 1}, labels={"k": "v"}, priority=7, deadline_s=60, correlation_id="c"
    )
    view = await read.job(rig.db, job)
    assert (view.state, view.input, view.labels, view.priority) == ("QUEUED", {"x": 1}, {"k": "v"}, 7)
    assert (view.steps_total, view.steps_open, view.event_seq) == (2, 2, 1)
    assert view.deadline_at == rig.clock.now() + timedelta(seconds=60)
    assert view.expires_at == rig.clock.now() + timedelta(hours=24)
    assert await rig.states(job) == ["QUEUED", "BLOCKED"]
    [event] = await read.events(rig.db, job)
    assert (event.type, event.source, event.correlation_id) == ("job.submitted", "local", "c")


async def test_the_same_key_and_body_give_the_first_job(rig: Rig) -> None:
    first = await rig.submit(ONE, {"x": 1}, idempotency_key="k")
    assert await rig.submit(ONE, {"x": 1}, idempotency_key="k") == first
    assert len(await read.jobs(rig.db)) == 1


async def test_the_same_key_with_another_body_is_a_conflict(rig: Rig) -> None:
    await rig.submit(ONE, {"x": 1}, idempotency_key="k")
    for other in (
        {"inputs": {"x": 2}},
        {"inputs": {"x": 1}, "labels": {"a": "b"}},
        {"inputs": {"x": 1}, "priority": 1},
    ):
        with pytest.raises(Conflict, match="'k' was used for another body"):
            await rig.submit(ONE, idempotency_key="k", **other)
    assert len(await read.jobs(rig.db)) == 1


async def test_a_key_belongs_to_its_caller(rig: Rig) -> None:
    first = await rig.submit(ONE, {"x": 1}, idempotency_key="k", caller="ada")
    assert await rig.submit(ONE, {"x": 2}, idempotency_key="k", caller="bob") != first


async def test_a_new_version_of_a_recipe_does_not_make_a_conflict_of_a_repeated_request(rig: Rig) -> None:
    first = await rig.submit(ONE, {"x": 1}, idempotency_key="k")
    assert await rig.submit(plan(task("a"), task("b")), {"x": 1}, idempotency_key="k") == first


@pytest.mark.covers("JN-24")
async def test_the_same_submission_twice_is_one_job(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    once = Submission(ONE, {}, rig.ids.new())
    assert await submit(rig.db, [once]) == await submit(rig.db, [once]) == [Accepted(once.job_id, True)]
    assert len(await read.events(rig.db, once.job_id)) == 1


async def test_a_batch_answers_each_in_its_place(rig: Rig) -> None:
    old = await rig.submit(ONE, {"x": 1}, idempotency_key="old")
    ids = [rig.ids.new() for _ in range(5)]
    answers = await submit(
        rig.db,
        [
            Submission(ONE, {"x": 1}, ids[0]),
            Submission(ONE, {"x": 1}, ids[1], idempotency_key="old"),
            Submission(ONE, {"x": 2}, ids[2], idempotency_key="old"),
            Submission(ONE, {"x": 1}, ids[3], idempotency_key="new"),
            Submission(ONE, {"x": 1}, ids[4], idempotency_key="new"),
        ],
    )
    assert answers[:2] == [Accepted(ids[0], True), Accepted(old, False)]
    assert isinstance(answers[2], Conflict)
    assert answers[3:] == [Accepted(ids[3], True), Accepted(ids[3], False)]


async def test_concurrent_submits_share_commits_and_each_gets_its_own_answer(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    submitter = Submitter(rig.db)
    jobs = [Submission(ONE, {"n": n}, rig.ids.new(), idempotency_key=f"k{n % 40}") for n in range(40)]
    other = Submission(ONE, {"n": "other"}, rig.ids.new(), idempotency_key="k0")
    answers = await asyncio.gather(*map(submitter.submit, [*jobs, other]), return_exceptions=True)
    assert answers[:40] == [Accepted(job.job_id, True) for job in jobs]
    assert isinstance(answers[40], Conflict)


async def test_one_who_gives_up_does_not_take_those_behind_him_along(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await recipes.register(rig.db, ONE)
    submitter, is_asked, true_flush = Submitter(rig.db), asyncio.Event(), submit_module.flush

    async def endless(_: object) -> None:
        is_asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(submit_module, "flush", endless)
    first = asyncio.create_task(submitter.submit(Submission(ONE, {}, rig.ids.new())))
    await is_asked.wait()
    behind = [Submission(ONE, {}, rig.ids.new()) for _ in range(2)]
    waiting = [asyncio.create_task(submitter.submit(one)) for one in behind]
    await asyncio.sleep(0)
    monkeypatch.setattr(submit_module, "flush", true_flush)
    first.cancel()
    assert await asyncio.gather(*waiting) == [Accepted(one.job_id, True) for one in behind]
    with pytest.raises(asyncio.CancelledError):
        await first
    last = Submission(ONE, {}, rig.ids.new())
    assert await submitter.submit(last) == Accepted(last.job_id, True)


async def test_a_bad_submission_does_not_take_its_neighbours_with_it(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    submitter = Submitter(rig.db)
    good = [Submission(ONE, {}, rig.ids.new()) for _ in range(3)]
    # PostgreSQL cannot store this character in JSON text that it must look into.
    bad = Submission(ONE, {}, rig.ids.new(), labels={"a": "\ud800"})
    answers = await asyncio.gather(*map(submitter.submit, [good[0], bad, *good[1:]]), return_exceptions=True)
    assert isinstance(answers[1], Exception)
    assert [answers[0], *answers[2:]] == [Accepted(job.job_id, True) for job in good]


@pytest.mark.parametrize(
    "given",
    [
        {"priority": 101},
        {"deadline_s": 0},
        {"ttl_s": -1},
        {"ttl_s": 1e12},
        {"idempotency_key": ""},
        {"idempotency_key": "k" * 256},
        {"caller": "a\x00b"},
        {"labels": {"a": "b\x00"}},
        {"labels": {str(n): "" for n in range(65)}},
        {"labels": {"a": "x" * 256}},
        {"budget": Decimal(0)},
        {"budget": Decimal(-1)},
        {"budget": Decimal("NaN")},
        {"budget": Decimal("Infinity")},
        {"budget": Decimal("1e13")},
        {"budget": Decimal("1e-13")},
    ],
)
async def test_what_the_tables_cannot_hold_is_refused_before_anything_is_written(rig: Rig, given: dict) -> None:
    with pytest.raises(BadInput):
        await submit(rig.db, [Submission(ONE, {}, rig.ids.new(), **given)])
    assert await read.jobs(rig.db) == []


@pytest.mark.covers("SCR-24", "SCR-25")
async def test_a_running_job_keeps_its_plan_and_new_jobs_get_the_new_one(rig: Rig) -> None:
    assert await recipes.register(rig.db, ONE) == Registered(1, 1)
    old = await rig.submit(ONE)
    two = plan(task("a"), task("b", "a"))
    assert await recipes.register(rig.db, two) == Registered(2, 2)
    assert await recipes.register(rig.db, two) == Registered(2, 2), "an unchanged plan is no new version"
    await rig.run_out()
    assert (await read.job(rig.db, old)).recipe_version == 1
    assert await rig.states(old) == ["COMPLETED"]
    assert (await recipes.latest(rig.db, "r")).hash == two.hash
    assert (await recipes.latest(rig.db, "r", 1)).hash == ONE.hash
    assert [v.version for v in await recipe_views.versions(rig.db, "r")] == [2, 1]
    assert [r.name for r in await recipe_views.listing(rig.db)] == ["r"]
    with pytest.raises(NotFound, match="version 9 of recipe r"):
        await recipes.latest(rig.db, "r", 9)


async def test_an_old_plan_that_is_registered_again_keeps_its_version(rig: Rig) -> None:
    two = plan(task("a"), task("b", "a"))
    for one, found in ((ONE, Registered(1, 1)), (two, Registered(2, 2)), (ONE, Registered(1, 2))):
        assert await recipes.register(rig.db, one) == found
    assert (await recipes.latest(rig.db, "r")).hash == two.hash


async def test_a_description_makes_no_version_and_follows_its_plan(rig: Rig) -> None:
    one, two = plan(task("a")), plan(task("b"))
    for text, wanted in (("First.", "First."), ("", "First."), ("Better.", "Better.")):
        assert await recipes.register(rig.db, one, description=text) == Registered(1, 1)
        assert (await recipes.described(rig.db, "r")).description == wanted
    await recipes.register(rig.db, two, description="Another.")
    await recipes.rollback(rig.db, "r")
    told = [found.description for found in await recipe_views.versions(rig.db, "r")]
    assert told == ["Better.", "Another.", "Better."]
    assert [found.description for found in await recipe_views.listing(rig.db)] == ["Better."]


async def test_a_rollback_makes_an_old_plan_the_newest_and_holds(rig: Rig) -> None:
    two = plan(task("a"), task("b", "a"))
    await recipes.register(rig.db, ONE)
    with pytest.raises(WrongState, match="only one version"):
        await recipes.rollback(rig.db, "r")
    await recipes.register(rig.db, two)
    assert await recipes.rollback(rig.db, "r") == (1, Registered(3, 3))
    assert await recipes.rollback(rig.db, "r", 1) == (1, Registered(3, 3)), "it is in force already"
    assert await recipes.register(rig.db, two) == Registered(2, 3)
    assert await recipes.register(rig.db, ONE) == Registered(3, 3)
    assert (await recipes.latest(rig.db, "r")).hash == ONE.hash
    assert await recipes.register(rig.db, two, is_newest=True) == Registered(4, 4)
    with pytest.raises(NotFound, match="version 9 of recipe r"):
        await recipes.rollback(rig.db, "r", 9)
    with pytest.raises(NotFound, match="no recipe other"):
        await recipes.rollback(rig.db, "other")


async def test_processes_that_register_at_once_agree(rig: Rig) -> None:
    versions = await asyncio.gather(*(recipes.register(rig.db, ONE) for _ in range(8)))
    assert set(versions) == {Registered(1, 1)}
    plans = [plan(task(name)) for name in "abcdefgh"]
    found = await asyncio.gather(*(recipes.register(rig.db, one) for one in plans * 2))
    assert [one.version for one in found[:8]] == [one.version for one in found[8:]]
    assert len(await recipe_views.versions(rig.db, "r")) == len({ONE.hash, *(one.hash for one in plans)})


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
async def test_text_that_cannot_be_stored_is_refused(rig: Rig, text: str) -> None:
    for more in ({"idempotency_key": text}, {"labels": {"a": text}}, {"labels": {text: "a"}}, {"correlation_id": text}):
        with pytest.raises(BadInput, match="a key, label or caller"):
            await rig.submit(ONE, **more)
    assert await read.jobs(rig.db) == []


async def test_a_webhook_is_stored_with_its_job(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    wishes = [
        Submission(ONE, {}, rig.ids.new(), caller="ada", correlation_id="c", webhook=hook)
        for hook in (HOOK, None, HOOK)
    ]
    await submit(rig.db, wishes)
    await submit(rig.db, wishes)
    assert await webhooks(rig) == [(wish.job_id, "ada", *HOOK, "WAITING") for wish in wishes if wish.webhook]


async def test_a_repeated_request_leaves_the_first_webhook_as_it_is(rig: Rig) -> None:
    given: dict[str, Any] = {"idempotency_key": "k", "correlation_id": "c"}
    first = await rig.submit(ONE, webhook=HOOK, **given)
    assert await rig.submit(ONE, webhook=HOOK._replace(secret=b"sealed again"), **given) == first
    for other in (None, HOOK._replace(url="https://example.org/other")):
        with pytest.raises(Conflict):
            await rig.submit(ONE, webhook=other, **given)
    assert await webhooks(rig) == [(first, "local", *HOOK, "WAITING")]


async def test_a_webhook_whose_job_could_not_be_found_on_the_feed_is_refused(rig: Rig) -> None:
    with pytest.raises(BadInput, match="correlation id"):
        await rig.submit(ONE, webhook=HOOK)


async def test_a_key_that_was_used_before_there_were_webhooks_still_holds(rig: Rig) -> None:
    given: dict[str, Any] = {"labels": {"a": "b"}, "priority": 2, "deadline_s": 60.0}
    job = await rig.submit(ONE, {"x": 1}, idempotency_key="k", **given)
    async with rig.db.connection() as connection:
        stored = await connection.fetchval("SELECT body_hash FROM windlass.jobs WHERE id = $1", job)
    assert stored == "76862d77e26f7b6cd87430ac19f4c3e357eecc9534790fd1e32dd15dc6cd4d73"


async def budgets(rig: Rig) -> dict[str, Decimal]:
    async with rig.db.connection() as connection:
        rows = await connection.fetch("SELECT * FROM windlass.budgets WHERE scope = 'job' ORDER BY name")
    return {row["name"]: row["most"] for row in rows}


async def test_a_budget_is_stored_with_its_job(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    wishes = [Submission(ONE, {}, rig.ids.new(), budget=most) for most in (Decimal("1.25"), None, Decimal(3))]
    await submit(rig.db, wishes)
    await submit(rig.db, wishes)
    assert await budgets(rig) == {str(wish.job_id): wish.budget for wish in wishes if wish.budget}


async def test_the_same_key_with_another_budget_is_a_conflict(rig: Rig) -> None:
    first = await rig.submit(ONE, idempotency_key="k", budget=Decimal("1.50"))
    assert await rig.submit(ONE, idempotency_key="k", budget=Decimal("1.5")) == first
    for other in (None, Decimal("1.6")):
        with pytest.raises(Conflict):
            await rig.submit(ONE, idempotency_key="k", budget=other)
    assert await budgets(rig) == {str(first): Decimal("1.50")}


async def test_a_job_that_is_run_again_may_spend_as_much_again(rig: Rig) -> None:
    job = await rig.submit(ONE, budget=Decimal(2))
    await control.cancel(rig.db, job)
    again = [await rerun.retry(rig.db, job, rig.ids.new()), await rerun.rerun(rig.db, job, rig.ids.new())]
    assert await budgets(rig) == dict.fromkeys(sorted(map(str, [job, *again])), Decimal(2))
    other = await rig.submit(ONE)
    await control.cancel(rig.db, other)
    await rerun.retry(rig.db, other, rig.ids.new())
    assert len(await budgets(rig)) == 3


async def test_many_submissions_of_one_call_are_answered_in_order(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    submitter = Submitter(rig.db)
    first, conflict, new, same = (
        Submission(ONE, {"x": x}, rig.ids.new(), idempotency_key=key)
        for x, key in ((1, "k"), (2, "k"), (3, None), (1, "k"))
    )
    answers = await submitter.submit_each([first, conflict, new, same])
    assert isinstance(answers[1], Conflict)
    assert [a for a in answers if isinstance(a, Accepted)] == [
        Accepted(first.job_id, True), Accepted(new.job_id, True), Accepted(first.job_id, False)
    ]  # fmt: skip
    assert await submitter.submit_each([]) == []


async def test_one_bad_submission_of_a_call_makes_no_job(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    wishes = [Submission(ONE, {}, rig.ids.new(), priority=priority) for priority in (0, 1_000)]
    with pytest.raises(BadInput):
        await Submitter(rig.db).submit_each(wishes)
    assert await read.jobs(rig.db) == []


class Ear:
    """An observer of submits."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, float]] = []

    def submitted(self, job_ids: Sequence[UUID], seconds: float) -> None:
        self.heard.append((len(job_ids), seconds))


async def test_an_observer_hears_of_each_commit(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    ear = Ear()
    times = iter([1.0, 3.5])
    submitter = Submitter(rig.db, ear, lambda: next(times))  # type: ignore[arg-type]
    await submitter.submit_each([Submission(ONE, {}, rig.ids.new()) for _ in range(3)])
    assert ear.heard == [(3, 2.5)]


async def test_a_recipe_by_name_is_looked_up_again_after_a_second(rig: Rig) -> None:
    now_s = 100.0
    named = NamedPlans(rig.db, lambda: now_s)
    with pytest.raises(NotFound):
        await named.latest("r")
    newer = plan(task("a"), task("b"))
    await recipes.register(rig.db, ONE)
    assert await named.latest("r") == ONE
    await recipes.register(rig.db, newer)
    assert await named.latest("r") == ONE
    assert await named.latest("r", 2) == newer
    now_s += NAME_KEPT_S + 0.1
    assert await named.latest("r") == newer
    for version in (0, -1, 3, 2**31, 2**63):
        with pytest.raises(NotFound, match="version"):
            await named.latest("r", version)
