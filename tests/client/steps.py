"""The app that the clients' tests serve."""

from __future__ import annotations

import asyncio
from pathlib import Path

import windlass as wl


@wl.step
def greet(name: str) -> str:
    return f"hello {name}"


@wl.step(retry=wl.Retry(max_attempts=1))
def explode() -> str:
    raise wl.Permanent("no luck")


@wl.step
async def until(path: str) -> int:
    """Goes on when there is something at the path, so that a test can say when."""
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    return 1


@wl.step
def add(values: list) -> int:
    return sum(values)


@wl.recipe
def hello(name: str = "you"):
    return greet(name)


@wl.recipe
def bang():
    return explode()


@wl.recipe
def gates(paths: list):
    return add(until.map(paths))


@wl.recipe
def alone():
    return unserved()


@wl.step(queue="nobody_serves_this")
def unserved() -> int:
    return 1


@wl.step
def hand_over(ctx: wl.Context) -> str:
    """Another service does the work; a reader of the preview can report on it."""
    ctx.cost(amount="0.25", tokens_in=100, tokens_out=20)
    ctx.preview({"token": ctx.token})
    return wl.Parked("a service", 600.0)


@wl.recipe
def elsewhere():
    return hand_over()


@wl.recipe
def approval():
    return wl.wait_for("approved", match={"by": "ada"}, timeout="1h")
