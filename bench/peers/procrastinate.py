"""Procrastinate on PostgreSQL: one worker, concurrency 10, jobs deferred in batches where it can.

It has no chains and no join. A chain is a job that defers the next job. A fan-out is a batch; the client counts the
remaining jobs.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

import procrastinate
import psycopg
import uvloop

from bench.counter import tick
from bench.system import System, target

CONCURRENCY = 10
DEFER_BATCH = 1000
CLIENTS = 10

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=target().dsn, min_size=2, max_size=20))


@app.task(queue="q")
async def noop() -> None:
    tick()


@app.task(queue="q")
async def step(left: int) -> None:
    tick()
    if left:
        await step.defer_async(left=left - 1)


class Peer(System):
    """The submitting client."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def prepare(self) -> None:
        self._loop.run_until_complete(app.open_async())
        self._loop.run_until_complete(app.schema_manager.apply_schema_async())
        self._db: psycopg.Connection[Any] = psycopg.connect(target().dsn, autocommit=True)

    def worker(self) -> list[str]:
        options = ["-c", str(CONCURRENCY), "-q", "q"]
        return [sys.executable, "-m", "procrastinate", "--app=bench.peers.procrastinate.app", "worker", *options]

    def submit(self, count: int) -> None:
        for start in range(0, count, DEFER_BATCH):
            batch = [{}] * min(DEFER_BATCH, count - start)
            self._loop.run_until_complete(noop.batch_defer_async(*batch))

    def open_jobs(self) -> int:
        rows = self._db.execute("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")
        return int(rows.fetchone()[0])  # type: ignore[index]

    def roundtrip(self) -> None:
        job = self._loop.run_until_complete(noop.defer_async())
        # There is no call that waits for a job's end.
        while self._db.execute(
            "SELECT 1 FROM procrastinate_jobs WHERE id = %s AND status <> 'succeeded'", [job]
        ).rowcount:
            time.sleep(0.001)

    def chain(self, count: int) -> None:
        async def client(numbers: Iterator[int]) -> None:
            for _ in numbers:
                await step.defer_async(left=2)

        async def all_clients() -> None:
            numbers = iter(range(count))
            await asyncio.gather(*(client(numbers) for _ in range(CLIENTS)))

        self._loop.run_until_complete(all_clients())

    def fan(self, width: int) -> None:
        self.submit(width)
        while self.open_jobs():
            time.sleep(0.005)

    def close(self) -> None:
        self._db.close()
        self._loop.run_until_complete(app.close_async())
