"""Simulated isolation workers, which `worker/apart.py` starts in place of a real process.

The child is the real worker on the apart twins of the queues, one step at a time. It ends by the code of the real
process (`app/apart_worker.py`), when it has no work or when its parent is gone.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from signal import SIGKILL

from windlass.app.apart_worker import LEAVE_MAX_S, end_when_idle
from windlass.testing.sim.scheduler import Process, Scheduler
from windlass.testing.sim.worker import WatchedBegun, WatchedWorker
from windlass.worker.apart import FOUND_NOTHING, Ended

REFUSED_CHANCE = 0.1

# Makes the worker of a child process.
Hire = Callable[[Process, Sequence[str], WatchedBegun], WatchedWorker]


class SimChild:
    """One isolation worker as a simulated process. `parent` is the loop of the worker that started it."""

    def __init__(
        self,
        scheduler: Scheduler,
        process: Process,
        hire: Callable[[], WatchedWorker],
        parent: asyncio.AbstractEventLoop,
    ) -> None:
        self._scheduler = scheduler
        self._process = process
        self._hire = hire
        self._parent = parent
        self._code = -SIGKILL
        self.worker: WatchedWorker | None = None
        self.ended: asyncio.Future[Ended] = parent.create_future()

    async def main(self) -> None:
        """Run the process to its end."""
        worker = self.worker = self._hire()
        ending = asyncio.get_running_loop().create_task(end_when_idle(worker))
        try:
            await worker.run()
        finally:
            ending.cancel()
        self._code = 0 if worker.ended else FOUND_NOTHING

    def over(self) -> None:
        """Tell the parent that the process is dead."""
        self._parent.call_soon(self._end)

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(Ended(self._code, 0, ()))

    def tell_to_end(self) -> None:
        """Close the pipe from the parent, as the parent's death does."""
        loop = self._process.loop
        if self._process.is_dead or loop is None:
            return
        if self.worker is not None:
            loop.call_soon(partial(self.worker.stop, now=True))
        loop.call_later(LEAVE_MAX_S, self.kill)

    def kill(self) -> None:
        """Kill the process."""
        if not self._process.is_dead:
            self._scheduler.kill(self._process)


class SimProgram:
    """Starts simulated isolation workers for one worker process, and ends them with it."""

    def __init__(
        self, scheduler: Scheduler, rng: random.Random, name: str, hire: Hire, buried: Callable[[SimChild], None]
    ):
        self._scheduler = scheduler
        self._rng = rng
        self._name = name
        self._hire = hire
        self._buried = buried
        self.children: list[SimChild] = []

    def start(self, twins: Sequence[str], descriptor: int, loop: asyncio.AbstractEventLoop) -> SimChild:
        """Start a child; sometimes the system refuses."""
        if self._rng.random() < REFUSED_CHANCE:
            raise OSError("no more processes")
        process = Process(f"{self._name} apart")
        begun = WatchedBegun(1, os.dup(descriptor))
        child = SimChild(self._scheduler, process, lambda: self._hire(process, twins, begun), loop)

        def over() -> None:
            self.children.remove(child)
            self._buried(child)
            child.over()

        process.restart = over
        process.is_busy = lambda: child.worker is not None and child.worker.is_asking()
        self.children.append(child)
        self._scheduler.start(process, child.main, self._rng.uniform(0.0, 1.0))
        return child

    def orphan(self) -> None:
        """Tell the children to end, because the worker that started them is dead."""
        for child in self.children:
            child.tell_to_end()
