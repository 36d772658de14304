"""Test S: submits over HTTP, one a request and a hundred a request, beside the same by a Python program."""

import asyncpg

from bench.http_server import Api, Asker
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run, cpu_us
from bench.schema import make_schema
from bench.session import SystemFailed, make_database, tidy_up

ONE = "S submits"
BATCH = "S submits, 100 a request"
HTTP, INSIDE = "windlass", "in process"
CONNECTIONS = 64
BATCH_CONNECTIONS = 8
JOBS = {1: 20_000, 100: 60_000}
EMPTY = "TRUNCATE windlass.jobs, windlass.steps, windlass.events, windlass.limits"


async def http(run: Run) -> None:
    """Jobs a second that are durable and answered, and the CPU that each took."""
    dsn = await make_database(run.servers.postgres, "windlass_http")
    folder = run.servers.folder / "http"
    try:
        await make_schema(dsn)
        api = Api(dsn, folder).start()
        try:
            load = Asker("bench.http_load", log=folder / "load.log")
            inside = Asker("bench.http_inside", dsn, log=folder / "inside.log")
            try:
                await _rounds(run, dsn, api, load, inside)
            finally:
                load.close()
                inside.close()
        finally:
            api.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(ONE, HTTP, str(error))
        run.say(f"{ONE:24} failed: {error}")


async def _rounds(run: Run, dsn: str, api: Api, load: Asker, inside: Asker) -> None:
    address = {"port": api.port, "key": api.key}
    roles = {"client": [load.pid, inside.pid], "api": [api.pid], "server": [run.servers.postgres.pid]}
    for connections, batch in ((CONNECTIONS, 1), (BATCH_CONNECTIONS, 100)):
        # Once unmeasured: connections are opened, plans are made.
        inside.ask(connections=connections, count=20 * batch, batch=batch)
        load.ask(do="submit", **address, connections=connections, count=20 * batch, batch=batch)
    for _ in range(run.repeats):
        for test, connections, batch in ((ONE, CONNECTIONS, 1), (BATCH, BATCH_CONNECTIONS, 100)):
            count = max(batch * connections, run.count(JOBS[batch]) // batch * batch)
            work = {"connections": connections, "count": count, "batch": batch}
            for system in (INSIDE, HTTP):
                await _empty(dsn)
                wait_until_quiet(run.patience_s)
                with Watch(roles) as watch:
                    answer = inside.ask(**work) if system == INSIDE else load.ask(do="submit", **address, **work)
                rate = count / answer["seconds"]
                detail = {**answer, **cpu_us(watch.load, count)}
                run.results.add(test, system, "jobs/s", "higher", rate, watch.load.others, detail)
                run.say(f"{test:24} {system:14} {rate:12,.0f} jobs/s  others {watch.load.others}  {detail}")


async def _empty(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(EMPTY)
    finally:
        await connection.close()
    await tidy_up(dsn)
