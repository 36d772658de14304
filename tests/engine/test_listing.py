"""Pages of jobs: whose, which, in what order, and what a page costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine import crowd
from tests.engine.crowd import Row
from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput
from windlass.core.states import JobState
from windlass.store.database import Database
from windlass.store.labels import declare
from windlass.store.statements import sql
from windlass.views import listing
from windlass.views.listing import JobFilter, Page

ONE = plan(task("a"))
S = JobState


async def walk(db: Database, wanted: JobFilter, limit: int = 50) -> list[UUID]:
    """Every page, to the end."""
    found: list[UUID] = []
    seen = Page([], None)
    while True:
        seen = await listing.page(db, wanted, before=seen.next, limit=limit)
        found += [job.id for job in seen.jobs]
        if seen.next is None:
            return found


async def put(db: Database, *rows: Row) -> None:
    async with db.connection() as connection:
        await crowd.insert(connection, list(rows))


async def test_a_page_has_the_newest_first_and_leads_to_the_next(rig: Rig) -> None:
    made = [await rig.submit(ONE, caller="ada") for _ in range(5)]
    first = await listing.page(rig.db, JobFilter("ada"), limit=2)
    assert [job.id for job in first.jobs] == [made[4], made[3]]
    rest = await listing.page(rig.db, JobFilter("ada"), before=first.next, limit=3)
    assert [job.id for job in rest.jobs] == [made[2], made[1], made[0]]
    # Known without asking for an empty one.
    assert rest.next is None


async def test_a_job_in_a_list_has_its_recipes_version_and_not_its_input(rig: Rig) -> None:
    await rig.submit(ONE, {"secret": 1}, caller="ada")
    [job] = (await listing.page(rig.db, JobFilter("ada"))).jobs
    assert (job.recipe, job.recipe_version, job.input, job.state) == ("r", 1, None, S.QUEUED)


async def test_pages_stay_what_they_are_while_jobs_come_in(db: Database) -> None:
    await put(db, *(Row(n, caller=("ada", "bob")[n % 2]) for n in range(40)))
    wanted = [Row(n).id for n in range(38, -1, -2)]
    found: list[UUID] = []
    before, newest = None, 100
    while True:
        seen = await listing.page(db, JobFilter("ada"), before=before, limit=3)
        found += [job.id for job in seen.jobs]
        before = seen.next
        if before is None:
            break
        await put(db, Row(newest), Row(newest + 1))
        newest += 2
    assert found == wanted


async def test_a_page_that_found_little_says_from_where_to_go_on(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SCAN_MAX", 4)
    await put(db, *(Row(n, recipe="rare" if n in (0, 9) else "r") for n in range(12)))
    first = await listing.page(db, JobFilter("ada", recipe="rare"), limit=2)
    assert ([job.id for job in first.jobs], first.next) == ([Row(9).id], Row(8).id)
    second = await listing.page(db, JobFilter("ada", recipe="rare"), before=first.next, limit=2)
    assert (second.jobs, second.next) == ([], Row(4).id)
    assert await walk(db, JobFilter("ada", recipe="rare"), 2) == [Row(9).id, Row(0).id]
    assert await listing.count(db, JobFilter("ada", recipe="rare")) == (2, False)


async def test_no_filter_shows_another_callers_job(db: Database) -> None:
    labels = {"corpus": "c", "k": "v"}
    await put(db, *(Row(n, caller="bob", state=S.FAILED, labels=labels, step="s") for n in range(3)))
    for wanted in (
        JobFilter("ada"),
        JobFilter("ada", states=(S.FAILED,)),
        JobFilter("ada", labels={"corpus": "c"}),
        JobFilter("ada", failed_step="s"),
        JobFilter("ada", labels={"k": "v"}, with_deleted=True),
    ):
        assert (await listing.page(db, wanted)).jobs == []
    assert len((await listing.page(db, JobFilter(None, failed_step="s"))).jobs) == 3


async def test_a_count_stops_where_it_is_told_to(db: Database) -> None:
    await put(db, *(Row(n) for n in range(12)))
    assert await listing.count(db, JobFilter("ada"), 5) == (5, True)
    assert await listing.count(db, JobFilter("ada"), 12) == (12, False)
    assert await listing.count(db, JobFilter("bob"), 5) == (0, False)


@pytest.mark.parametrize("limit", [0, -1, listing.PAGE_MAX + 1])
async def test_a_page_has_a_limit(db: Database, limit: int) -> None:
    with pytest.raises(BadInput, match="a page has 1 to 200 jobs"):
        await listing.page(db, JobFilter("ada"), limit=limit)


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter("a\x00"),
        JobFilter("ada", recipe="\x00"),
        JobFilter("ada", labels={"k": "\ud800"}),
        JobFilter("ada", labels={"\x00": "v"}),
        JobFilter("ada", since=crowd.START.replace(tzinfo=None)),
    ],
)
async def test_a_filter_that_no_job_can_fit_is_refused(db: Database, wanted: JobFilter) -> None:
    with pytest.raises(BadInput):
        await listing.page(db, wanted)


@pytest.mark.parametrize("year", [1, 1970, 9999])
async def test_any_time_can_be_asked_for(db: Database, year: int) -> None:
    await put(db, Row(1))
    time = crowd.START.replace(year=year)
    is_before = year < 2026
    assert len((await listing.page(db, JobFilter("ada", since=time))).jobs) == is_before
    assert len((await listing.page(db, JobFilter("ada", until=time))).jobs) == (not is_before)


def test_the_digest_tells_filters_apart_and_not_orders() -> None:
    filters = [
        JobFilter("ada"), JobFilter("bob"), JobFilter(None), JobFilter("ada", recipe="r"),
        JobFilter("ada", failed_step="r"), JobFilter("ada", states=(S.FAILED,)), JobFilter("ada", labels={"r": ""}),
        JobFilter("ada", since=crowd.START), JobFilter("ada", until=crowd.START), JobFilter("ada", with_deleted=True),
    ]  # fmt: skip
    assert len({wanted.digest() for wanted in filters}) == len(filters)
    one, other = (S.FAILED, S.QUEUED), (S.QUEUED, S.FAILED)
    assert JobFilter("ada", states=one).digest() == JobFilter("ada", states=other).digest()


# ---------------------------------------------------------------- every filter, against the plain meaning of it

STATES = (S.QUEUED, S.PROCESSING, S.COMPLETED, S.FAILED, S.CANCELLED)
CALLERS = ("ada", "bob")
rows_of = st.lists(
    st.builds(
        Row,
        n=st.just(0),
        caller=st.sampled_from(CALLERS),
        state=st.sampled_from(STATES),
        recipe=st.sampled_from(("r", "q")),
        labels=st.dictionaries(st.sampled_from(("corpus", "k")), st.sampled_from(("u", "v")), max_size=2),
        step=st.sampled_from((None, "a", "b")),
        is_deleted=st.booleans(),
    ),
    max_size=30,
).map(lambda rows: [Row(n, *_rest(row)) for n, row in enumerate(rows)])
times = st.none() | st.integers(-5, 35).map(lambda n: crowd.START + timedelta(seconds=n))
filters_of = st.builds(
    JobFilter,
    caller=st.sampled_from((*CALLERS, None)),
    states=st.lists(st.sampled_from(STATES), max_size=2, unique=True).map(tuple),
    recipe=st.sampled_from((None, None, "r")),
    labels=st.dictionaries(st.sampled_from(("k", "corpus")), st.sampled_from(("u", "v")), max_size=2),
    failed_step=st.sampled_from((None, None, "a")),
    since=times,
    until=times,
    with_deleted=st.booleans(),
)


def _rest(row: Row) -> tuple[Any, ...]:
    step = row.step if row.state is S.FAILED else None
    return row.caller, row.state, row.recipe, row.labels, step, row.is_deleted


def fits(row: Row, wanted: JobFilter) -> bool:
    return (
        wanted.caller in (None, row.caller)
        and (not wanted.states or row.state in wanted.states)
        and wanted.recipe in (None, row.recipe)
        and wanted.labels.items() <= row.labels.items()
        and wanted.failed_step in (None, row.step)
        and (wanted.since is None or row.at >= wanted.since)
        and (wanted.until is None or row.at < wanted.until)
        and (wanted.with_deleted or not row.is_deleted)
    )


def test_every_filter_finds_what_it_says(dsn: str, loop_runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small enough that pages come out short all the time.
    monkeypatch.setattr(listing, "SCAN_MAX", 4)
    db = loop_runner.run(Database.open(dsn))
    # One of the two labels has an index: the other is a filter all the same.
    loop_runner.run(declare(db, ["corpus"]))

    async def found(rows: list[Row], wanted: JobFilter, limit: int) -> list[UUID]:
        async with db.connection() as connection:
            await connection.execute("DELETE FROM windlass.jobs")
            await crowd.insert(connection, rows)
        return await walk(db, wanted, limit)

    @given(rows_of, filters_of, st.integers(1, 5))
    def check(rows: list[Row], wanted: JobFilter, limit: int) -> None:
        expected = [row.id for row in reversed(rows) if fits(row, wanted)]
        assert loop_runner.run(found(rows, wanted, limit)) == expected

    check()
    loop_runner.run(db.close())


# ---------------------------------------------------------------- what a page costs

CALLER = "caller-0123"
WAYS = {
    "plain": (JobFilter(CALLER), "jobs_caller"),
    "by status": (JobFilter(CALLER, states=(S.QUEUED,)), "jobs_caller"),
    "by bad endings": (JobFilter(CALLER, states=(S.FAILED, S.CANCELLED)), "jobs_caller_trouble"),
    "by recipe": (JobFilter(CALLER, recipe="r3"), "jobs_caller"),
    "by label": (JobFilter(CALLER, labels={"lang": "l1"}), "jobs_caller"),
    "by indexed label": (JobFilter(CALLER, labels={"corpus": "c2"}), "jobs_label_corpus"),
    "by two labels": (JobFilter(CALLER, labels={"lang": "l1", "corpus": "c2"}), "jobs_label_corpus"),
    "all callers' label": (JobFilter(None, labels={"corpus": "c2"}), "jobs_all_label_corpus"),
    "by failed step": (JobFilter(CALLER, failed_step="s2"), "jobs_failed_step"),
    "by time": (JobFilter(CALLER, since=crowd.START, until=crowd.START + timedelta(hours=1)), "jobs_caller"),
    "all callers": (JobFilter(None), "jobs_pkey"),
    "all callers' failures": (JobFilter(None, states=(S.FAILED,)), "jobs_trouble"),
    "nobody's": (JobFilter("nobody"), "jobs_caller"),
}


def _nodes(plan_node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan_node
    for child in plan_node.get("Plans", ()):
        yield from _nodes(child)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value).lower()
        case list():
            return "ARRAY[" + ", ".join(map(_literal, value)) + "]"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


async def _explain(db: Database, wanted: JobFilter, before: UUID | None) -> list[dict[str, Any]]:
    """How the server really does it, with the plan that every connection keeps: one for all values."""
    asked: list[tuple[str, tuple[Any, ...]]] = []

    class Spy:
        async def fetch(self, statement: str, *values: Any) -> list[Any]:
            if statement == sql("label_indexed"):
                return [{"name": "corpus"}] if "corpus" in values[0] else []
            asked.append((statement, values))
            return [{"id": None, "reach": None, "state": None}]

    await _look_at(Spy(), wanted, before)
    [(statement, values)] = asked
    async with db.connection() as connection:
        await connection.execute(f"PREPARE look AS {statement}")
        try:
            text = await connection.fetchval(
                f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE look ({', '.join(map(_literal, values))})"
            )
        finally:
            await connection.execute("DEALLOCATE look")
    return list(_nodes(json.loads(text)[0]["Plan"]))


async def _look_at(spy: Any, wanted: JobFilter, before: UUID | None) -> None:
    class Given:
        def connection(self) -> Any:
            return self

        async def __aenter__(self) -> Any:
            return spy

        async def __aexit__(self, *_: object) -> None:
            return None

    await listing.page(Given(), wanted, before=before)  # type: ignore[arg-type]


@pytest.mark.covers("CIX-13", "CIX-24", "CIX-26", "JN-17")
@pytest.mark.slow
async def test_every_way_is_driven_by_its_index_among_many_jobs_of_many_callers(fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn)
    async with db.connection() as connection:
        await crowd.insert_many(connection, 200_000, 1_000)
    assert await declare(db, ["corpus"]) == ["corpus"]
    for title, (wanted, index) in WAYS.items():
        first = await listing.page(db, wanted, limit=10)
        assert first.jobs or title == "nobody's", title
        for before in (None, first.next):
            nodes = await _explain(db, wanted, before)
            # The rows of undo jobs are read one by one, for the jobs of the page that have one.
            on_jobs = [n for n in nodes if n.get("Relation Name") == "jobs" and n.get("Alias") != "undo"]
            assert {node["Index Name"] for node in on_jobs} == {index}, (title, on_jobs)
            assert not [n for n in nodes if n["Node Type"] == "Seq Scan"], title
            looked_at = sum(node["Actual Rows"] * node["Actual Loops"] for node in on_jobs)
            assert looked_at <= 2 * listing.SCAN_MAX, (title, looked_at)
            # Streamed off the index: only the page itself is ever sorted.
            assert all(n["Actual Rows"] <= listing.PAGE_MAX for n in nodes if n["Node Type"] == "Sort"), title
    await db.close()


def test_every_statement_of_the_lists_is_tried() -> None:
    tried = {
        listing.statement_of(wanted, "corpus" if "corpus" in wanted.labels else None)[0] for wanted, _ in WAYS.values()
    }
    text = {name for name in ("list_caller", "list_caller_trouble", "list_caller_label", "list_caller_failed_step",
                              "list_all", "list_all_trouble", "list_all_label") if sql(name)}  # fmt: skip
    assert tried == text
