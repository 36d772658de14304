"""Handlers for the worker's tests. Handlers that run in processes must stand at the top of a module."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windlass.core.errors import Permanent, Transient
from windlass.core.outcome import Cancel, Parked, Snooze
from windlass.recipe.step import step
from windlass.worker.context import Context, context


@dataclass
class Scene:
    title: str
    length_s: float


@step
async def add(a: int, b: int) -> int:
    return a + b


@step
async def total(numbers: list[int]) -> int:
    return sum(numbers)


@step
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0.01)
    return a + b


@step
def add_in_thread(a: int, b: int) -> int:
    return a + b


@step(cpu=True, queue="main_processing")
def add_in_process(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b, "pid": os.getpid()}


@step
async def double_scene(scene: Scene) -> Scene:
    return Scene(scene.title, scene.length_s * 2)


@step
async def fail(how: str) -> None:
    match how:
        case "permanent":
            raise Permanent("no such file")
        case "transient":
            raise Transient("busy", after_s=0.01)
        case _:
            raise ValueError(how)


@step
async def say(what: str) -> Any:
    match what:
        case "snooze":
            return Snooze(3600)
        case "parked":
            return Parked("provider", 60)
        case "cancel":
            return Cancel("enough")
        case "set":
            return {"a": [1, {"b": object()}]}
        case "nan":
            return {"a": [1.0, float("nan")]}
        case _:
            return None


@step
async def big(count: int) -> dict[str, str]:
    return {"text": "x" * count}


@step
async def length(text: str) -> int:
    return len(text)


@step
async def who(ctx: Context) -> dict[str, Any]:
    assert context() is ctx
    return {"key": ctx.key, "attempt": ctx.attempt, "step": ctx.step, "index": ctx.index, "has_time": ctx.deadline > 0}


@step
async def fail_once(ctx: Context) -> dict[str, Any]:
    seen = ctx.checkpoint
    if seen is None:
        ctx.save({"pages": 3})
        raise Transient("again", after_s=0)
    return {"seen": seen, "attempt": ctx.attempt, "key": ctx.key}


@step(cpu=True, queue="main_processing")
def progress_in_process(ctx: Context) -> str:
    for pct in range(101):
        ctx.progress(pct, f"at {pct}")
    ctx.preview({"half": True})
    return ctx.key


@step
def progress_in_thread() -> str:
    ctx = context()
    for pct in range(101):
        ctx.progress(pct, f"at {pct}")
    return ctx.key


@step(cpu=True, queue="main_processing")
def die(marker: str) -> str:
    """Kill its own process, the first time."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@step(timeout=0.2)
async def hang() -> None:
    await asyncio.sleep(60)


@step(timeout=0.2)
def hang_in_thread(release: str) -> None:
    while not Path(release).exists():
        time.sleep(0.01)


@step(cpu=True, timeout=3, queue="main_processing")
def hang_in_process(marker: str) -> str:
    path = Path(marker)
    if path.exists():
        return "second"
    path.write_text(str(os.getpid()))
    while True:
        time.sleep(60)


@step
async def wait_for_file(started: str, release: str) -> str:
    Path(started).touch()
    while not Path(release).exists():
        await asyncio.sleep(0.01)
    return "done"


@step
async def wait_for_ever(started: str, ended: str) -> None:
    Path(started).touch()
    try:
        await asyncio.Event().wait()
    finally:
        Path(ended).touch()


@step
def wait_until_cancelled(ctx: Context, started: str, ended: str) -> None:
    Path(started).touch()
    try:
        while True:
            ctx.check_cancelled()
            time.sleep(0.01)
    finally:
        Path(ended).touch()


@step(cpu=True, queue="main_processing")
def wait_until_cancelled_in_process(ctx: Context, started: str, ended: str) -> None:
    wait_until_cancelled.function(ctx, started, ended)


@step
def hold_the_lock(seconds: int, started: str) -> str:
    """Sleep in C without letting go of the interpreter's lock: nothing else in this process runs meanwhile."""
    Path(started).touch()
    ctypes.PyDLL(None).sleep(seconds)
    return "done"


@step
async def stubborn(started: str, release: str) -> str:
    """Swallow every cancellation."""
    Path(started).touch()
    while not Path(release).exists():
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            continue
    return "late"


@step
def poison(how: str) -> None:
    """Kill the process that runs it."""
    logging.getLogger("app").warning("about to end by %s", how)
    match how:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case _:
            ctypes.string_at(0)


@step
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"


STEPS = {found.name: found for found in list(globals().values()) if type(found).__name__ == "Step"}
