"""Measures one-step jobs in two databases of one server: an empty database, and a database that was filled first."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.machine import wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.roster import WINDLASS
from bench.session import SystemFailed, make_database


class Side(NamedTuple):
    """One of the two databases, and the name of its results."""

    test: str
    database: str


async def compare(run: Run, empty: Side, filled: Side, fill: Callable[[str], Awaitable[None]]) -> None:
    """Measure the jobs in both databases in turn. `fill` prepares the second database, which it gets as a URL."""
    count = run.count(WINDLASS.jobs)
    try:
        sessions = [(side.test, await run.session(WINDLASS, side.database)) for side in (empty, filled)]
        await fill(sessions[1][1].dsn)
        for _ in range(run.repeats):
            for test, session in sessions:
                session.start()
                wait_until_quiet(run.patience_s)
                try:
                    answer, load = session.measure("jobs", count=count)
                finally:
                    await session.stop()
                rate = count / answer["seconds"]
                run.results.add(test, "windlass", "jobs/s", "higher", rate, load.others, cpu_us(load, count))
                run.say(f"{test:24} {'windlass':14} {rate:12,.0f} jobs/s  others {load.others}")
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(filled.test, "windlass", str(error))
        run.say(f"{filled.test:24} windlass failed: {error}")
    finally:
        # No other test needs these databases, and they may take gigabytes.
        for side in (empty, filled):
            if session := run.sessions.pop(side.database, None):
                session.close()
                await make_database(run.servers.postgres, side.database)
