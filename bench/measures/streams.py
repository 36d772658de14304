"""Test E: a thousand clients, each following the stream of a job of its own, on one API process."""

import subprocess

import asyncpg

from bench.http_server import WINDLASS, Api, Asker
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run
from bench.process import spawn, stop
from bench.roster import WINDLASS as ROSTER
from bench.schema import make_schema
from bench.session import SystemFailed, make_database, tidy_up

MISSED = "E events missed"
DELAY = "E commit to client"
DELAY_P99 = "E commit to client, p99"
CLIENTS = 1_000
BATCH = 100
LIMIT_S = 120.0
WRITTEN = "SELECT job_id::text AS job, count(*) AS count FROM windlass.events GROUP BY job_id"


async def streams(run: Run) -> None:
    """All jobs run at once, as fast as one worker can; every stream has to tell every event of its job."""
    dsn = await make_database(run.servers.postgres, "windlass_streams")
    folder = run.servers.folder / "streams"
    try:
        await make_schema(dsn)
        api = Api(dsn, folder).start()
        try:
            # It knows the recipes; closed at once, as it is not what is measured.
            Asker("bench.http_inside", dsn, log=folder / "inside.log").close()
            for _ in range(run.repeats):
                await _round(run, dsn, api)
        finally:
            api.stop()
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(DELAY, ROSTER.name, str(error))
        run.say(f"{DELAY:24} failed: {error}")


async def _round(run: Run, dsn: str, api: Api) -> None:
    folder = run.servers.folder / "streams"
    load = Asker("bench.http_load", log=folder / "load.log")
    worker: subprocess.Popen[bytes] | None = None
    try:
        jobs = _submit(load, api, run.count(CLIENTS))
        opened = load.ask(do="follow", port=api.port, key=api.key, jobs=jobs)
        wait_until_quiet(run.patience_s)
        with Watch({"client": [load.pid], "api": [api.pid], "server": [run.servers.postgres.pid]}) as watch:
            environment = {
                "WINDLASS_DATABASE_URL": dsn,
                "WINDLASS_HOME": str(folder),
                "BENCH_COUNTER": str(folder / "counter.bin"),
            }
            worker = spawn(
                [WINDLASS, "worker", "bench.windlass_app"], log=folder / "worker.log", environment=environment
            )
            told = load.ask(do="collect", limit_s=LIMIT_S, since=opened["now"])
        missed = await _missed(dsn, told["seen"])
    finally:
        load.close()
        if worker:
            stop([worker])
    others = watch.load.others
    cpu = {f"{role}_s": round(seconds, 2) for role, seconds in watch.load.cpu_s.items()}
    detail = {"clients": len(jobs), "events": told["events"], "out of order": told["faults"], **cpu}
    run.results.add(MISSED, ROSTER.name, "events", "lower", missed + told["faults"], others, detail)
    run.results.add(DELAY, ROSTER.name, "ms p50", "lower", told["p50_ms"], others, detail)
    run.results.add(DELAY_P99, ROSTER.name, "ms p99", "lower", told["p99_ms"], others, detail)
    run.say(f"{DELAY:24} p50 {told['p50_ms']:.1f} ms, p99 {told['p99_ms']:.1f} ms, {missed} missed; {detail}")
    await tidy_up(dsn)


def _submit(load: Asker, api: Api, count: int) -> list[str]:
    job = {"recipe": "three", "inputs": {"n": 1}}
    sizes = [min(BATCH, count - start) for start in range(0, count, BATCH)]
    told = load.ask(
        do="post", port=api.port, key=api.key, path="/jobs/batch", bodies=[{"jobs": [job] * size} for size in sizes]
    )
    return [item["job_id"] for answer in told["answers"] for item in answer["items"]]


async def _missed(dsn: str, seen: dict[str, int]) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(WRITTEN)
    finally:
        await connection.close()
    written = {row["job"]: row["count"] for row in rows}
    return sum(abs(written[job] - count) for job, count in seen.items())
