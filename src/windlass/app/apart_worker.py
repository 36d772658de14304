"""An isolation worker as a process: it runs steps that may have killed a worker, one at a time, and then ends.

It must not outlive the worker that started it. Its standard input is a pipe from that worker. One line tells what to
run and where the database is. When the pipe closes, for any reason, the process hands back its running steps and ends.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from windlass.app.apart import Config
from windlass.app.windlass import Windlass
from windlass.telemetry.logs import configure
from windlass.worker.apart import FOUND_NOTHING
from windlass.worker.begun import Begun
from windlass.worker.handler import StepLike
from windlass.worker.worker import Worker

POOL_MAX = 2
# The process ends after this long without work: the next suspect may come in a minute or never.
IDLE_S = 1.0
# For this long, its heartbeat leaves the report of its death to the worker that waits for it.
YIELD_S = 5.0
# Running steps get this long to be handed back; then the process ends without that.
LEAVE_MAX_S = 3.0


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    function: Callable[..., Any]
    is_cpu: bool


@dataclass(frozen=True, slots=True)
class _App:
    steps: Mapping[str, StepLike]


async def _serve(config: Config) -> int:
    """Run suspects until none is left; returns the exit code."""
    steps = {one.name: _Step(one.name, one.address.load(), one.is_cpu) for one in config.handlers}
    async with Windlass.connect(config.dsn, settings=config.settings, pool_max=POOL_MAX) as windlass:
        begun = Begun(1, config.begun)
        worker = windlass.worker(_App(steps), queues=config.queues, concurrency=1, begun=begun, yield_s=YIELD_S)
        loop = asyncio.get_running_loop()
        threading.Thread(target=_end_with_parent, args=(loop, worker), daemon=True).start()
        ending = loop.create_task(end_when_idle(worker))
        try:
            await worker.run(signals=True)
        finally:
            ending.cancel()
        return 0 if worker.ended else FOUND_NOTHING


async def end_when_idle(worker: Worker) -> None:
    """Stop the worker after IDLE_S without work."""
    loop = asyncio.get_running_loop()
    await worker.ready.wait()
    busy_s, ended = loop.time(), 0
    while loop.time() < busy_s + IDLE_S:
        if worker.running or worker.ended != ended:
            busy_s, ended = loop.time(), worker.ended
        await asyncio.sleep(IDLE_S / 10)
    worker.stop()


def _end_with_parent(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    """Wait in a separate thread until the pipe closes. A handler that blocks the loop cannot block this thread."""
    while sys.stdin.buffer.read(4096):
        pass
    try:
        loop.call_soon_threadsafe(lambda: worker.stop(now=True))
    except RuntimeError:
        return  # the loop is closed: the process is ending
    time.sleep(LEAVE_MAX_S)
    os._exit(1)


def _convert(kind: type, value: Any) -> Any:
    return Path(value) if issubclass(kind, Path) else value


def main() -> None:
    """Run until no work is left, or until told to end."""
    # A crash in C code leaves the Python stack on standard error, which is kept as evidence.
    faulthandler.enable()
    line = sys.stdin.buffer.readline()
    if not line:
        return  # the worker that started this process was gone before it could send a line
    config = msgspec.json.decode(line, type=Config, dec_hook=_convert)
    configure(config.log_format, config.log_level)
    sys.exit(uvloop.run(_serve(config)))


if __name__ == "__main__":
    main()
