"""The demo of `windlass up`: a job to watch, and a separate worker that a person may kill.

    up ──starts, watches──► demo worker (queue `demo`, a short lease) ──runs──► steps of `first-minute`
     └── the dead worker's heartbeat hands its steps back ────────────────────► the next demo worker

On failure:

- The worker is killed, from the console or from a shell: `up` starts another worker at once. It takes over the steps
  that the dead worker's heartbeat handed back. If the heartbeat was killed too, the steps come back when the short
  lease ends.
- The worker ends again and again: the pauses between starts grow, up to RESTART_MAX_S.
- `up` is stopped: the worker is told, hands back its running steps, and is killed if it takes too long.
- `up` is killed: the pipe to the worker closes, and the worker ends (`app/demo/worker.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import msgspec

from windlass.app.demo.worker import LEAVE_MAX_S, QUEUE, Config
from windlass.app.windlass import Windlass
from windlass.core.errors import WrongState
from windlass.core.states import JOB_TERMINAL, STEP_TERMINAL, JobState, StepState
from windlass.core.wait import WaitKind
from windlass.engine import control
from windlass.examples.first_minute import first_minute
from windlass.views import listing, read, workers
from windlass.views.listing import JobFilter
from windlass.views.read import StepView

# Short, so that a person who killed the worker sees the steps move before they look away.
LEASE_S = 4.0
RESTART_MIN_S = 0.25
RESTART_MAX_S = 10.0
# After a worker that lived this long, the next pause is a short one again.
STEADY_S = 5.0
LABELS = {"windlass": "demo"}
FORGOTTEN_MAX = 20

_log = logging.getLogger("windlass.process")


class Demo:
    """Runs the demo job and its worker. `job_id` is the newest demo job."""

    name = "demo"

    def __init__(self, windlass: Windlass) -> None:
        self._windlass = windlass
        self._process: asyncio.subprocess.Process | None = None
        self._killed: int | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.job_id: UUID | None = None

    @property
    def recipe(self) -> str:
        """The recipe of the demo job."""
        return first_minute.plan.recipe

    @property
    def can_kill(self) -> bool:
        """Tell whether a worker runs that `kill` could kill."""
        process = self._process
        return process is not None and process.returncode is None and process.pid != self._killed

    async def submit(self) -> UUID:
        """Submit a demo job. Cancel earlier demo jobs that only wait for a person: the person has moved on."""
        forgotten = await self._forgotten()
        job = await self._windlass.submit(first_minute, labels=LABELS)
        self.job_id = job.job_id
        await control.cancel_each(self._windlass.db, forgotten, reason="another demo was started", source="demo")
        return job.job_id

    async def _forgotten(self) -> list[UUID]:
        db = self._windlass.db
        wanted = JobFilter(None, tuple(set(JobState) - JOB_TERMINAL), self.recipe, LABELS)
        earlier, _ = await listing.find(db, wanted, FORGOTTEN_MAX)
        return [job_id for job_id in earlier if _only_waits(await read.steps(db, job_id))]

    async def kill(self) -> tuple[UUID, int]:
        """Send SIGKILL to the worker; return its id and process id. Raises WrongState while no worker runs."""
        process = self._process
        if process is not None and self.can_kill:
            found = await self._enlisted(process.pid)
            # During the query the process may have ended, or another request may have killed it.
            if found is not None and self._process is process and self.can_kill:
                self._killed = process.pid
                process.kill()
                return found, process.pid
        raise WrongState("the demo worker is being started", remedy="Try again in a second")

    async def _enlisted(self, pid: int) -> UUID | None:
        """Return the worker id of this process, once it holds a lease."""
        host = socket.gethostname()
        found = await workers.listing(self._windlass.db)
        mine = [one for one in found if one.pid == pid and one.host == host and one.lost_at is None]
        return next((one.id for one in mine if QUEUE in one.queues), None)

    def alive(self) -> float | None:
        """Return None: the lease of the worker tells it."""
        return None

    def ready(self) -> bool:
        """Tell whether the worker process runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the worker, and restart it when it ends."""
        self._keeper = asyncio.create_task(self._keep(), name="windlass-demo")

    async def stop(self) -> None:
        """End the worker for good."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), LEAVE_MAX_S + 1)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _keep(self) -> None:
        wait_s = RESTART_MIN_S
        while True:
            began_s = time.monotonic()
            try:
                self._process = process = await self._spawn()
            except OSError as error:
                _log.warning("the demo worker cannot be started now: %s", error)
            else:
                code = await process.wait()
                how = "was killed" if code == -signal.SIGKILL else f"ended with {code}"
                _log.warning("the demo worker (process %d) %s; another one is started", process.pid, how)
            is_steady = time.monotonic() - began_s >= STEADY_S
            wait_s = RESTART_MIN_S if is_steady else min(2 * wait_s, RESTART_MAX_S)
            await asyncio.sleep(wait_s)

    async def _spawn(self) -> asyncio.subprocess.Process:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        # A separate session: Ctrl-C in the terminal reaches only `up`, which then ends the worker.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "windlass.app.demo.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        assert process.stdin is not None
        # The database URL may hold a password. It goes through the pipe, where no other process can read it.
        process.stdin.write(msgspec.json.encode(Config.of(self._windlass, LEASE_S)) + b"\n")
        with contextlib.suppress(ConnectionError):  # the process died first; the wait for its end reports that
            await process.stdin.drain()
        return process


def _only_waits(steps: list[StepView]) -> bool:
    """Tell whether every step that could run next waits for a person."""
    here = [step for step in steps if step.state not in STEP_TERMINAL and step.state is not StepState.BLOCKED]
    return bool(here) and all((step.waiting_for or "").startswith(WaitKind.EVENT) for step in here)


@asynccontextmanager
async def demonstrating(windlass: Windlass) -> AsyncIterator[Demo]:
    """Yield a demo while the block lasts. `submit` makes its job, once a server runs; `start` starts its worker."""
    demo = Demo(windlass)
    try:
        yield demo
    finally:
        await demo.stop()
