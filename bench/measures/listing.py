"""Test G: pages of `GET /jobs` among a million jobs of a thousand callers, by each kind of filter."""

import random
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import asyncpg

from bench.http_server import Api, Asker
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run
from bench.schema import make_schema
from bench.session import SystemFailed, make_database, tidy_up
from windlass.core.states import JobState
from windlass.store import labels
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.views.listing import JobFilter, statement_of

TEST = "G GET /jobs"
JOBS = 1_000_000
CALLERS = 1_000
CHUNK = 100_000
# The number of requesting callers, the requests of each per kind, and the connections.
ASKERS = 20
ASKS = 1_000
CONNECTIONS = 2

# As on the engine's connections: one plan for all values, driven by an index.
PLANS = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off"}

# A job every 20 ms up to now; one in twenty failed in one of five steps, one in ten belongs to one of four corpora.
FILL = """
    INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input,
                               error, labels, correlation_id, created_at, started_at, finished_at, expires_at, trouble)
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008'
            || substr(md5(n::text), 1, 15))::uuid,
           'r' || turn % 7, repeat('0', 64), state, 'caller-' || n % $4, 0, 5, 1, 0, '{"n": 1}',
           CASE WHEN state = 'FAILED' THEN json_build_object('code', 'x', 'message', 'm', 'step', 's' || turn % 5) END,
           CASE WHEN turn % 10 = 0 THEN jsonb_build_object('corpus', 'c' || turn % 4, 'lang', 'l' || turn % 3)
                WHEN turn % 3 = 0 THEN jsonb_build_object('lang', 'l' || turn % 3) END,
           'req-' || n, at, at, at, at + interval '1 day',
           CASE WHEN state NOT IN ('COMPLETED', 'QUEUED') THEN state END
    FROM generate_series($1::int, $2::int) AS n,
         LATERAL (SELECT $3::timestamptz + n * interval '20 ms' AS at, n / $4 AS turn) t,
         LATERAL (SELECT CASE WHEN turn % 20 = 7 THEN 'FAILED' WHEN turn % 100 = 9 THEN 'CANCELLED'
                              WHEN turn % 50 = 11 THEN 'QUEUED' ELSE 'COMPLETED' END AS state) s
"""
INDEXED = "corpus"
WAYS: Mapping[str, tuple[dict[str, str], JobFilter]] = {
    "plain": ({}, JobFilter("x")),
    "status": ({"status": "QUEUED"}, JobFilter("x", states=(JobState.QUEUED,))),
    "bad endings": ({"status": "FAILED"}, JobFilter("x", states=(JobState.FAILED,))),
    "recipe": ({"recipe": "r3"}, JobFilter("x", recipe="r3")),
    "label": ({"label": "lang=l1"}, JobFilter("x", labels={"lang": "l1"})),
    "indexed label": ({"label": "corpus:c2"}, JobFilter("x", labels={INDEXED: "c2"})),
    "failed step": ({"failed_step": "s2"}, JobFilter("x", failed_step="s2")),
    "second page": ({}, JobFilter("x")),
    "nothing found": ({"recipe": "none"}, JobFilter("x", recipe="none")),
}


def name(kind: str) -> str:
    """Return the test's name for one kind of filter, p99."""
    return f"{TEST} {kind}, p99"


async def listing(run: Run) -> None:
    """Measure the milliseconds from the request's first byte to the answer's last."""
    dsn = await make_database(run.servers.postgres, "windlass_listing")
    folder = run.servers.folder / "listing"
    try:
        await make_schema(dsn)
        run.say(f"{TEST:24} filling in {run.count(JOBS):,} jobs")
        await fill(dsn, run.count(JOBS, at_least=CALLERS))
        indexes = {kind: await index_of(dsn, wanted) for kind, (_, wanted) in WAYS.items()}
        api = Api(dsn, folder).start()
        try:
            load = Asker("bench.http_load", log=folder / "load.log")
            try:
                _rounds(run, api, load, indexes)
            finally:
                load.close()
        finally:
            api.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(TEST, "windlass", str(error))
        run.say(f"{TEST:24} failed: {error}")
    finally:
        # Free a gigabyte that no other test needs.
        await make_database(run.servers.postgres, "windlass_listing")


def _rounds(run: Run, api: Api, load: Asker, indexes: Mapping[str, str]) -> None:
    rng = random.Random(7)
    wanted = [{"caller": f"caller-{no}", "name": "bench"} for no in rng.sample(range(CALLERS), ASKERS)]
    made = load.ask(do="post", port=api.port, key=api.key, path="/keys", bodies=wanted)["answers"]
    keys = [answer["key"] for answer in made]
    cursors = {key: _cursor(load, api, key) for key in keys}
    for _ in range(run.repeats):
        for kind, (query, _filter) in WAYS.items():
            asks = [
                (_path(query | (cursors[key] if kind == "second page" else {})), key)
                for key in keys * max(1, run.count(ASKS) // ASKERS)
            ]
            rng.shuffle(asks)
            wait_until_quiet(run.patience_s)
            with Watch({"client": [load.pid], "api": [api.pid], "server": [run.servers.postgres.pid]}) as watch:
                told = load.ask(do="get", port=api.port, asks=asks, connections=CONNECTIONS)
            detail: dict[str, Any] = {**told, "index": indexes[kind]}
            run.results.add(name(kind), "windlass", "ms", "lower", told["p99_ms"], watch.load.others, detail)
            run.say(
                f"{name(kind):34} p50 {told['p50_ms']:6.2f} ms  p99 {told['p99_ms']:6.2f} ms  {indexes[kind]}"
                f"  others {watch.load.others}"
            )


def _path(query: Mapping[str, str]) -> str:
    return f"/jobs?{urlencode(query)}" if query else "/jobs"


def _cursor(load: Asker, api: Api, key: str) -> dict[str, str]:
    """Return the cursor of a caller's second page; empty if a small run has none."""
    [page] = load.ask(do="read", port=api.port, key=key, paths=["/jobs?limit=10"])["answers"]
    return {"cursor": page["next"]} if page["next"] else {}


async def fill(dsn: str, jobs: int) -> None:
    """Write the jobs and let the server collect statistics."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET synchronous_commit = off")
        first = await connection.fetchval("SELECT now() - $1::int * interval '20 ms'", jobs)
        for start in range(1, jobs + 1, CHUNK):
            await connection.execute(FILL, start, min(jobs, start + CHUNK - 1), first, CALLERS)
    finally:
        await connection.close()
    db = await Database.open(dsn)
    try:
        await labels.declare(db, [INDEXED])
    finally:
        await db.close()
    await tidy_up(dsn)


async def index_of(dsn: str, wanted: JobFilter) -> str:
    """Return the index that drives the statement for this filter, from the server's plan for all values."""
    connection = await asyncpg.connect(dsn, server_settings=PLANS)
    try:
        label = INDEXED if INDEXED in wanted.labels else None
        name_of = statement_of(wanted, label)[0]
        statement = sql(name_of) if label is None else labels.statement(name_of, label)
        nothing = ", ".join(["NULL"] * max(int(number) for number in re.findall(r"\$(\d+)", statement)))
        await connection.execute(f"PREPARE look AS {statement}")
        rows = await connection.fetch(f"EXPLAIN EXECUTE look ({nothing})")
    finally:
        await connection.close()
    # The rows of undo jobs, alias `undo`, are read one by one, for the jobs that have one.
    driving = [row[0] for row in rows if " using " in row[0] and re.search(r" on jobs( j\w*)? +\(", row[0])]
    found = {line.split(" using ")[1].split(" ")[0] for line in driving}
    return ", ".join(sorted(found)) or "none"
