"""Test Q: a round of polls: the work of 10,000 jobs is due at once, at a provider in a separate process."""

import asyncio
import time

import asyncpg

from bench.external import Installation
from bench.idle import Listening
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.session import SystemFailed, tidy_up
from windlass.core.bell import PollDue
from windlass.testing.fake_provider import FakeProvider

RUNNING = "Q polls, still at work"
ENDED = "Q polls, all have ended"
STATEMENTS = "Q statements, still at work"
REQUESTS = "Q requests, still at work"
JOBS = 10_000
LIMIT_S = 300.0
DUE = """
    WITH made AS (
        UPDATE windlass.provider_jobs SET due_at = windlass.clock() WHERE state = 'RUNNING' RETURNING job_id
    )
    SELECT count(*), pg_notify($1, '') FROM made"""
ASKED = "SELECT count(*) FROM windlass.provider_jobs WHERE state = 'RUNNING' AND polls >= $1"
DONE = "SELECT count(*) FROM windlass.jobs WHERE state = 'COMPLETED'"


async def polls(run: Run) -> None:
    """Measure the seconds, statements and requests of one round; without webhooks, and with the rate limit out of the
    way.
    """
    folder = run.servers.folder / "polls"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        async with FakeProvider(folder / "journal", is_durable=False) as provider:
            await provider.behave(seconds=None)
            installation = await Installation.make(
                run.servers.postgres, folder, adapter="http", url=provider.base_url("generic"), has_webhooks=False
            )
            try:
                installation.start()
                for _ in range(run.repeats):
                    await _rounds(run, installation, provider)
            finally:
                installation.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(RUNNING, "windlass", str(error))
        run.say(f"{RUNNING:24} failed: {error}")


async def _rounds(run: Run, installation: Installation, provider: FakeProvider) -> None:
    count = run.count(JOBS)
    await installation.park(count)
    await tidy_up(installation.dsn)
    connection = await asyncpg.connect(installation.dsn)
    try:
        done = await connection.fetchval(DONE)
        before = await provider.state()
        await _timed(run, installation, provider, connection, RUNNING, count, (ASKED, 1), count)
        requests = (await provider.state())["counts"]["status"] - before["counts"].get("status", 0)
        run.results.add(REQUESTS, "windlass", "requests", "lower", requests, 0.0)
        log = Listening(run.servers.postgres, installation.dsn)
        await log.begin()
        own = connection._transport.get_extra_info("sockname")[1]
        await _round(connection, (ASKED, 2), count)
        statements = sum(seen for port, seen in (await log.end()).items() if port != own)
        run.results.add(STATEMENTS, "windlass", "statements", "lower", statements, 0.0)
        run.say(f"{STATEMENTS:24} {statements:,}; {requests:,} requests")
        await provider.finish()
        await _timed(run, installation, provider, connection, ENDED, count, (DONE,), done + count)
    finally:
        await connection.close()


async def _timed(
    run: Run,
    installation: Installation,
    provider: FakeProvider,
    connection: asyncpg.Connection,
    test: str,
    count: int,
    until: tuple[object, ...],
    wanted: int,
) -> None:
    wait_until_quiet(run.patience_s)
    roles = {"worker": [installation.worker_pid], "provider": [provider.pid or 0]}
    with Watch({**roles, "server": [run.servers.postgres.pid]}) as watch:
        seconds = await _round(connection, until, wanted)
    # Converted to the full count, for any scale.
    per_jobs, others = seconds * JOBS / count, watch.load.others
    detail = {"jobs": count, "seconds": seconds, **cpu_us(watch.load, count)}
    run.results.add(test, "windlass", "s/10,000", "lower", per_jobs, others, detail)
    run.say(f"{test:24} {per_jobs:.2f} s for 10,000  others {others}  {detail}")


async def _round(connection: asyncpg.Connection, until: tuple[object, ...], wanted: int) -> float:
    started = time.monotonic()
    await connection.fetch(DUE, PollDue.channel)
    while await connection.fetchval(*until) < wanted:
        if time.monotonic() - started > LIMIT_S:
            raise SystemFailed("the poller did not come to an end")
        await asyncio.sleep(0.02)
    return time.monotonic() - started
