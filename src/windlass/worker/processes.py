"""Processes for `cpu=True` handlers, started when first needed and replaced when one dies or is killed.

Each process has its own socket and its own reader thread here. So the death of one process (a crash, the kernel's
memory killer, our kill after a timeout) affects only the attempt that it was running.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from windlass.core.outcome import Cost, Failure, Fault, Outcome
from windlass.telemetry.logs import configured
from windlass.worker.child import Done, Said, Spent, Stop, Task
from windlass.worker.context import Words

_log = logging.getLogger("windlass.worker")


class ChildDied(Exception):
    """Raised when the process ended before its handler did."""


class _Process:
    """One child process: its pipe, and the attempt that it runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.is_dead = False
        self._done: asyncio.Future[Outcome | None] | None = None
        self._say: Callable[[Words], None] | None = None
        self._spend: Callable[[Cost], None] | None = None
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        with theirs:
            # The child has the same search path. The environment would pass it on to the handler's own child processes.
            path = [entry or os.getcwd() for entry in sys.path]
            descriptor = theirs.fileno()
            form, level = configured() or (None, logging.getLogger().getEffectiveLevel())
            program = (
                f"import sys; sys.path[:] = {path!r}; "
                f"from windlass.worker.child import main; "
                f"main({descriptor}, log_level={level}, log_format={form!r})"
            )
            self.popen = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.DEVNULL, pass_fds=(descriptor,)
            )
        self._connection = Connection(ours.detach())
        threading.Thread(target=self._read, name=f"windlass-cpu-{self.popen.pid}", daemon=True).start()

    async def run(
        self, task: Task, say: Callable[[Words], None], spend: Callable[[Cost], None] | None
    ) -> Outcome | None:
        """Run one attempt to its end."""
        done: asyncio.Future[Outcome | None] = self._loop.create_future()
        self._done, self._say, self._spend = done, say, spend
        try:
            await self.send(task)
            return await done
        finally:
            self._done = self._say = self._spend = None

    def send(self, message: Task | Stop) -> asyncio.Future[None]:
        """Send in a thread, because a big task fills the socket. If the process is dead, its reader notices."""
        return self._loop.run_in_executor(None, self._send, message)

    def _send(self, message: Task | Stop) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.send(message)

    def kill(self) -> None:
        """Kill the process. The reader sees the socket close and cleans up."""
        self.is_dead = True
        self.popen.kill()

    def _read(self) -> None:
        try:
            while True:
                self._post(self._hear, self._connection.recv())
        except (EOFError, OSError):
            pass
        except Exception:
            _log.exception("a cpu process sent something that cannot be read")
            self.popen.kill()
        self._connection.close()
        self.popen.wait()
        self._post(self._die)

    def _post(self, function: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The loop has ended: the worker is gone.
            self.popen.kill()

    def _hear(self, message: Said | Spent | Done) -> None:
        if isinstance(message, Said):
            if self._say is not None:
                self._say(message.words)
        elif isinstance(message, Spent):
            if self._spend is not None:
                self._spend(message.cost)
        elif self._done is not None and not self._done.done():
            self._done.set_result(message.outcome)

    def _die(self) -> None:
        self.is_dead = True
        if self._done is not None and not self._done.done():
            self._done.set_exception(ChildDied(f"the process ended with {self.popen.returncode}"))


class Processes:
    """The child processes of one worker, at most `count` at a time. Used from the worker's loop only."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._free = count
        self._idle: list[_Process] = []
        self._busy: list[_Process] = []
        self._line: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    async def enter(self) -> None:
        """Wait for a free process, first come, first served. Every `enter` needs its `leave`."""
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Release the process to the next waiting attempt."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def run(
        self,
        task: Task,
        say: Callable[[Words], None],
        on_start: Callable[[Any], None],
        spend: Callable[[Cost], None] | None = None,
    ) -> Outcome | None:
        """Run an attempt after `enter`. If this call is cancelled, the process is killed.

        `on_start` receives the process, for a later `stop`.
        """
        process = await self._take()
        self._busy.append(process)
        on_start(process)
        try:
            return await process.run(task, say, spend)
        except ChildDied:
            code = process.popen.returncode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return Failure(Fault("worker_process_died", f"the process of the handler died ({how})", "ChildDied"))
        except asyncio.CancelledError:
            process.kill()
            raise
        finally:
            self._busy.remove(process)
            if not process.is_dead:
                self._idle.append(process)

    @staticmethod
    def stop(process: Any) -> None:
        """Ask the handler in this process to stop. The handler may ignore it."""
        process.send(Stop())

    async def close(self) -> None:
        """Kill every process. Idle processes hold nothing, and the attempts of busy ones are over."""
        self._is_closed = True
        everyone = [*self._idle, *self._busy]
        for process in everyone:
            process.kill()
        self._idle.clear()
        await asyncio.gather(*(asyncio.to_thread(process.popen.wait) for process in everyone))

    async def _take(self) -> _Process:
        while self._idle:
            process = self._idle.pop()
            if not process.is_dead and process.popen.poll() is None:
                return process
        starting = self._loop.run_in_executor(None, _Process, self._loop)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._adopt)
            raise

    def _adopt(self, starting: asyncio.Future[_Process]) -> None:
        """Keep a process whose caller was cancelled before it started."""
        if not starting.cancelled() and starting.exception() is None:
            process = starting.result()
            if self._is_closed:
                process.kill()
            else:
                self._idle.append(process)
