"""Test S: submits over HTTP, one and a hundred per request, beside the same submits in a Python program."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from bench.http_server import Api, Asker
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.schema import make_schema_of
from bench.session import SystemFailed, make_database, tidy_up

ONE = "S submits"
# CPU time of the API process: other load on the machine disturbs it less than the rate.
ONE_CPU = "S submits, CPU of the API"
BATCH = "S submits, 100 a request"
HTTP, INSIDE = "windlass", "in process"
CONNECTIONS = 64
BATCH_CONNECTIONS = 8
JOBS = {1: 20_000, 100: 60_000}
EMPTY = "TRUNCATE windlass.jobs, windlass.steps, windlass.events, windlass.limits"


@dataclass(frozen=True, slots=True)
class _Side:
    """One version: its database, its API, and the program that submits in process."""

    name: str
    dsn: str
    api: Api
    inside: Asker

    def submit(self, load: Asker, **work: int) -> dict[str, float]:
        return load.ask(do="submit", port=self.api.port, key=self.api.key, **work)


async def http(run: Run) -> None:
    """Jobs a second that are durable and answered, and the CPU that each took."""
    folder = run.servers.folder / "http"
    folder.mkdir(parents=True)
    try:
        with ExitStack() as stack:
            load = Asker("bench.http_load", log=folder / "load.log")
            stack.callback(load.close)
            sides = [await _side(run, stack, name, tree) for name, tree in run.versions()]
            await _rounds(run, sides, load)
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(ONE, HTTP, str(error))
        run.say(f"{ONE:24} failed: {error}")


async def _side(run: Run, stack: ExitStack, name: str, tree: Path) -> _Side:
    dsn = await make_database(run.servers.postgres, f"windlass_http_{name}")
    make_schema_of(tree, dsn)
    folder = run.servers.folder / "http" / name
    api = Api(dsn, folder, tree=tree).start()
    stack.callback(api.stop)
    inside = Asker("bench.http_inside", dsn, log=folder / "inside.log", tree=tree)
    stack.callback(inside.close)
    return _Side(name, dsn, api, inside)


async def _rounds(run: Run, sides: list[_Side], load: Asker) -> None:
    for side in sides:
        for connections, batch in ((CONNECTIONS, 1), (BATCH_CONNECTIONS, 100)):
            # Once unmeasured: connections are opened, plans are made.
            work = {"connections": connections, "count": 20 * batch, "batch": batch}
            side.inside.ask(**work)
            side.submit(load, **work)
    for _ in range(run.repeats):
        for test, connections, batch in ((ONE, CONNECTIONS, 1), (BATCH, BATCH_CONNECTIONS, 100)):
            count = max(batch * connections, run.count(JOBS[batch]) // batch * batch)
            work = {"connections": connections, "count": count, "batch": batch}
            await _measure(run, test, sides[-1], None, work)
            for side in sides:
                await _measure(run, test, side, load, work)


async def _measure(run: Run, test: str, side: _Side, load: Asker | None, work: dict[str, int]) -> None:
    """Submit once, over HTTP or, without a load, in process."""
    await _empty(side.dsn)
    wait_until_quiet(run.patience_s)
    client = side.inside if load is None else load
    with Watch({"client": [client.pid], "api": [side.api.pid], "server": [run.servers.postgres.pid]}) as watch:
        answer = side.inside.ask(**work) if load is None else side.submit(load, **work)
    system, count, others = INSIDE if load is None else side.name, work["count"], watch.load.others
    rate, spent = count / answer["seconds"], cpu_us(watch.load, count)
    run.results.add(test, system, "jobs/s", "higher", rate, others, {**answer, **spent})
    if load is not None and test == ONE:
        run.results.add(ONE_CPU, system, "us/job", "lower", spent["api_us"], others)
    run.say(f"{test:24} {system:14} {rate:12,.0f} jobs/s  others {others}  {answer | spent}")


async def _empty(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(EMPTY)
    finally:
        await connection.close()
    await tidy_up(dsn)
