"""SAQ on PostgreSQL, with its defaults (concurrency 10): the peer with the closest latency."""

import asyncio
import sys
from typing import Any

import uvloop
from saq import Queue

from bench.counter import tick
from bench.system import System, target

queue = Queue.from_url(target().dsn, name="default")


async def noop(context: dict[str, Any]) -> int:
    tick()
    return 1


settings = {"queue": queue, "functions": [noop], "concurrency": 10}


class Peer(System):
    """The submitting client."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def prepare(self) -> None:
        self._queue = Queue.from_url(target().dsn, name="default", max_size=20)
        self._loop.run_until_complete(self._queue.connect())

    def worker(self) -> list[str]:
        return [sys.executable, "-m", "saq", "bench.peers.saq.settings"]

    def submit(self, count: int) -> None:
        async def all_jobs() -> None:
            for _ in range(count):
                await self._queue.enqueue("noop")

        self._loop.run_until_complete(all_jobs())

    def roundtrip(self) -> None:
        self._loop.run_until_complete(self._queue.apply("noop", poll_interval=0.001))

    def close(self) -> None:
        self._loop.run_until_complete(self._queue.disconnect())
