"""Windlass, driven through its public SDK; the worker is an ordinary `windlass worker`."""

import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import uvloop

from bench import windlass_app
from bench.schema import make_schema
from bench.system import System, target
from windlass.app.windlass import Windlass
from windlass.recipe.recipe import Recipe

SUBMIT_BATCH = 1000
RESULT_LIMIT_S = 900.0
# An open job has an expiry time; a finished job has none.
OPEN = "SELECT count(*) FROM windlass.jobs WHERE due_at IS NOT NULL"
PARKED = "SELECT count(*) FROM windlass.steps WHERE state = 'PARKED'"


class Peer(System):
    """The submitting client."""

    def __init__(self) -> None:
        # Workers inherit both: the database to serve, and a folder for outputs too big for a row.
        os.environ["WINDLASS_DATABASE_URL"] = target().dsn
        os.environ["WINDLASS_HOME"] = target().folder
        self._loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._opened = AsyncExitStack()

    def prepare(self) -> None:
        async def open_all() -> None:
            await make_schema(target().dsn)
            self._windlass = await self._opened.enter_async_context(Windlass.connect(target().dsn))
            self._db = await asyncpg.connect(target().dsn)
            await self._db.execute("CREATE TABLE bench_row (id bigserial PRIMARY KEY, value int)")
            self._insert = await self._db.prepare("INSERT INTO bench_row (value) VALUES ($1)")

        self._loop.run_until_complete(open_all())

    def worker(self) -> list[str]:
        program = str(Path(sys.executable).with_name("windlass"))
        return [program, "worker", "bench.windlass_app"]

    def submit(self, count: int) -> None:
        self._loop.run_until_complete(self._many(windlass_app.one, count))

    def open_jobs(self) -> int:
        return int(self._loop.run_until_complete(self._db.fetchval(OPEN)))

    def roundtrip(self) -> None:
        async def submit_and_wait() -> None:
            job = await self._windlass.submit(windlass_app.one, n=1)
            assert await job.result(timeout=RESULT_LIMIT_S) == 1

        self._loop.run_until_complete(submit_and_wait())

    def commit(self) -> bool:
        self._loop.run_until_complete(self._insert.fetch(1))
        return True

    def chain(self, count: int) -> None:
        self._loop.run_until_complete(self._many(windlass_app.three, count))

    def fan(self, width: int) -> None:
        async def submit_and_wait() -> None:
            job = await self._windlass.submit(windlass_app.fan, width=width)
            assert await job.result(timeout=RESULT_LIMIT_S) == width

        self._loop.run_until_complete(submit_and_wait())

    def slow(self) -> None:
        self._loop.run_until_complete(self._windlass.submit(windlass_app.slow))

    def park(self, count: int) -> None:
        async def submit_and_wait() -> None:
            for start in range(0, count, SUBMIT_BATCH):
                size = min(SUBMIT_BATCH, count - start)
                await self._windlass.submit_many(windlass_app.parked, [{}] * size)
            deadline = time.monotonic() + RESULT_LIMIT_S
            while await self._db.fetchval(PARKED) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError("not all jobs are parked")
                await asyncio.sleep(0.5)

        self._loop.run_until_complete(submit_and_wait())

    def close(self) -> None:
        async def close_all() -> None:
            await self._db.close()
            await self._opened.aclose()

        self._loop.run_until_complete(close_all())

    async def _many(self, recipe: Recipe, count: int) -> None:
        for start in range(0, count, SUBMIT_BATCH):
            size = min(SUBMIT_BATCH, count - start)
            await self._windlass.submit_many(recipe, [{"n": n} for n in range(start, start + size)])
