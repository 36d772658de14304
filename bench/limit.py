"""The limit: bare batched SQL writes the same rows that Windlass writes for a one-step job.

A test compares them column by column (tests/bench/test_limit.py).

Nothing is searched, decided, run or notified. The statements take arrays, as the engine's do, with three commits per
batch. The commit of the claim does not wait for the disk, as in the engine. One client process tries several batch
sizes and numbers of connections; the best is the limit.
"""

import asyncio
import json
import random
import sys
import time
import uuid
from collections.abc import Iterator

import asyncpg
import uvloop

# Without these settings a plan made for small tables joins by hashing whole tables.
PLANS = {"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_seqscan": "off", "enable_bitmapscan": "off"}
BATCHES = (200, 500)
CONNECTIONS = (1, 2, 4)
PLAN_HASH = "0" * 64

STATEMENTS = {
    "job_insert": """
        INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open,
                                   input, created_at, expires_at, due_at, is_ttl_default)
        SELECT id, 'one', $2, 'QUEUED', 'local', 0, 1, 1, 1, '{"n":1}', now(), now() + interval '1 day',
               now() + interval '1 day', true
        FROM unnest($1::uuid[]) AS x (id)""",
    "step_insert": """
        INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s, lane)
        SELECT id, 0, 0, 'QUEUED', 'main_processing', 0, 0, 3600, 'body local' FROM unnest($1::uuid[]) AS x (id)""",
    "event_insert": """
        INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, payload)
        SELECT job_id, seq, now(), type, $6, no, attempt, CASE WHEN type = 'step.running' THEN $7::json END
        FROM unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[]) AS x (job_id, seq, type, no, attempt)""",
    "step_claim": """
        UPDATE windlass.steps SET state = 'RUNNING', attempt = attempt + 1, worker = $2, started_at = now(),
                                  wake_at = now() + make_interval(secs => timeout_s)
        WHERE job_id = ANY ($1::uuid[]) AND no = 0""",
    "job_claim": """
        UPDATE windlass.jobs SET state = 'PROCESSING', event_seq = event_seq + 2, version = version + 1,
                                 started_at = now()
        WHERE id = ANY ($1::uuid[])""",
    "step_end": """
        UPDATE windlass.steps s SET state = 'COMPLETED', worker = NULL, wake_at = NULL, output = x.output::json,
                                    finished_at = now()
        FROM unnest($1::uuid[], $2::text[]) AS x (id, output) WHERE s.job_id = x.id AND s.no = 0""",
    "job_end": """
        UPDATE windlass.jobs SET state = 'COMPLETED', event_seq = event_seq + 2, version = version + 1, steps_open = 0,
                                 due_at = NULL, finished_at = now()
        WHERE id = ANY ($1::uuid[])""",
}

# (seq, type, no, attempt) of the events of each commit.
SUBMITTED = ((1, "job.submitted", None, None),)
CLAIMED = ((2, "job.processing", None, None), (3, "step.running", 0, 1))
ENDED = ((4, "step.completed", 0, 1), (5, "job.completed", None, None))


def ordered_ids(count: int) -> list[uuid.UUID]:
    """Return UUIDs of version 7, in order."""
    start = time.time_ns() // 1_000_000 << 80 | 7 << 76 | 2 << 62
    return [uuid.UUID(int=start | number << 30 | random.getrandbits(30)) for number in range(count)]


Events = tuple[tuple[int, str, int | None, int | None], ...]


class Lane:
    """One connection that writes the whole lives of batches of jobs."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._worker = uuid.uuid4()
        self._payload = json.dumps({"worker": str(self._worker)}, separators=(",", ":"))

    async def open(self) -> None:
        """Prepare every statement."""
        self._run = {name: (await self._connection.prepare(text)).fetch for name, text in STATEMENTS.items()}

    async def live(self, ids: list[uuid.UUID]) -> None:
        """Submit, claim and end one batch: three commits."""
        run = self._run
        async with self._connection.transaction():
            await run["job_insert"](ids, PLAN_HASH)
            await run["step_insert"](ids)
            await self._events(ids, SUBMITTED, "local")
        async with self._connection.transaction():
            await self._connection.execute("SET LOCAL synchronous_commit = off")
            await run["step_claim"](ids, self._worker)
            await run["job_claim"](ids)
            await self._events(ids, CLAIMED, "worker")
        async with self._connection.transaction():
            await run["step_end"](ids, ["1"] * len(ids))
            await run["job_end"](ids)
            await self._events(ids, ENDED, "worker")

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _events(self, ids: list[uuid.UUID], events: Events, source: str) -> None:
        columns = [list(column) * len(ids) for column in zip(*events, strict=True)]
        await self._run["event_insert"]([job for job in ids for _ in events], *columns, source, self._payload)


async def rate(dsn: str, *, count: int, batch: int, connections: int) -> float:
    """Return the whole lives of one-step jobs per second."""
    lanes = [Lane(await asyncpg.connect(dsn, server_settings=PLANS)) for _ in range(connections)]
    for lane in lanes:
        await lane.open()
        for _ in range(6):
            await lane.live(ordered_ids(20))
    ids = ordered_ids(count)
    batches = iter([ids[start : start + batch] for start in range(0, count, batch)])

    async def drive(lane: Lane, batches: Iterator[list[uuid.UUID]]) -> None:
        for part in batches:
            await lane.live(part)

    started = time.monotonic()
    await asyncio.gather(*(drive(lane, batches) for lane in lanes))
    seconds = time.monotonic() - started
    for lane in lanes:
        await lane.close()
    return count / seconds


async def main(dsn: str, count: int) -> None:
    """Print every combination as one JSON object per line."""
    for batch in BATCHES:
        for connections in CONNECTIONS:
            jobs_per_s = await rate(dsn, count=count, batch=batch, connections=connections)
            print(json.dumps({"batch": batch, "connections": connections, "jobs_per_s": jobs_per_s}), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
