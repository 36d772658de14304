"""Test N: the cost of bells for committing writers: 16 writers in 4 processes, with and without bells."""

import asyncio
import sys

import asyncpg

from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run
from bench.process import ROOT
from bench.session import make_database

WITHOUT = "N 16 writers, no bells"
WITH = "N 16 writers, bells"
INSIDE = "N 16 writers, NOTIFY inside"
PROCESSES = 4
WRITERS = 4
SECONDS = 5.0


async def bells(run: Run) -> None:
    """Measure the durable commits per second of 16 writers."""
    dsn = await make_database(run.servers.postgres, "bells")
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE TABLE bell_row (id bigserial PRIMARY KEY, value int)")
    await connection.close()
    seconds = max(1.0, SECONDS * run.scale)
    for _ in range(run.repeats):
        for test, kind in ((WITHOUT, "none"), (WITH, "after"), (INSIDE, "inside")):
            wait_until_quiet(run.patience_s)
            with Watch({"server": [run.servers.postgres.pid]}) as watch:
                rate = sum(await asyncio.gather(*(_writers(dsn, seconds, kind) for _ in range(PROCESSES))))
            run.results.add(test, "windlass", "commits/s", "higher", rate, watch.load.others, {})
            run.say(f"{test:28} {rate:12,.0f} commits/s  others {watch.load.others}")


async def _writers(dsn: str, seconds: float, kind: str) -> float:
    command = [sys.executable, "-m", "bench.bells", dsn, str(WRITERS), str(seconds), kind]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError("the writers failed")
    return float(out)
