"""A worker as an app runs it, in a process: `python -m tests.worker.served DSN QUEUE FOLDER LEASE_S CONCURRENCY`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

from tests.worker.handlers import STEPS
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass


async def main(dsn: str, queue: str, folder: str, lease_s: str, concurrency: str) -> None:
    settings = Settings(database_url=dsn, home=Path(folder), lease_s=float(lease_s))
    async with Windlass.connect(dsn, settings=settings) as windlass:
        app = SimpleNamespace(steps=STEPS)
        worker = windlass.worker(app, queues=[queue], concurrency=int(concurrency))
        running = asyncio.create_task(worker.run(signals=True))
        await worker.ready.wait()
        print(worker.id, flush=True)
        await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
