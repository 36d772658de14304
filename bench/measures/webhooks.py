"""Test W: signed webhooks of a provider through one API process: how many end their step per second, and how soon."""

from contextlib import ExitStack

import asyncpg

from bench.external import PROVIDER, Installation
from bench.http_server import Asker
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.session import SystemFailed, tidy_up

STEADY = "W webhooks, 1,000/s sent"
STEADY_P50 = "W sent to settled"
STEADY_P99 = "W sent to settled, p99"
FULL = "W webhooks, all at once"
FULL_CPU = "W webhooks, CPU of the API"
RATE = 1_000
SECONDS = 10
CONNECTIONS = 64
# Provider work without a reported end.
KEYS = "SELECT external_id FROM windlass.provider_jobs WHERE state = 'RUNNING' ORDER BY job_id LIMIT $1"
SETTLED = """
    SELECT count(*) FROM windlass.provider_jobs p JOIN windlass.jobs j ON j.id = p.job_id
    WHERE p.state = 'ENDED' AND j.state = 'COMPLETED'"""


async def webhooks(run: Run) -> None:
    """Check that every answer is 200 `applied`, sent once the step's end is durable. Then check the database too."""
    folder = run.servers.folder / "webhooks"
    folder.mkdir(parents=True)
    try:
        with ExitStack() as stack:
            load = Asker("bench.http_load", log=folder / "load.log")
            stack.callback(load.close)
            sides: list[tuple[str, Installation]] = []
            for name, tree in run.versions():
                own = folder / f"webhooks_{name}"
                installation = await Installation.make(run.servers.postgres, own, tree=tree)
                stack.callback(installation.stop)
                installation.start()
                # Once unmeasured: connections are opened, plans are made.
                await _send(run, installation, load, CONNECTIONS, None)
                sides.append((name, installation))
            for _ in range(run.repeats):
                await _steady(run, sides[-1][1], load)
                for name, installation in sides:
                    await _full(run, name, installation, load)
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(STEADY, "windlass", str(error))
        run.say(f"{STEADY:24} failed: {error}")


async def _steady(run: Run, installation: Installation, load: Asker) -> None:
    """Send at a fixed rate, without waiting for earlier answers."""
    count = run.count(RATE * SECONDS)
    answer, watch = await _send(run, installation, load, count, RATE)
    rate, others = count / answer["seconds"], watch.load.others
    detail = {**answer, **cpu_us(watch.load, count)}
    run.results.add(STEADY, "windlass", "settled/s", "higher", rate, others, detail)
    run.results.add(STEADY_P50, "windlass", "ms p50", "lower", answer["p50_ms"], others)
    run.results.add(STEADY_P99, "windlass", "ms p99", "lower", answer["p99_ms"], others)
    run.say(f"{STEADY:24} {rate:,.0f} settled/s  others {others}  {detail}")


async def _full(run: Run, name: str, installation: Installation, load: Asker) -> None:
    """As fast as they are answered, over all connections."""
    count = run.count(RATE * SECONDS)
    answer, watch = await _send(run, installation, load, count, None)
    rate, others = count / answer["seconds"], watch.load.others
    detail = {**answer, **cpu_us(watch.load, count)}
    run.results.add(FULL, name, "settled/s", "higher", rate, others, detail)
    run.results.add(FULL_CPU, name, "us/webhook", "lower", detail["api_us"], others)
    run.say(f"{FULL:24} {name:14} {rate:,.0f} settled/s  others {others}  {detail}")


async def _send(
    run: Run, installation: Installation, load: Asker, count: int, rate: float | None
) -> tuple[dict[str, float], Watch]:
    await installation.park(count)
    await tidy_up(installation.dsn)
    connection = await asyncpg.connect(installation.dsn)
    try:
        ids = [row["external_id"] for row in await connection.fetch(KEYS, count)]
        before = await connection.fetchval(SETTLED)
        wait_until_quiet(run.patience_s)
        api = installation.api
        roles = {"client": [load.pid], "api": [api.pid], "worker": [installation.worker_pid]}
        with Watch({**roles, "server": [run.servers.postgres.pid]}) as watch:
            answer = load.ask(
                do="webhooks",
                port=api.port,
                path=f"/webhooks/{PROVIDER}",
                secret=installation.secret,
                ids=ids,
                connections=CONNECTIONS,
                rate=rate,
            )
        settled = await connection.fetchval(SETTLED) - before
    finally:
        await connection.close()
    if settled != count:
        raise SystemFailed(f"{count:,} webhooks were answered, and {settled:,} steps have ended")
    return answer, watch
