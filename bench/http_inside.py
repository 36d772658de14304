"""The baseline for HTTP: a Python program submits the same jobs, with the same concurrency."""

import asyncio
import json
import sys
import time
from typing import Any

import uvloop

from bench import windlass_app
from windlass.app.windlass import Windlass


async def submit(windlass: Windlass, connections: int, count: int, batch: int) -> dict[str, Any]:
    """Submit `count` jobs from that many tasks, one or `batch` per call."""
    todo = iter(range(count // batch))

    async def work() -> None:
        for _ in todo:
            if batch == 1:
                await windlass.submit(windlass_app.one, n=1)
            else:
                await windlass.submit_many(windlass_app.one, [{"n": 1}] * batch)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    return {"seconds": time.perf_counter() - started}


async def serve(dsn: str) -> None:
    """Answer requests until standard input ends."""
    loop = asyncio.get_running_loop()
    async with Windlass.connect(dsn) as windlass:
        await windlass.register(windlass_app.one, windlass_app.three)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await submit(windlass, **json.loads(line))), flush=True)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
