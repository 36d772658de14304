"""Ends a process although a handler left tasks or threads running in it.

Handlers are user code. A handler may swallow its cancellation, start threads that never end, or leave work in the
loop's executor. At exit Python waits for all of them without a limit. By then the worker has drained and the database
is closed, so waiting is useless: the process grants a short grace period and then ends.
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
    """Run like `asyncio.run`, but abandon tasks that do not end within the grace period, and then the loop too."""
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
        # Closing waits without a limit for the remaining tasks.
        if is_quiet:
            runner.close()


async def _quiet() -> bool:
    """Cancel the remaining tasks of the loop, wait for the grace period, and return whether all of them ended."""
    rest: set[asyncio.Task[Any]] = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    # This task is never cancelled: a cancelled shutdown of the executor joins its threads, which blocks.
    rest.add(asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor()))
    _, still_there = await asyncio.wait(rest, timeout=GRACE_S)
    return not still_there


def leave(code: int) -> None:
    """End the process at once if the interpreter would wait for threads of user code; return otherwise."""
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
        # A closed stream, or a stream without a reader, has no output to lose.
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
