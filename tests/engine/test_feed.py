"""The feed: every event once, each job in order, under any order of commits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.engine.forgetful import forgetful_server
from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.core.note import Note
from windlass.engine import claim, control, feed, recipes, submit, workers
from windlass.engine.feed import FeedRow
from windlass.engine.note import note
from windlass.engine.submit import Submission
from windlass.pure.cursor import ORIGIN, FeedAt, Place, arrange, rest
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.views import read

ONE = plan(task("a"))
Where = tuple[UUID, int]


async def everything(db: Database, at: FeedAt = ORIGIN, callers: Sequence[str] | None = None) -> list[FeedRow]:
    """All that can be seen now."""
    await undisturbed(db)
    rows, _ = await feed.after(db, at, callers=callers)
    return [row for row, _ in arrange(rows, lambda row: row.at, at)]


def where(rows: Sequence[FeedRow]) -> list[Where]:
    return [(row.at.job_id, row.at.seq) for row in rows]


class Writers:
    """Transactions of their own that write events by hand, and end when the test says so."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._open: list[asyncpg.Connection] = []

    async def begin(self) -> asyncpg.Connection:
        connection = await asyncpg.connect(self._dsn)
        self._open.append(connection)
        await connection.execute("BEGIN")
        await connection.fetchval("SELECT pg_current_xact_id()")
        return connection

    async def write(self, connection: asyncpg.Connection, job: UUID, type: str = "job.resumed") -> None:
        """As every writer does it: under the job's lock, with the next sequence number."""
        await connection.execute(
            "WITH j AS (UPDATE windlass.jobs SET event_seq = event_seq + 1 WHERE id = $1 RETURNING event_seq)"
            " INSERT INTO windlass.events (job_id, seq, at, type, source, correlation_id)"
            " SELECT $1, event_seq, windlass.clock(), $2, 'test', 'c' FROM j",
            *(job, type),
        )

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()


@pytest.fixture
async def writers(dsn: str) -> AsyncIterator[Writers]:
    made = Writers(dsn)
    yield made
    await made.close()


async def jobs_of(rig: Rig, count: int, **given: Any) -> list[UUID]:
    return [await rig.submit(ONE, correlation_id="c", **given) for _ in range(count)]


async def test_a_followed_job_is_told_from_its_submission_to_its_end(rig: Rig) -> None:
    job = await rig.submit(ONE, caller="ada", labels={"k": "v"}, correlation_id="req-1")
    one = await rig.claim_one()
    await note(rig.db, [Note(job, one.no, one.attempt, progress_pct=40.0, message="half")])
    assert await rig.settle(one)
    rows = await everything(rig.db)
    assert [row.type for row in rows] == ["job.submitted", "job.processing", "step.progress", "job.completed"]
    told = rows[2]
    assert (told.no, told.attempt, told.payload, told.progress) == (
        0,
        1,
        {"pct": 40.0, "message": "half"},
        told.payload,
    )
    assert (told.caller, told.recipe, told.labels, told.state) == ("ada", "r", {"k": "v"}, "COMPLETED")
    assert {row.correlation_id for row in rows} == {"req-1"}
    assert (told.when, told.created_at, told.finished_at) == (rig.clock.now(),) * 3


async def test_a_job_without_a_correlation_id_is_not_on_the_feed(rig: Rig) -> None:
    await rig.submit(ONE)
    await rig.run_out()
    assert await everything(rig.db) == []


async def test_callers_are_told_of_their_own_jobs(rig: Rig) -> None:
    ada, bob = [await jobs_of(rig, 1, caller=caller) for caller in ("ada", "bob")]
    assert where(await everything(rig.db, callers=["ada"])) == [(ada[0], 1)]
    assert where(await everything(rig.db, callers=["ada", "bob"])) == [(ada[0], 1), (bob[0], 1)]
    await undisturbed(rig.db)
    rows, end = await feed.after(rig.db, ORIGIN, callers=["nobody"])
    assert rows == []
    assert await everything(rig.db, end) == [], "what was looked at is not looked at again"


async def test_nothing_is_told_while_an_older_transaction_is_open(rig: Rig, writers: Writers) -> None:
    job, other = await jobs_of(rig, 2)
    start = (await everything(rig.db))[-1].at
    older, younger = await writers.begin(), await writers.begin()
    await writers.write(younger, other)
    await younger.execute("COMMIT")
    assert await everything(rig.db, start) == []
    await writers.write(older, job)
    await older.execute("COMMIT")
    assert where(await everything(rig.db, start)) == [(job, 2), (other, 2)]


async def test_a_transaction_that_is_undone_leaves_no_gap(rig: Rig, writers: Writers) -> None:
    [job] = await jobs_of(rig, 1)
    start = (await everything(rig.db))[-1].at
    lost = await writers.begin()
    await writers.write(lost, job)
    await lost.execute("ROLLBACK")
    kept = await writers.begin()
    await writers.write(kept, job)
    await kept.execute("COMMIT")
    assert where(await everything(rig.db, start)) == [(job, 2)]


async def test_a_job_whose_older_transaction_wrote_last_is_told_in_its_own_order(rig: Rig, writers: Writers) -> None:
    job, other = await jobs_of(rig, 2)
    start = (await everything(rig.db))[-1].at
    older, younger = await writers.begin(), await writers.begin()
    await writers.write(younger, job, "job.processing")
    await younger.execute("COMMIT")
    await writers.write(older, job, "job.completed")
    await writers.write(older, other)
    await older.execute("COMMIT")
    await undisturbed(rig.db)
    rows, _ = await feed.after(rig.db, start, callers=None)
    assert rows[0].at.txid < rows[-1].at.txid
    assert (rows[0].at.seq, rows[-1].at.seq) == (3, 2), "the numbers of the transactions run against the job's own"
    told = arrange(rows, lambda row: row.at, start)
    assert [row.type for row, _ in told if row.at.job_id == job] == ["job.processing", "job.completed"]
    for number, (_, place) in enumerate(told, 1):
        await undisturbed(rig.db)
        again, _ = await feed.after(rig.db, place.at, callers=None)
        assert rest(again, lambda row: row.at, place) == told[number:]


async def test_a_job_is_not_told_ahead_of_what_is_still_beyond_the_horizon(rig: Rig, writers: Writers) -> None:
    """The older writer has ended, the younger one has too, but one between them is still under way."""
    job, other, third = await jobs_of(rig, 3)
    start = (await everything(rig.db))[-1].at
    older, between, younger = await writers.begin(), await writers.begin(), await writers.begin()
    await writers.write(younger, job, "job.processing")
    await younger.execute("COMMIT")
    await writers.write(older, other)
    await writers.write(older, job, "job.completed")
    await older.execute("COMMIT")
    assert await everything(rig.db, start) == []
    await undisturbed(rig.db)
    fresh = await feed.here(rig.db)
    await writers.write(between, third)
    await between.execute("COMMIT")
    for at in (start, fresh):
        rows = [row for row in await everything(rig.db, at) if row.at.job_id == job]
        assert [row.type for row in rows] == ["job.processing", "job.completed"]


async def test_a_chain_of_such_writers_is_told_whole(rig: Rig, writers: Writers) -> None:
    job, other = await jobs_of(rig, 2)
    start = (await everything(rig.db))[-1].at
    first, second, between, third = [await writers.begin() for _ in range(4)]
    for writer in (third, second, first):
        await writers.write(writer, job)
        await writer.execute("COMMIT")
    assert await everything(rig.db, start) == []
    await writers.write(between, other)
    await between.execute("COMMIT")
    rows = await everything(rig.db, start)
    assert [row.at.seq for row in rows if row.at.job_id == job] == [2, 3, 4]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
async def test_a_cut_never_parts_a_job_from_its_earlier_events(rig: Rig, writers: Writers, limit: int) -> None:
    jobs = await jobs_of(rig, 6)
    older = [await writers.begin() for _ in range(3)]
    younger = [await writers.begin() for _ in range(3)]
    for mine, writer in enumerate(younger):
        await writers.write(writer, jobs[mine], "job.processing")
        await writer.execute("COMMIT")
    for mine, writer in enumerate(older):
        await writers.write(writer, jobs[5 - mine])
        await writers.write(writer, jobs[mine], "job.completed")
        await writer.execute("COMMIT")
    whole = await everything(rig.db)
    assert len(whole) == 15
    told: list[tuple[FeedRow, Place]] = []
    at = ORIGIN
    while True:
        await undisturbed(rig.db)
        rows, end = await feed.after(rig.db, at, callers=None, limit=limit)
        told += arrange(rows, lambda row: row.at, at)
        if end == at:
            break
        at = end
    assert where([row for row, _ in told]) == where(whole)
    for number, (_, place) in enumerate(told, 1):
        await undisturbed(rig.db)
        again, _ = await feed.after(rig.db, place.at, callers=None)
        assert where([row for row, _ in rest(again, lambda row: row.at, place)]) == where(whole[number:])


async def test_a_transaction_larger_than_the_limit_is_told_whole(rig: Rig) -> None:
    await recipes.register(rig.db, ONE)
    many = [Submission(ONE, {}, rig.ids.new(), correlation_id="c") for _ in range(30)]
    await submit.submit(rig.db, many)
    await jobs_of(rig, 2)
    await undisturbed(rig.db)
    rows, end = await feed.after(rig.db, ORIGIN, callers=None, limit=7)
    assert where(rows)[:30] == [(one.job_id, 1) for one in sorted(many, key=lambda one: one.job_id)]
    await undisturbed(rig.db)
    rest_of_it, _ = await feed.after(rig.db, end, callers=None, limit=7)
    assert len(rows) + len(rest_of_it) == 32


async def test_from_here_everything_is_still_to_come(rig: Rig, writers: Writers) -> None:
    [before] = await jobs_of(rig, 1)
    open_one = await writers.begin()
    await writers.write(open_one, before)
    await undisturbed(rig.db)
    at = await feed.here(rig.db)
    [later] = await jobs_of(rig, 1)
    await open_one.execute("COMMIT")
    assert where(await everything(rig.db, at)) == [(before, 2), (later, 1)]


async def test_many_writers_at_once_are_followed_without_gap_or_repeat(db: Database, dsn: str, rig: Rig) -> None:
    jobs = await jobs_of(rig, 8)
    writers = Writers(dsn)
    told: list[Where] = []
    places: list[Place] = []

    async def write(number: int) -> None:
        connection = await writers.begin()
        await connection.execute("COMMIT")
        for turn in range(25):
            await connection.execute("BEGIN")
            # In the order of their ids, as every writer of several jobs takes them.
            for job in sorted({jobs[(number + turn) % 8], jobs[(number * 3 + turn) % 8]}):
                await writers.write(connection, job)
            await connection.execute("ROLLBACK" if turn % 7 == number else "COMMIT")

    async def follow(is_over: asyncio.Event) -> None:
        at = ORIGIN
        while True:
            if was_over := is_over.is_set():
                await undisturbed(db)
            rows, end = await feed.after(db, at, callers=None, limit=40)
            arranged = arrange(rows, lambda row: row.at, at)
            told.extend(where([row for row, _ in arranged]))
            places.extend(place for _, place in arranged)
            if end == at and was_over:
                return
            at = end

    is_over = asyncio.Event()
    follower = asyncio.create_task(follow(is_over))
    await asyncio.gather(*(write(number) for number in range(6)))
    is_over.set()
    await follower
    await writers.close()
    async with db.connection() as connection:
        written = await connection.fetch("SELECT job_id, seq FROM windlass.events")
    assert sorted(told) == sorted((row["job_id"], row["seq"]) for row in written)
    for job in jobs:
        seqs = [seq for one, seq in told if one == job]
        assert seqs == list(range(1, len(seqs) + 1))
    for number, place in list(enumerate(places, 1))[::17]:
        again, _ = await feed.after(db, place.at, callers=None)
        assert where([row for row, _ in rest(again, lambda row: row.at, place)]) == told[number:]


async def test_the_events_of_some_jobs_come_in_order(rig: Rig) -> None:
    first, second, third = [await rig.submit(ONE) for _ in range(3)]
    await rig.run_one()
    found = await read.events_of(rig.db, {first: 1, second: 0, third: 1, rig.ids.new(): 0}, limit_each=2)
    assert {job: [event.seq for event in events] for job, events in found.items()} == {first: [2, 3], second: [1]}
    assert (found[first][1].type, found[first][1].no, found[first][1].attempt) == ("step.running", 0, 1)


async def test_a_cursor_is_kept_in_the_commit_of_its_follower(rig: Rig) -> None:
    async with rig.db.connection() as connection:
        assert await feed.cursor(connection, "f") == ORIGIN
        at = FeedAt(7, rig.worker, 3)
        for one in (FeedAt(5, rig.worker, 1), at):
            await feed.keep_cursor(connection, "f", one)
        assert await feed.cursor(connection, "f") == at


@pytest.mark.parametrize("statement", ["feed_page", "feed_torn", "feed_torn_behind"])
async def test_no_statement_of_the_feed_reads_a_whole_table(db: Database, statement: str) -> None:
    async with db.connection() as connection:
        await connection.execute(
            "INSERT INTO windlass.events (job_id, seq, at, type, source, correlation_id)"
            " SELECT md5((n / 5)::text)::uuid, n % 5, windlass.clock(), 'job.submitted', 'x',"
            " CASE WHEN n % 2 = 0 THEN 'c' END FROM generate_series(1, 100000) n"
        )
        await connection.execute("ANALYZE windlass.events")
        horizon = await connection.fetchval(sql("feed_horizon"))
        given = [f"'{int(horizon) - 1}'", f"'{UUID(int=0)}'", "0", f"'{horizon}'"]
        given += ["'{ada}'", "500"] if statement == "feed_page" else []
        # As the connection's own statements are planned: without a look at the values.
        await connection.execute(f"PREPARE looked AS {sql(statement)}")
        plan = await connection.fetch(f"EXPLAIN EXECUTE looked ({', '.join(given)})")
        await connection.execute("DEALLOCATE looked; TRUNCATE windlass.events")
    lines = "\n".join(row[0] for row in plan)
    assert "Seq Scan" not in lines
    assert "events_feed" in lines
    assert "Index Cond: (id = p.job_id)" in lines or statement != "feed_page"
    reads = [line for line in lines.splitlines() if "Index Cond" in line]
    assert all("txid" in line or "job_id" in line or "id =" in line for line in reads), lines
    assert any("ROW(" in line for line in reads) or statement == "feed_torn", lines


async def test_what_was_told_outlives_a_crash_of_the_server(rig: Rig) -> None:
    async with forgetful_server() as (db, crash):
        worker = rig.ids.new()
        await workers.enlist(db, worker, host="h", pid=1, queues=["main_processing"], concurrency=9)
        await recipes.register(db, ONE)
        for is_told in (False, True):
            job = rig.ids.new()
            await submit.submit(db, [Submission(ONE, {}, job, correlation_id="c")])
            start = await feed.here(db)
            await claim.claim(db, worker=worker, queues=["main_processing"], limit=1)
            rows = await everything(db, start) if is_told else []
            assert [row.type for row in rows] == ["job.processing"] * is_told
            await crash()
            again = await everything(db, start)
            if is_told:
                assert where(again) == where(rows), "what was told is still there"
            else:
                assert again == [], "the test is worth nothing: the claim was on the disk by itself"
                await claim.claim(db, worker=worker, queues=["main_processing"], limit=1)
            await control.cancel(db, job)
