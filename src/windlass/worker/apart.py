"""Runs suspects apart: steps that were running when workers died, and that may be the cause.

A suspect waits in the apart twin of its queue (`core/queue.py`), from which ordinary workers do not claim. A worker
that hears of a suspect starts an isolation worker: a child process that is a whole worker with a concurrency of 1. The
isolation worker claims from the twins, one step at a time, and ends when nothing is left. Innocent suspects complete
there.

    bell or slow poll ─► Suspects ─► process (its own worker id, lease and heartbeat) ─► claims from `q!`
                             ▲                     │ dies
                             └── signal, memory, last lines ─► Lost(company=0, evidence) ─► settle

What happens on failure:

- The process dies while a handler runs: this worker waited for it and reports the loss with the evidence. The child's
  heartbeat process reports too, a few seconds later, in case this worker died as well; the fence refuses that report.
- The process cannot start (the app's steps cannot be imported there, or are defined in a notebook): the suspects run in
  this worker, one at a time, while it runs nothing else. So a loss still proves which step caused it.
- This worker ends: the pipe to the child closes, and the child hands back its attempt.
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
from typing import Protocol

from windlass.core.outcome import Lost, Outcome, Released, Report
from windlass.core.queue import apart
from windlass.core.retry import Backoff
from windlass.engine.claim import Waiting
from windlass.telemetry.logs import clean
from windlass.worker.begun import Begun, read

# Two, so that a long innocent suspect does not block all others.
PROCESSES_MAX = 2
# All workers hear the same bell. Each waits a random part of this, then checks whether the suspect still waits.
SPREAD_S = 0.5
# After so many processes in a row that ended before a handler began, no process can run the steps.
FRUITLESS_MAX = 3
FRUITLESS = Backoff(1.0, 2.0, 10.0)
# The exit code of a process that found nothing to claim: another was faster, or the app lacks the steps.
FOUND_NOTHING = 75
# How long a process may take to hand back its attempt.
LEAVE_S = 5.0
LINES_MAX = 30
LINE_MAX_CHARS = 300
# How long the last lines of a dead process may take to arrive.
LINES_WITHIN_S = 0.5

_log = logging.getLogger("windlass.worker")


class Child(Protocol):
    """A process that was started for suspects.

    It promises to set `ended` once the process is over, however it ended, and not before.
    """

    @property
    def ended(self) -> asyncio.Future[Ended]:
        """How the process ended."""
        ...

    def tell_to_end(self) -> None:
        """Ask the process to hand back its attempt and to end."""
        ...

    def kill(self) -> None:
        """Kill the process. Does nothing if it is over."""
        ...


class Starts(Protocol):
    """Starts isolation workers: as processes (`Program`), or as simulated ones (`testing/sim/isolation.py`).

    The process claims from `twins`, one step at a time, and marks begun attempts in the table of `descriptor`.
    """

    def start(self, twins: Sequence[str], descriptor: int, loop: asyncio.AbstractEventLoop) -> Child:
        """Start a process. Raises OSError if that is impossible now."""
        ...


@dataclass(frozen=True, slots=True)
class Program:
    """How to start an isolation worker: a module to run, and the configuration line for its standard input."""

    module: str
    config: Callable[[Sequence[str], int], bytes]

    def start(self, twins: Sequence[str], descriptor: int, loop: asyncio.AbstractEventLoop) -> Child:
        """Start a process."""
        return _Process(self, twins, descriptor, loop)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its exit code (or minus the signal), its peak memory and its last lines."""

    code: int
    peak_bytes: int
    lines: tuple[str, ...]

    @property
    def how(self) -> str:
        """Describe the end in a sentence."""
        if self.code >= 0:
            return f"the worker process ended with exit code {self.code}"
        with contextlib.suppress(ValueError):
            return f"the worker process died with signal {-self.code} ({signal.Signals(-self.code).name})"
        return f"the worker process died with signal {-self.code}"


class Suspects:
    """The suspects of one worker's queues. Used from the worker's loop only.

    `look` finds queues with waiting steps, `report` takes a report, `wake` makes the worker check its turns.
    """

    def __init__(
        self,
        queues: Sequence[str],
        program: Starts | None,
        look: Callable[[Sequence[str]], Awaitable[Waiting]],
        report: Callable[[Report], None],
        wake: Callable[[], None],
        spread: Callable[[], float],
    ) -> None:
        self.twins = tuple(apart(queue) for queue in queues)
        # An isolation worker serves the twins themselves, and starts no process.
        self._is_here = set(self.twins) == set(queues)
        self._program = program
        self._look, self._report, self._wake, self._spread = look, report, wake, spread
        self._loop = asyncio.get_running_loop()
        self._keepers: set[asyncio.Task[None]] = set()
        self._processes: set[Child] = set()
        self._closing = asyncio.Event()
        # Where no process can start: whether suspects wait, since when one runs here, and when the next may.
        self._is_due = False
        self._began_s: float | None = None
        self._after_s = 0.0

    def heard(self, queues: Sequence[str], *, is_overdue: bool = False) -> None:
        """Take notice of queues that a bell or a poll named. Overdue suspects get a second process."""
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
        """Return whether it is a suspect's turn: the worker claims nothing else, and a suspect once nothing runs.

        Afterwards other steps have the worker for as long as the suspect had it.
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
        """Record a claim of `count` steps from the twins."""
        if count:
            self._began_s = self._loop.time()
        else:
            self._is_due = False

    async def close(self) -> None:
        """End the processes. They hand back their attempts."""
        self._closing.set()
        for process in self._processes:
            process.tell_to_end()
        if self._processes:
            await asyncio.wait([process.ended for process in self._processes], timeout=LEAVE_S)
        for process in self._processes:
            process.kill()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _keep(self, program: Starts) -> None:
        fruitless = 0
        await self._pause(self._spread() * SPREAD_S)
        while not self._is_closed and await self._is_waiting():
            ended, has_begun = await self._run(program)
            if ended == FOUND_NOTHING and not has_begun:
                # The next bell or poll starts another process.
                return
            fruitless = 0 if has_begun or ended == 0 else fruitless + 1
            if fruitless >= FRUITLESS_MAX:
                _log.warning("no process can run the suspects; this worker runs them, one at a time")
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
            return bool((await self._look(self.twins)).queues)
        except Exception as error:
            _log.warning("cannot check now whether suspects wait: %s", error)
            return False

    async def _run(self, program: Starts) -> tuple[int, bool]:
        """Run one process to its end. Returns its exit code, and whether it died while a step ran."""
        begun = Begun(1)
        try:
            process = program.start(self.twins, begun.descriptor, self._loop)
            self._processes.add(process)
            ended = await process.ended
            self._processes.discard(process)
            keys, _ = read(begun.descriptor)
        except OSError as error:
            _log.warning("cannot start a process for suspects now: %s", error)
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
        # The step is not at fault if a process did not end in time when asked.
        return Released() if self._is_closed else Lost(company, ended.how, ended.peak_bytes, ended.lines)


class _Process:
    """One isolation worker process. A thread waits for it, because only `wait4` reports its peak memory."""

    def __init__(
        self, program: Program, twins: Sequence[str], descriptor: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._loop = loop
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        # The new session keeps Ctrl-C in the terminal from the process: the worker decides when its children end.
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
        # The database URL may contain a password. No other process can read it from the pipe.
        with contextlib.suppress(OSError):
            self._popen.stdin.write(program.config(twins, descriptor) + b"\n")
            self._popen.stdin.flush()
        self._reader = threading.Thread(target=self._read, name="windlass-apart-lines", daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, name="windlass-apart", daemon=True).start()

    def tell_to_end(self) -> None:
        """Close the pipe, at which the process hands back its attempt and ends."""
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):
            self._popen.stdin.close()

    def kill(self) -> None:
        """Kill the process."""
        if not self.ended.done():
            os.kill(self._popen.pid, signal.SIGKILL)

    def _read(self) -> None:
        """Keep the last lines, and pass all lines on: they are part of this worker's log."""
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
        # The dead process's heartbeat holds the pipe too, and lives a little longer, so this does not wait for its end
        # of file.
        self._reader.join(LINES_WITHIN_S)
        unit = 1 if sys.platform == "darwin" else 1024
        ended = Ended(self._popen.returncode, usage.ru_maxrss * unit, tuple(self._lines))
        with contextlib.suppress(RuntimeError):  # the loop has ended: the worker is gone
            self._loop.call_soon_threadsafe(self._end, ended)

    def _end(self, ended: Ended) -> None:
        self.tell_to_end()
        if not self.ended.done():
            self.ended.set_result(ended)
