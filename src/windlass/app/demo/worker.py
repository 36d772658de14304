"""The demo's worker as a process: it serves the queue of the first minute until it is told to end, or is killed.

It must not outlive the process that started it. Its standard input is a pipe from that process. One line tells where
the database is. When the pipe closes, for any reason, the worker hands back its running steps and ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from pathlib import Path

import msgspec
import uvloop

from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.recipe.app import load
from windlass.telemetry.logs import configure
from windlass.worker.worker import Worker

APP = "windlass.examples.first_minute"
QUEUE = "demo"
CONCURRENCY = 4
POOL_MAX = 2
# Running steps get this long to be handed back; then the process ends without that.
LEAVE_MAX_S = 3.0


class Config(msgspec.Struct, frozen=True):
    """The line that the process reads from its standard input when it starts."""

    dsn: str
    home: str
    artifacts: str
    inline_max_bytes: int
    lease_s: float
    log_format: str
    log_level: str

    @classmethod
    def of(cls, windlass: Windlass, lease_s: float) -> Config:
        """Return the configuration for the worker of this installation."""
        settings = windlass.settings
        return cls(
            windlass.dsn,
            str(settings.home),
            settings.artifacts_place,
            settings.inline_max_bytes,
            lease_s,
            settings.log_format,
            settings.log_level,
        )


async def _serve(config: Config) -> None:
    settings = Settings(
        database_url=config.dsn,
        home=Path(config.home),
        artifacts=config.artifacts,
        inline_max_bytes=config.inline_max_bytes,
        lease_s=config.lease_s,
    )
    async with Windlass.connect(config.dsn, settings=settings, pool_max=POOL_MAX) as windlass:
        worker = windlass.worker(load(APP), queues=[QUEUE], concurrency=CONCURRENCY)
        watch = threading.Thread(target=_end_with_parent, args=(asyncio.get_running_loop(), worker), daemon=True)
        watch.start()
        await worker.run(signals=True)


def _end_with_parent(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    """Wait in a separate thread until the pipe closes. A handler that blocks the loop cannot block this thread."""
    while sys.stdin.buffer.read(4096):
        pass
    # The worker hands steps back at every stop of `up`: that deserves no warning.
    logging.getLogger("windlass.worker").setLevel(logging.ERROR)
    try:
        loop.call_soon_threadsafe(lambda: worker.stop(now=True))
    except RuntimeError:
        return  # the loop is closed: the process is ending
    time.sleep(LEAVE_MAX_S)
    os._exit(1)


def main() -> None:
    """Run until told to stop."""
    line = sys.stdin.buffer.readline()
    if not line:
        return  # the process that started this one was gone before it could send a line
    config = msgspec.json.decode(line, type=Config)
    configure(config.log_format, config.log_level)
    uvloop.run(_serve(config))


if __name__ == "__main__":
    main()
