"""How a process ends although a handler left something running in it.

Handlers are other people's code: one may swallow its cancellation, start threads that never end, or leave work in the
loop's executor. Python waits for all of them at exit, for ever if need be. By then the worker has drained and the
database is closed, so there is nothing to wait for: they are given a moment, and then the process ends without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

GRACE_S = 2.0

Answer = TypeVar("Answer")


def run_on(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, Answer]) -> Answer:
    """`asyncio.run`, but what does not end within the grace is left behind, and the loop with it."""
    is_quiet = False

    async def bounded() -> Answer:
        nonlocal is_quiet
        try:
            return await main
        finally:
            is_quiet = await _quiet()

    runner = asyncio.Runner(loop_factory=lambda: loop)
    try:
        return runner.run(bounded())
    finally:
        # Closing waits without a bound for what is still there.
        if is_quiet:
            runner.close()


async def _quiet() -> bool:
    """Cancel what is left on the loop and wait a moment for it; whether all of it ended."""
    rest: set[asyncio.Task[Any]] = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    # Never cancelled: a cancelled shutdown of the executor joins its threads, and that blocks.
    rest.add(asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor()))
    _, still_there = await asyncio.wait(rest, timeout=GRACE_S)
    return not still_there


def leave(code: int) -> None:
    """End the process here if the interpreter would wait for threads that are not ours; return otherwise."""
    ours = (threading.main_thread(), threading.current_thread())
    for thread in threading.enumerate():
        if thread not in ours and not thread.daemon:
            thread.join(0.1)
            if thread.is_alive():
                break
    else:
        return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # A stream that is closed, or whose reader has gone, has nothing to lose.
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
