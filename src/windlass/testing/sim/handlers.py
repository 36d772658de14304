"""The handlers of simulated steps: they take time, report, fail, hang, resist cancellation, call providers, and kill
their process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windlass.core.errors import DatabaseUnavailable, Permanent, Transient
from windlass.core.outcome import Cancel, Parked, Snooze
from windlass.testing.sim.log import Key
from windlass.worker.context import Context
from windlass.worker.handler import StepLike

SUCCESS_CHANCE = 0.72
ASK_CHANCE = 0.93
SPEAK_CHANCE = 0.1
FOREVER_S = 1e6


@dataclass(frozen=True, slots=True)
class SimStep:
    """A step as a worker registers it."""

    name: str
    function: Callable[..., Any]
    is_cpu: bool = False


@dataclass
class Conduct:
    """The behaviour of one worker's handlers.

    `key` returns the attempt that has just begun. `is_deadly` tells whether its handler kills the process, which `die`
    does. `is_kind` is true in the last phase, in which every handler succeeds. A second is `second_s` long.
    """

    rng: random.Random
    key: Callable[[], Key]
    is_kind: Callable[[], bool]
    is_deadly: Callable[[Key], bool]
    die: Callable[[], Awaitable[None]]
    second_s: float = 1.0

    def steps(self, names: str) -> Mapping[str, StepLike]:
        """Return a handler for each of these names."""

        async def handle(ctx: Context) -> Any:
            return await self._handle(ctx)

        return {name: SimStep(name, handle) for name in names}

    async def _handle(self, ctx: Context) -> Any:
        rng, key = self.rng, self.key()
        if ctx.provider.name and (self.is_kind() or rng.random() < ASK_CHANCE):
            made = await ctx.provider.start(input={"n": key[1]})
        else:
            end = self._end(ctx)
            await self._pass_time(ctx)
            made = await end() if callable(end) else end
        if self.is_deadly(key):
            await self.die()
        if isinstance(made, BaseException):
            raise made
        return made

    async def _pass_time(self, ctx: Context) -> None:
        rng = self.rng
        await asyncio.sleep(rng.expovariate(1 / 2.0) * self.second_s)
        if rng.random() < SPEAK_CHANCE:
            if rng.random() < 0.7:
                ctx.progress(rng.randint(0, 100))
            if rng.random() < 0.3:
                ctx.preview(1)
            if rng.random() < 0.5:
                ctx.save(rng.randint(0, 9))
            # Some end before their last notes are written.
            await asyncio.sleep(rng.choice([0.0, 1.0]) * self.second_s)

    def _end(self, ctx: Context) -> Any:
        """Return a value, an exception, or a function that takes time to produce one."""
        rng = self.rng
        body = {"ok": rng.random() < 0.6, "items": list(range(rng.choice([0, 1, 2, 3, 6]))), "v": rng.getrandbits(32)}
        if self.is_kind() or rng.random() < SUCCESS_CHANCE:
            return body
        boom = RuntimeError(f"boom {ctx.attempt}")
        return rng.choice(
            [
                boom, boom, boom, Transient("boom", after_s=rng.uniform(0, 8)), DatabaseUnavailable("gone"),
                Permanent("boom"), Snooze(rng.uniform(0, 10)), Parked("outside"), Parked("outside", rng.uniform(1, 30)),
                Cancel() if rng.random() < 0.3 else body, self._hang, self._refuse_to_stop,
            ]
        )  # fmt: skip

    async def _hang(self) -> Any:
        await asyncio.sleep(FOREVER_S)

    async def _refuse_to_stop(self) -> Any:
        try:
            await asyncio.sleep(FOREVER_S)
        except asyncio.CancelledError:
            await asyncio.sleep(self.rng.uniform(0, 12) * self.second_s)
        return {"ok": True, "items": []}
