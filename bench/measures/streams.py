"""Test E: a thousand clients, each following the stream of a separate job, on one API process."""

import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from bench.http_server import WINDLASS, Api, Asker
from bench.machine import Watch, wait_until_quiet
from bench.measures.run import Run
from bench.process import code_of, spawn, stop
from bench.roster import WINDLASS as ROSTER
from bench.schema import make_schema_of
from bench.session import SystemFailed, make_database, tidy_up

MISSED = "E events missed"
DELAY = "E commit to client"
DELAY_P99 = "E commit to client, p99"
DELAY_CPU = "E streams, CPU of the API"
CLIENTS = 1_000
BATCH = 100
LIMIT_S = 120.0
WRITTEN = "SELECT job_id::text AS job, count(*) AS count FROM windlass.events GROUP BY job_id"


async def streams(run: Run) -> None:
    """All jobs run at once, as fast as one worker can; every stream has to tell every event of its job."""
    try:
        with ExitStack() as stack:
            sides = [await _side(run, stack, name, tree) for name, tree in run.versions()]
            for _ in range(run.repeats):
                for side in sides:
                    await _round(run, side)
    except (SystemFailed, RuntimeError) as error:
        run.results.fail(DELAY, ROSTER.name, str(error))
        run.say(f"{DELAY:24} failed: {error}")


@dataclass(frozen=True, slots=True)
class _Side:
    """One version: its database, its folder, its API."""

    name: str
    tree: Path
    dsn: str
    folder: Path
    api: Api


async def _side(run: Run, stack: ExitStack, name: str, tree: Path) -> _Side:
    dsn = await make_database(run.servers.postgres, f"windlass_streams_{name}")
    make_schema_of(tree, dsn)
    folder = run.servers.folder / "streams" / name
    api = Api(dsn, folder, tree=tree).start()
    stack.callback(api.stop)
    # It knows the recipes; closed at once, as it is not what is measured.
    Asker("bench.http_inside", dsn, log=folder / "inside.log", tree=tree).close()
    return _Side(name, tree, dsn, folder, api)


async def _round(run: Run, side: _Side) -> None:
    dsn, folder, api = side.dsn, side.folder, side.api
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
                **code_of(side.tree),
            }
            command = [WINDLASS, "worker", "bench.windlass_app"]
            worker = spawn(command, log=folder / "worker.log", environment=environment, folder=side.tree)
            told = load.ask(do="collect", limit_s=LIMIT_S, since=opened["now"])
        missed = await _missed(dsn, told["seen"])
    finally:
        load.close()
        if worker:
            stop([worker])
    others = watch.load.others
    cpu = {f"{role}_s": round(seconds, 2) for role, seconds in watch.load.cpu_s.items()}
    detail = {"clients": len(jobs), "events": told["events"], "out of order": told["faults"], **cpu}
    run.results.add(MISSED, side.name, "events", "lower", missed + told["faults"], others, detail)
    run.results.add(DELAY, side.name, "ms p50", "lower", told["p50_ms"], others, detail)
    run.results.add(DELAY_P99, side.name, "ms p99", "lower", told["p99_ms"], others, detail)
    run.results.add(DELAY_CPU, side.name, "us/event", "lower", watch.load.cpu_s["api"] / told["events"] * 1e6, others)
    run.say(
        f"{DELAY:24} {side.name:14} p50 {told['p50_ms']:.1f} ms, p99 {told['p99_ms']:.1f} ms, {missed} missed; {detail}"
    )
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
