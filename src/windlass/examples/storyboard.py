"""A storyboard: a provider draws the scenes, two at a time for each artist; a person approves; the board is bound.

    make storyboard

The command starts a provider on this machine, which loses some of its webhooks and sends others late. It shows whether
the webhook or the poller brought each drawing. To use another provider, name it `studio` in `providers.yaml`.
"""

from typing import Annotated

from msgspec import Meta

import windlass as wl

Scenes = Annotated[int, Meta(ge=1, le=200)]
SHOTS = ["a wide view", "somebody arrives", "a close look", "what was hidden", "the turn", "the way home"]


@wl.step
def write_scenes(topic: str, scenes: int) -> list:
    """Write one line per scene."""
    return [f"{topic}: {SHOTS[n % len(SHOTS)]}" for n in range(scenes)]


@wl.step(provider="studio", concurrency="artist:{inputs.artist}", limit=2, cost=0.05, wait="10m")
async def draw(scene: str, style: str, ctx: wl.Context) -> object:
    """Submit a scene to the studio, which draws it. No worker waits for the drawing."""
    return await ctx.provider.start(model=style, input={"prompt": scene})


@wl.step
def bind(topic: str, drawings: list) -> dict:
    """Put the drawings in order."""
    return {"title": topic.title(), "pages": [drawing["echo"]["prompt"] for drawing in drawings]}


@wl.recipe
def storyboard(topic: str, scenes: Scenes = 6, style: str = "pencil", artist: str = "ada", auto_approve: bool = False):
    """Write the scenes, draw them, wait for approval, bind the board."""
    drawings = draw.map(write_scenes(topic, scenes), style=style)
    approved = wl.wait_for("approved", match={"topic": topic}, timeout="2d").after(drawings).when(~auto_approve)
    return bind(topic, drawings).after(approved)
