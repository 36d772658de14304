"""A measured worker in a process of its own: `python -m tests.telemetry.process DSN QUEUE FOLDER [TRACES]`.

It logs JSON to standard error, and says its worker id when it is ready.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from windlass.app.entropy import Ids
from windlass.app.observing import observing
from windlass.app.settings import Settings
from windlass.core.plan import Node, Plan
from windlass.core.retry import Retry
from windlass.engine.submit import Submission, submit
from windlass.recipe.evaluator import Evaluator
from windlass.recipe.step import step
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.plans import store_plan
from windlass.telemetry import logs
from windlass.worker.context import context
from windlass.worker.worker import Worker

ROOT = Path(__file__).parents[2]


def _log() -> int:
    logging.getLogger("somebody.else").warning("from a library")
    context().log.warning("from the handler")
    return 1


@step
async def log_here() -> int:
    return _log()


@step
def log_in_thread() -> int:
    return _log()


@step(cpu=True)
def log_in_process() -> int:
    return _log()


@step
async def tick() -> int:
    await asyncio.sleep(0.005)
    return 1


@step
async def span() -> int:
    from opentelemetry import trace

    with trace.get_tracer("of the handler").start_as_current_span("inner"):
        await asyncio.sleep(0)
    return 1


@step(retry=Retry(max_attempts=1))
async def fail() -> int:
    raise ValueError("no reel")


STEPS = {one.name: one for one in (log_here, log_in_thread, log_in_process, tick, span, fail)}


def plan(recipe: str, *steps: tuple[str, str, str]) -> Plan:
    """Steps one after the other, each as (name, what runs, queue)."""
    nodes = []
    for place, (name, run, queue) in enumerate(steps):
        needs = (steps[place - 1][0],) if place else ()
        nodes.append(Node(name=name, run=run, queue=queue, needs=needs, with_={}, retry=STEPS[run].asks.retry))
    return Plan(recipe=recipe, nodes=tuple(nodes))


async def submitted(db: Database, made: Plan, count: int = 1, request_id: str | None = None) -> list[UUID]:
    """So many jobs of a plan."""
    await store_plan(db, made)
    ids = Ids()
    jobs = [Submission(made, {}, ids.new(), correlation_id=request_id) for _ in range(count)]
    await submit(db, jobs)
    return [job.job_id for job in jobs]


@asynccontextmanager
async def worker_process(
    dsn: str, queue: str, folder: Path, *traces: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, UUID]]:
    """A worker that is ready; the caller ends it, or it is killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.telemetry.process", dsn, queue, str(folder), *traces),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        limit=16 * 1024 * 1024,
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        yield process, UUID(line.decode().strip())
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def main(dsn: str, queue: str, folder: str, traces: str | None = None) -> None:
    logs.configure("json", "warning")
    db = await Database.open(dsn)
    settings = Settings(home=Path(folder), traces=traces)
    async with observing(db, settings, "worker") as meters:
        worker = Worker(
            db,
            STEPS,
            artifacts=FolderArtifacts(folder),
            resolver=Evaluator(),
            ids=Ids(),
            spread=random.random,
            queues=[queue],
            concurrency=10,
            processes=1,
            dsn=dsn,
            observer=meters,
        )
        running = asyncio.create_task(worker.run(signals=True))
        await worker.ready.wait()
        print(worker.id, flush=True)
        await running
    await db.close()
    print("opentelemetry" if "opentelemetry" in sys.modules else "light", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
