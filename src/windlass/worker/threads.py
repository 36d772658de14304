"""Threads for plain handlers, started when needed and kept for the next handler.

The worker's concurrency bounds the number of busy threads. A thread cannot be killed. A thread whose attempt ran out of
time is written off: it gets no further work, and another thread takes its place. Threads are daemons, so a handler that
hangs for ever cannot keep the process from ending.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any


class _Thread:
    """One thread and the queue from which it takes its work."""

    __slots__ = ("box", "is_written_off")

    def __init__(self) -> None:
        self.box: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self.is_written_off = False


class _Call:
    __slots__ = ("done", "function")

    def __init__(self, function: Callable[[], Any], done: asyncio.Future[Any]) -> None:
        self.function = function
        self.done = done


class Threads:
    """The threads of one worker. Used from the worker's loop only."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: list[_Thread] = []
        self._count = 0
        self._is_closed = False

    @property
    def count(self) -> int:
        """The number of threads, without written-off ones."""
        return self._count

    async def run(self, function: Callable[[], Any]) -> Any:
        """Call `function` in a thread. If this is cancelled, the thread is written off and its result ignored."""
        thread = self._idle.pop() if self._idle else self._start()
        call = _Call(function, self._loop.create_future())
        thread.box.put(call)
        try:
            result = await call.done
        except asyncio.CancelledError:
            self._write_off(thread)
            raise
        except BaseException:
            self._keep(thread)
            raise
        self._keep(thread)
        return result

    def close(self) -> None:
        """End the idle threads. Busy threads end after their call, or with the process."""
        self._is_closed = True
        for thread in self._idle:
            thread.box.put(None)
        self._idle.clear()

    def _keep(self, thread: _Thread) -> None:
        if self._is_closed:
            thread.box.put(None)
        else:
            self._idle.append(thread)

    def _write_off(self, thread: _Thread) -> None:
        thread.is_written_off = True
        self._count -= 1
        thread.box.put(None)

    def _start(self) -> _Thread:
        thread = _Thread()
        self._count += 1
        name = f"windlass-step-{self._count}"
        threading.Thread(target=_work, args=(self._loop, thread), name=name, daemon=True).start()
        return thread


def _work(loop: asyncio.AbstractEventLoop, thread: _Thread) -> None:
    while (call := thread.box.get()) is not None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = call.function()
        except BaseException as raised:
            error = raised
        if thread.is_written_off:
            return
        try:
            loop.call_soon_threadsafe(_finish, call.done, result, error)
        except RuntimeError:
            # The loop has ended in the meantime: nothing waits for the result.
            return
        del call, result, error


def _finish(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    elif isinstance(error, StopIteration):
        # A future cannot carry a StopIteration.
        done.set_exception(RuntimeError(f"the handler raised StopIteration({error.value!r})"))
    else:
        done.set_exception(error)
