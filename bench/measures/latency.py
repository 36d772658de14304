"""Test B: one job at a time on an idle system, beside the machine's own price of one durable commit."""

import asyncio
import time
from typing import Any

import asyncpg

from bench.host import PAUSE_S, percentile
from bench.machine import Load
from bench.measures.run import Reading, Run
from bench.roster import Entry
from bench.session import Session, make_database

LATENCY = "B submit to result"
LATENCY_P99 = "B submit to result, p99"
COMMITS = "B result in commits"
COMMIT = "B one durable commit"
COMMIT_SAMPLES = 200


async def commit_ms(dsn: str, samples: int) -> list[float]:
    """Single-row inserts, each committed, at the same leisurely pace as the jobs."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS row (id bigserial PRIMARY KEY, value int)")
        insert = await connection.prepare("INSERT INTO row (value) VALUES ($1)")
        times: list[float] = []
        for number in range(samples):
            started = time.perf_counter()
            await insert.fetch(number)
            times.append((time.perf_counter() - started) * 1e3)
            await asyncio.sleep(PAUSE_S)
        return times
    finally:
        await connection.close()


async def latency(run: Run) -> None:
    """Milliseconds from submit to the result seen by the submitter; commits are timed around every run."""
    dsn = await make_database(run.servers.postgres, "commit")

    def act(session: Session) -> tuple[dict[str, Any], Load]:
        return session.measure("latency", count=run.count(session.entry.roundtrips))

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        return answer["p50_ms"], answer

    for _ in range(run.repeats):
        before = await commit_ms(dsn, COMMIT_SAMPLES)
        await run.interleave(
            LATENCY, run.contestants(lambda peer: peer.roundtrips > 0), "ms p50", "lower", act, read, repeats=1
        )
        after = await commit_ms(dsn, COMMIT_SAMPLES)
        # Windlass is the last of a round, so the commits timed after it are the ones nearest to it.
        commit = percentile(before + after, 0.5)
        run.results.add(COMMIT, "postgresql", "ms p50", "lower", commit, 0.0, {"p99_ms": percentile(after, 0.99)})
        ours = run.results.get(LATENCY, "windlass")
        if ours:
            run.results.add(COMMITS, "windlass", "commits", "lower", ours.runs[-1] / commit, ours.others[-1])
            p99 = ours.details[-1]["p99_ms"]
            run.results.add(LATENCY_P99, "windlass", "ms p99", "lower", p99, ours.others[-1])
