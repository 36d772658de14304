"""The app that the command line's tests serve."""

from __future__ import annotations

import asyncio

import windlass as wl


@wl.step
async def write_script(topic: str) -> dict:
    return {"scenes": [f"{topic} {n}" for n in range(3)]}


@wl.step
def render(scene: str) -> str:
    return scene.upper()


@wl.step
def stitch(shots: list) -> dict:
    return {"film": " + ".join(shots)}


@wl.step(retry=wl.Retry(max_attempts=1))
def explode(topic: str) -> str:
    raise wl.Permanent(f"[bold]{topic}[/bold] cannot be filmed")


@wl.step(retry=wl.Retry(max_attempts=1))
def stumble(script: dict) -> str:
    return script["data"]


@wl.step
async def doze(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


@wl.recipe
def fall(topic: str = "fog"):
    return stumble(write_script(topic))


@wl.recipe
def film(topic: str):
    """Make a film of a topic.

    One scene at a time.
    """
    return stitch(render.map(write_script(topic)["scenes"]))


@wl.recipe
def flop(topic: str = "fog"):
    return stitch([explode(write_script(topic)["scenes"][0])])


@wl.recipe
def nap(seconds: float = 600.0):
    return doze(seconds)


@wl.recipe
def nobody():
    return later()


@wl.step(queue="nobody_serves_this")
def later() -> str:
    return "never"


@wl.recipe
def approval():
    return wl.wait_for("approved", match={"by": "ada"}, timeout="1h")


@wl.recipe
def reviewed(topic: str = "sea"):
    return wl.approve("Show the film?", show={"topic": topic}, expires="1h")
