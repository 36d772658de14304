"""Handlers that ask a provider."""

from __future__ import annotations

import asyncio
from typing import Any

import windlass as wl


@wl.step(provider="fake", retry=wl.Retry(max_attempts=3, base_s=0.05, jitter=0))
async def render(ctx: wl.Context, prompt: str) -> Any:
    return await ctx.provider.start(model="image", input={"prompt": prompt})


@wl.step(provider="fake")
def render_plainly(ctx: wl.Context, prompt: str) -> Any:
    return ctx.provider.start(model="image", input={"prompt": prompt})


@wl.step(provider="fake", cpu=True)
def render_in_process(ctx: wl.Context, prompt: str) -> Any:
    ctx.cost("0.25", seconds=2)
    return ctx.provider.start(model="image", input={"prompt": prompt})


@wl.step(provider="fake")
async def render_twice(ctx: wl.Context, prompt: str) -> Any:
    await ctx.provider.start(model="image", input={"prompt": prompt})
    return await ctx.provider.start(model="image", input={"prompt": "another"})


@wl.step(provider="fake")
async def render_and_go_on(ctx: wl.Context, prompt: str) -> str:
    await ctx.provider.start(model="image", input={"prompt": prompt})
    return "never mind"


@wl.step(provider="fake")
async def render_and_linger(ctx: wl.Context, prompt: str) -> Any:
    work = await ctx.provider.start(model="image", input={"prompt": prompt})
    await asyncio.sleep(60)
    return work


@wl.step
async def unprovided(ctx: wl.Context) -> Any:
    return await ctx.provider.start(model="image")


@wl.step
async def spend(ctx: wl.Context) -> str:
    ctx.cost("0.10", tokens_in=3)
    ctx.cost(0.05, tokens_out=4, seconds=1.5)
    return "spent"


ALL = (
    render, render_plainly, render_in_process, render_twice, render_and_go_on, render_and_linger, unprovided, spend,
)  # fmt: skip
STEPS = {step.name: step for step in ALL}
