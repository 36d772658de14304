"""Test L: the limit of PostgreSQL itself, measured in the same run."""

import json
import subprocess
import sys

from bench.limit import rate
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.process import ROOT
from bench.schema import make_schema
from bench.session import make_database, tidy_up

LIMIT = "L bare SQL limit"
JOBS = 30_000


async def bare_sql(run: Run) -> None:
    """Measure the best of several batch sizes and numbers of connections, in each round."""
    dsn = await make_database(run.servers.postgres, "limit")
    await make_schema(dsn)
    count = run.count(JOBS, at_least=1000)
    # One unmeasured run gives the server statistics: plans made for empty tables are 30 times slower.
    await rate(dsn, count=1000, batch=100, connections=1)
    await tidy_up(dsn)
    for _ in range(run.repeats):
        wait_until_quiet(run.patience_s)
        with Watch({"server": [run.servers.postgres.pid]}) as watch:
            command = [sys.executable, "-m", "bench.limit", dsn, str(count)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
        tried = [json.loads(line) for line in answer.splitlines()]
        best = max(tried, key=lambda one: float(one["jobs_per_s"]))
        detail = {**best, "tried": tried, **cpu_us(watch.load, count * len(tried))}
        run.results.add(LIMIT, "bare SQL", "jobs/s", "higher", best["jobs_per_s"], watch.load.others, detail)
        run.say(f"{LIMIT:24} {'bare SQL':14} {best['jobs_per_s']:12,.0f} jobs/s  others {watch.load.others}")
        await tidy_up(dsn)
