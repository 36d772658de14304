"""Runs suspects apart: steps with which workers died, and of which one may have been the cause.

A suspect waits in the apart twin of its queue (`core/queue.py`), from which ordinary workers do not claim. A worker
that hears of one starts an isolation worker: a child process that is a whole worker with a concurrency of 1. It claims
from the twins, one step at a time, and ends when there is nothing more. Innocent suspects complete there.

    bell or slow poll ─► Suspects ─► process (its own worker id, lease and heartbeat) ─► claims from `q!`
                             ▲                     │ dies
                             └── signal, memory, last lines ─► Lost(company=0, evidence) ─► settle

What happens on failure:

- The process dies while a handler runs: this worker waited for it and reports the loss with the evidence. The child's
  own heartbeat process reports too, a few seconds later, in case that this worker died as well; the fence refuses it.
- The process cannot start (the app's steps cannot be imported there, or are defined in a notebook): the suspects run in
  this worker itself, one at a time, while it runs nothing else. So a loss still proves something.
- This worker ends: the pipe to the child closes, and the child hands back what it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from windlass.core.outcome import Lost, Outcome, Released, Report
from windlass.core.queue import apart
from windlass.core.retry import Backoff
from windlass.telemetry.logs import clean
from windlass.worker.begun import Begun, read

# Two, so that a long innocent suspect does not hold up all others.
PROCESSES_MAX = 2
# All workers hear the same bell. Each waits a random part of this, and then looks whether the suspect still waits.
SPREAD_S = 0.5
# A process that ends again and again with nothing begun cannot run the steps.
FRUITLESS_MAX = 3
FRUITLESS = Backoff(1.0, 2.0, 10.0)
# The exit code of a process that found nothing to claim: another was faster, or the steps are not this app's.
FOUND_NOTHING = 75
# How long a process may take to hand back what it runs.
LEAVE_S = 5.0
LINES_MAX = 30
LINE_MAX_CHARS = 300
# How long the last lines of a dead process may take to arrive.
LINES_WITHIN_S = 0.5

_log = logging.getLogger("windlass.worker")


@dataclass(frozen=True, slots=True)
class Program:
    """How an isolation worker is started: a module to run, and the line that it is told on its standard input."""

    module: str
    config: Callable[[Sequence[str], int], bytes]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code (or minus the signal), its peak memory and its last lines."""

    code: int
    peak_bytes: int
    lines: tuple[str, ...]

    @property
    def how(self) -> str:
        """The end as a sentence."""
        if self.code >= 0:
            return f"the worker process ended with exit code {self.code}"
        with contextlib.suppress(ValueError):
            return f"the worker process died with signal {-self.code} ({signal.Signals(-self.code).name})"
        return f"the worker process died with signal {-self.code}"


class Suspects:
    """The suspects of one worker's queues. Used from the worker's loop only.

    `look` says whether any wait, `report` takes what there is to report, `wake` has the worker look whose turn it is.
    """

    def __init__(
        self,
        queues: Sequence[str],
        program: Program | None,
        look: Callable[[Sequence[str]], Awaitable[list[str]]],
        report: Callable[[Report], None],
        wake: Callable[[], None],
        chance: Callable[[], float],
    ) -> None:
        self.twins = tuple(apart(queue) for queue in queues)
        # An isolation worker serves the twins themselves, and starts nothing.
        self._is_here = set(self.twins) == set(queues)
        self._program = program
        self._look, self._report, self._wake, self._chance = look, report, wake, chance
        self._loop = asyncio.get_running_loop()
        self._keepers: set[asyncio.Task[None]] = set()
        self._processes: set[_Process] = set()
        self._closing = asyncio.Event()
        # Where no process can be started: whether suspects wait, since when one runs here, and when the next may.
        self._is_due = False
        self._began_s: float | None = None
        self._after_s = 0.0

    def heard(self, queues: Sequence[str], *, is_overdue: bool = False) -> None:
        """A bell or a look named these queues. Suspects that are overdue get a second process."""
        if self._is_here or self._is_closed or not any(queue in self.twins for queue in queues):
            return
        if self._program is None:
            self._is_due = True
            self._wake()
        elif len(self._keepers) < (PROCESSES_MAX if is_overdue else 1):
            keeper = self._loop.create_task(self._keep(self._program), name="windlass-apart")
            self._keepers.add(keeper)
            keeper.add_done_callback(self._keepers.discard)

    def turn(self, running: int) -> bool:
        """Whether it is a suspect's turn in this worker: nothing else is claimed, and a suspect once nothing runs.

        Afterwards the other work has the worker for as long as the suspect had it.
        """
        if not self._is_due:
            return False
        now_s = self._loop.time()
        if running == 0 and self._began_s is not None:
            self._after_s = now_s + max(1.0, now_s - self._began_s)
            self._began_s = None
            self._loop.call_at(self._after_s, self._wake)
        return self._began_s is not None or now_s >= self._after_s

    def took(self, count: int) -> None:
        """The worker has claimed from the twins."""
        if count:
            self._began_s = self._loop.time()
        else:
            self._is_due = False

    async def close(self) -> None:
        """End the processes; they hand back what they run."""
        self._closing.set()
        ends = [asyncio.wait_for(asyncio.shield(process.ended), LEAVE_S) for process in self._processes]
        for process in self._processes:
            process.tell_to_end()
        await asyncio.gather(*ends, return_exceptions=True)
        for process in self._processes:
            process.kill()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _keep(self, program: Program) -> None:
        fruitless = 0
        await self._pause(self._chance() * SPREAD_S)
        while not self._is_closed and await self._is_waiting():
            ended, has_begun = await self._run(program)
            if ended == FOUND_NOTHING and not has_begun:
                # The next bell or look starts another.
                return
            fruitless = 0 if has_begun or ended == 0 else fruitless + 1
            if fruitless >= FRUITLESS_MAX:
                _log.warning("no process can run the suspects; they run in this worker, one at a time")
                self._program, self._is_due = None, True
                self._wake()
                return
            if fruitless:
                await self._pause(FRUITLESS.wait_s(fruitless, 0.0))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    @property
    def _is_closed(self) -> bool:
        return self._closing.is_set()

    async def _is_waiting(self) -> bool:
        try:
            return bool(await self._look(self.twins))
        except Exception as error:
            _log.warning("it cannot be seen now whether suspects wait: %s", error)
            return False

    async def _run(self, program: Program) -> tuple[int, bool]:
        """One process from start to end; returns its exit code, and whether it died while a step ran."""
        begun = Begun(1)
        try:
            process = _Process(program, self.twins, begun.descriptor, self._loop)
            self._processes.add(process)
            ended = await process.ended
            self._processes.discard(process)
            keys, _ = read(begun.descriptor)
        except OSError as error:
            _log.warning("a process for suspects cannot be started now: %s", error)
            return -1, False
        finally:
            begun.close()
        for key in sorted(keys):
            self._report(Report(*key, self._outcome(len(keys) - 1, ended)))
        if keys and not self._is_closed:
            _log.warning("%s while it ran a suspect; peak memory %d bytes", ended.how, ended.peak_bytes)
        elif ended.code not in (0, FOUND_NOTHING) and not self._is_closed:
            _log.warning("%s with nothing begun; last lines: %s", ended.how, " | ".join(ended.lines[-3:]))
        return ended.code, bool(keys)

    def _outcome(self, company: int, ended: Ended) -> Outcome:
        # A process that did not end in time when it was told to is not the step's fault.
        return Released() if self._is_closed else Lost(company, ended.how, ended.peak_bytes, ended.lines)


class _Process:
    """One isolation worker. A thread waits for it, as only `wait4` tells how much memory it had."""

    def __init__(
        self, program: Program, twins: Sequence[str], descriptor: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        # A session of its own: Ctrl-C in the terminal is for the worker, which ends its children in its own time.
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", program.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            pass_fds=(descriptor,),
            start_new_session=True,
        )
        self.ended: asyncio.Future[Ended] = loop.create_future()
        assert self._popen.stdin is not None
        # The address of the database may hold a password: it goes through the pipe, where no other process reads it.
        with contextlib.suppress(OSError):
            self._popen.stdin.write(program.config(twins, descriptor) + b"\n")
            self._popen.stdin.flush()
        self._reader = threading.Thread(target=self._read, name="windlass-apart-lines", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name="windlass-apart", daemon=True).start()

    def tell_to_end(self) -> None:
        """Close the pipe; the process hands back what it runs."""
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):
            self._popen.stdin.close()

    def kill(self) -> None:
        """End it now."""
        if not self.ended.done():
            os.kill(self._popen.pid, signal.SIGKILL)

    def _read(self) -> None:
        """Keep the last lines, and pass all on: they are part of this worker's log."""
        assert self._popen.stdout is not None
        with self._popen.stdout as lines:
            for line in lines:
                with contextlib.suppress(OSError):
                    os.write(2, line)
                if text := clean(line.decode(errors="replace")).strip():
                    self._lines.append(text[:LINE_MAX_CHARS])

    def _wait(self) -> None:
        _, status, usage = os.wait4(self._popen.pid, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        # The heartbeat of the dead process has the pipe too, and lives a little longer: the end of the file is not
        # waited for.
        self._reader.join(LINES_WITHIN_S)
        unit = 1 if sys.platform == "darwin" else 1024
        ended = Ended(self._popen.returncode, usage.ru_maxrss * unit, tuple(self._lines))
        with contextlib.suppress(RuntimeError):  # the loop has ended: the worker is gone
            self._loop.call_soon_threadsafe(self._end, ended)

    def _end(self, ended: Ended) -> None:
        self.tell_to_end()
        if not self.ended.done():
            self.ended.set_result(ended)
