"""The limit does the same work: it writes the rows that Windlass writes."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

import windlass as wl
from bench.limit import PLAN_HASH, Lane, ordered_ids
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.recipe.app import App
from windlass.testing.postgres import fresh_database


@wl.step
async def body(n: int) -> int:
    return n


@wl.recipe
def one(n: int) -> Any:
    return body(n)


def shape(row: asyncpg.Record) -> dict[str, Any]:
    """The row with everything that differs from one run to the next reduced to its kind."""

    def known(value: Any) -> Any:
        if isinstance(value, datetime | UUID):
            return type(value).__name__
        return f"text of {len(value)}" if isinstance(value, str) and len(value) > 36 else value

    return {name: known(value) for name, value in row.items() if name != "txid"}


async def rows(connection: asyncpg.Connection, job: UUID) -> list[dict[str, Any]]:
    found = []
    for statement in (
        "SELECT * FROM windlass.jobs WHERE id = $1",
        "SELECT * FROM windlass.steps WHERE job_id = $1 ORDER BY no",
        "SELECT * FROM windlass.events WHERE job_id = $1 ORDER BY seq",
    ):
        found += [shape(row) for row in await connection.fetch(statement, job)]
    return found


async def test_the_limit_writes_the_rows_that_windlass_writes(tmp_path: Any) -> None:
    dsn = await fresh_database()
    async with Windlass.connect(dsn, settings=Settings(home=tmp_path)) as windlass:
        app = App()
        app.add([one])
        worker = windlass.worker(app)
        running = asyncio.create_task(worker.run())
        job = await windlass.submit(one, n=1)
        assert await job.result(timeout=60) == 1
        worker.stop()
        await running
    connection = await asyncpg.connect(dsn)
    lane = Lane(connection)
    await lane.open()
    [bare] = ordered_ids(1)
    await lane.live([bare])
    assert len(PLAN_HASH) == len(one.plan.hash)
    assert await rows(connection, bare) == await rows(connection, job.job_id)
    await lane.close()
