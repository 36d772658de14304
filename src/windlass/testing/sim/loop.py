"""The event loop of a simulated process: real asyncio tasks on virtual time.

The worker needs asyncio: tasks, events, timeouts, cancellation. A `SimLoop` provides them, and the seeded scheduler
decides when the loop runs. Ready callbacks run in their order until none is left. Timers are due by the scheduler's
clock. The only I/O is the database's, which waits at a *point* until the scheduler chooses it:

    task ─► point() ──────────► chosen by the seed ─► real(…) ─► the scheduler awaits it on the real loop ─► task
    task ─► asyncio.sleep(5) ─► a timer of this loop ─► due when virtual time is there ─► task

A killed process is never resumed: no `finally` of its tasks runs before the run is over.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import warnings
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

# A closed coroutine may await this often in its `finally` blocks.
_WAITS_MAX = 100

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SimLoop(asyncio.AbstractEventLoop):
    """An asyncio loop on virtual time. `now` is the scheduler's clock; `on_error` gets exceptions that no task should
    raise.
    """

    def __init__(self, now: Callable[[], float], on_error: Callable[[str], None]) -> None:
        self._now = now
        self._on_error = on_error
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self._asked: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        # In order, so that closing them is the same in every run.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.is_dead = False

    # Called by the scheduler.

    def due_at(self) -> float:
        """Return when the loop has work."""
        if self._ready:
            return -math.inf
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else math.inf

    async def go_on(self) -> None:
        """Run until every task waits for time, or at a point."""
        now = self._now()
        while self._timers and self._timers[0][0] <= now:
            self._ready.append(heapq.heappop(self._timers)[2])
        while True:
            self._run_ready()
            if self.is_dead or not self._asked:
                return
            call, answer = self._asked.popleft()
            try:
                result = await call()
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(result)

    def _run_ready(self) -> None:
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while self._ready and not self.is_dead:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(before)

    def clear(self) -> None:
        """Close the tasks of the process; nothing that they do meanwhile counts."""
        self.is_dead = True
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            with warnings.catch_warnings():
                # Coroutines created while closing are never awaited.
                warnings.simplefilter("ignore", RuntimeWarning)
                # Tasks created while closing are closed before they begin.
                while self._tasks:
                    task, _ = self._tasks.popitem()
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    _close(task.get_coro())
        finally:
            events._set_running_loop(before)
        self._ready.clear()
        self._timers.clear()

    # Called by the simulated database.

    async def real(self, call: Callable[[], Awaitable[T]]) -> T:
        """Await a call on the real loop; the simulation stands still meanwhile."""
        answer: asyncio.Future[T] = self.create_future()
        self._asked.append((call, answer))
        return await answer

    # The interface that asyncio needs.

    def time(self) -> float:
        """Return the virtual time."""
        return self._now()

    def get_debug(self) -> bool:
        """Return False: there is no debug mode."""
        return False

    def is_running(self) -> bool:
        """Tell whether the process lives."""
        return not self.is_dead

    def is_closed(self) -> bool:
        """Tell whether the process is dead."""
        return self.is_dead

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run this after the callbacks that are ready now."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    # There is only one thread.
    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run this after this much virtual time."""
        return self.call_at(self._now() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run this at that virtual time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is dropped when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Return a task of this loop."""
        if self.is_dead:
            coro.close()
            raise RuntimeError("the process is dead")
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report the error, since no other handler would."""
        if not self.is_dead:
            self._on_error(f"{context.get('message')}: {context.get('exception')!r}")


def here() -> SimLoop | None:
    """Return the running simulated loop; None in a process that is a plain coroutine."""
    loop = events._get_running_loop()
    return loop if isinstance(loop, SimLoop) else None


def _close(body: Any) -> None:
    """Close a coroutine, even if its `finally` blocks await."""
    for _ in range(_WAITS_MAX):
        try:
            body.close()
        except RuntimeError:
            continue
        except BaseException:
            return
        return
