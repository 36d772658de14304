"""pgqueuer on PostgreSQL: claims in batches of 100, enqueues 1,000 rows at a time.

It has no chains and no join. A chain is a job that enqueues the next job. A fan-out is a bulk enqueue; the client
counts the remaining rows until none is left.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.counter import tick
from bench.system import System, slow_body, target

BATCH = 100
ENQUEUE_BATCH = 1000
CLIENTS = 10


async def work() -> None:
    """Run the worker process."""
    pool = await asyncpg.create_pool(target().dsn, min_size=2, max_size=10)
    driver = AsyncpgPoolDriver(pool)
    queries = Queries(driver)
    queue = PgQueuer(driver)

    @queue.entrypoint("noop")
    async def noop(job: Job) -> None:
        tick()

    @queue.entrypoint("step")
    async def step(job: Job) -> None:
        tick()
        left = int(job.payload or b"0")
        if left:
            await queries.enqueue("step", str(left - 1).encode())

    @queue.entrypoint("slow")
    async def slow(job: Job) -> None:
        await slow_body()

    await queue.run(batch_size=BATCH)


class Peer(System):
    """The submitting client."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def prepare(self) -> None:
        install = [str(Path(sys.executable).with_name("pgq")), "--pg-dsn", target().dsn, "install"]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
        self._pool = self._loop.run_until_complete(asyncpg.create_pool(target().dsn, min_size=2, max_size=20))
        self._queries = Queries(AsyncpgPoolDriver(self._pool))

    def worker(self) -> list[str]:
        return [sys.executable, "-m", "bench.peers.pgqueuer"]

    def submit(self, count: int) -> None:
        for start in range(0, count, ENQUEUE_BATCH):
            size = min(ENQUEUE_BATCH, count - start)
            rows = self._queries.enqueue(["noop"] * size, [None] * size, [0] * size)
            self._loop.run_until_complete(rows)

    def open_jobs(self) -> int:
        return int(self._loop.run_until_complete(self._pool.fetchval("SELECT count(*) FROM pgqueuer")))

    def roundtrip(self) -> None:
        async def one() -> None:
            (job,) = await self._queries.enqueue("noop", None)
            # A finished job leaves the table; there is no call that waits for it.
            while await self._pool.fetchval("SELECT 1 FROM pgqueuer WHERE id = $1", int(job)):
                await asyncio.sleep(0.001)

        self._loop.run_until_complete(one())

    def chain(self, count: int) -> None:
        async def client(numbers: Iterator[int]) -> None:
            for _ in numbers:
                await self._queries.enqueue("step", b"2")

        async def all_clients() -> None:
            numbers = iter(range(count))
            await asyncio.gather(*(client(numbers) for _ in range(CLIENTS)))

        self._loop.run_until_complete(all_clients())

    def fan(self, width: int) -> None:
        self.submit(width)
        while self.open_jobs():
            time.sleep(0.005)

    def slow(self) -> None:
        self._loop.run_until_complete(self._queries.enqueue("slow", None))

    def close(self) -> None:
        self._loop.run_until_complete(self._pool.close())


if __name__ == "__main__":
    uvloop.run(work())
