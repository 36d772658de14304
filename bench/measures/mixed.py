"""Test M: compares the plain steps of a plan that has a provider step with the steps of a plan without it."""

import asyncio
import time

import asyncpg

from bench import wide_app
from bench.external import LIMIT_S, Installation
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.session import SystemFailed, tidy_up
from windlass.app.windlass import Windlass
from windlass.recipe.recipe import Recipe

PLAIN = "M steps of a plain plan"
MIXED = "M steps beside a provider step"
PLANS = ((PLAIN, wide_app.plain), (MIXED, wide_app.mixed))
JOBS = 10
DONE = "SELECT coalesce(sum(steps_total - steps_open), 0) FROM windlass.jobs"
WARM = 1


async def mixed(run: Run) -> None:
    """Measure both plans in one installation, in turn."""
    jobs = run.count(JOBS, at_least=2)
    try:
        installation = await Installation.make(run.servers.postgres, run.servers.folder / "mixed", app="bench.wide_app")
        try:
            installation.start()
            processes = {"worker": [installation.worker_pid], "server": [run.servers.postgres.pid]}
            async with Windlass.connect(installation.dsn) as windlass:
                connection = await asyncpg.connect(installation.dsn)
                for _, recipe in PLANS:
                    await _rate(windlass, connection, recipe, WARM)
                for round_no in range(run.repeats):
                    # The table grows with every measurement, so the plans take turns in being second.
                    for test, recipe in PLANS if round_no % 2 else reversed(PLANS):
                        await tidy_up(installation.dsn)
                        wait_until_quiet(run.patience_s)
                        with Watch(processes) as watch:
                            rate = await _rate(windlass, connection, recipe, jobs)
                        cpu = cpu_us(watch.load, jobs * wide_app.PLAIN_STEPS)
                        run.results.add(test, "windlass", "steps/s", "higher", rate, watch.load.others, cpu)
                        run.say(f"{test:32} {rate:12,.0f} steps/s  others {watch.load.others}  {cpu}")
                await connection.close()
        finally:
            installation.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(MIXED, "windlass", str(error))
        run.say(f"{MIXED:32} failed: {error}")


async def _rate(windlass: Windlass, connection: asyncpg.Connection, recipe: Recipe, jobs: int) -> float:
    """Return the plain steps per second, from the submit to the last recorded end."""
    steps = jobs * wide_app.PLAIN_STEPS
    base = await connection.fetchval(DONE)
    started = time.monotonic()
    await windlass.submit_many(recipe, [{"n": n} for n in range(jobs)])
    while (done := await connection.fetchval(DONE) - base) < steps:
        if time.monotonic() - started > LIMIT_S:
            raise SystemFailed(f"only {done:,} of {steps:,} steps have ended")
        await asyncio.sleep(0.02)
    return steps / (time.monotonic() - started)
