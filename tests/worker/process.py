"""A worker in a process of its own: `python -m tests.worker.process DSN QUEUE FOLDER LEASE_S [CONCURRENCY]`."""

from __future__ import annotations

import asyncio
import random
import sys

from tests.worker.handlers import STEPS
from windlass.app.entropy import Ids
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.worker.worker import Worker


async def main(dsn: str, queue: str, folder: str, lease_s: str, concurrency: str = "10") -> None:
    db = await Database.open(dsn)
    worker = Worker(
        db,
        STEPS,
        artifacts=FolderArtifacts(folder),
        resolver=Evaluator(),
        ids=Ids(),
        spread=random.random,
        queues=[queue],
        concurrency=int(concurrency),
        processes=1,
        dsn=dsn,
        lease_s=float(lease_s),
    )
    running = asyncio.create_task(worker.run(signals=True))
    await worker.ready.wait()
    print(worker.id, flush=True)
    await running
    await db.close()
    print("ended", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
