"""Tasks that run attempts one after the other, so that a short handler does not cost a task.

A lane runs an attempt to its end and takes the next. More lanes start only when handlers really wait: a lane that takes
an attempt while others wait wakes one more lane, which finds nothing if the first was quick enough.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

# A lane that never waits yields to the loop at least this often, for bells, timers and commits.
SLICE_S = 0.005

T = TypeVar("T")


class Lanes(Generic[T]):
    """Runs `work` on every item that is put in, at most `count` at a time.

    `work` must not raise. It returns whether its task may run another item. The task may not if a handler may have used
    it, for example to attach a callback or a session.
    """

    def __init__(self, count: int, work: Callable[[T], Awaitable[bool]]) -> None:
        self._count = count
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._queue: deque[T] = deque()
        self._parked: list[asyncio.Future[None]] = []
        self._lanes: set[asyncio.Task[None]] = set()
        self._given_up: set[asyncio.Task[None]] = set()
        self._is_waking = False

    def put(self, item: T) -> None:
        """Run this item when a lane is free."""
        self._queue.append(item)
        self._wake()

    def take_back(self) -> list[T]:
        """Remove and return the items that no lane has begun."""
        left = list(self._queue)
        self._queue.clear()
        return left

    def give_up(self, lane: asyncio.Task[None]) -> None:
        """Replace a lane whose handler refuses to stop."""
        self._lanes.discard(lane)
        self._given_up.add(lane)
        self._wake()

    async def close(self) -> None:
        """Cancel every lane and wait until they have ended, but at most a second."""
        lanes = [*self._lanes, *self._given_up]
        for lane in lanes:
            lane.cancel()
        if lanes:
            await asyncio.wait(lanes, timeout=1)

    def _wake(self) -> None:
        if self._is_waking or not self._queue:
            return
        if self._parked:
            self._is_waking = True
            self._parked.pop().set_result(None)
        elif len(self._lanes) < self._count:
            self._is_waking = True
            lane = self._loop.create_task(self._lane(), name="windlass-lane")
            self._lanes.add(lane)
            lane.add_done_callback(self._ended)

    def _ended(self, lane: asyncio.Task[None]) -> None:
        self._lanes.discard(lane)
        self._given_up.discard(lane)
        if not lane.cancelled() and lane.exception() is not None:
            self._loop.call_exception_handler({"message": "a lane ended", "exception": lane.exception(), "task": lane})
        self._wake()

    async def _lane(self) -> None:
        queue, work, time = self._queue, self._work, self._loop.time
        while True:
            self._is_waking = False
            until_s = time() + SLICE_S
            while queue:
                item = queue.popleft()
                if queue:
                    self._wake()
                if not await work(item):
                    return
                del item
                if time() > until_s:
                    await asyncio.sleep(0)
                    until_s = time() + SLICE_S
            turn = self._loop.create_future()
            self._parked.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._parked:
                    self._parked.remove(turn)
                raise
