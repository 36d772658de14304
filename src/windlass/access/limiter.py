"""Counts requests against the limits of their callers.

PostgreSQL holds one row per caller, so all processes share the count. Requests that arrive while a statement runs wait
for it and share the next statement. So at any load a process has only one round trip for all its callers under way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from windlass.core.caller import CallerContext
from windlass.core.errors import Limited, TooLarge
from windlass.core.limit import RateLimit, Strategy, Window, window
from windlass.store.database import Database
from windlass.store.statements import sql

BATCH_MAX = 1_000
ACTIVE_FOR_S = 10.0


@dataclass(frozen=True, slots=True)
class Ask:
    """The costs of one caller's waiting requests, in the order of their arrival."""

    caller: str
    costs: tuple[int, ...]
    limit: RateLimit


@dataclass(frozen=True, slots=True)
class Taken:
    """The granted requests of an `Ask`, and the caller's slices afterwards."""

    granted: tuple[bool, ...]
    taken: tuple[int, ...]
    into_slice: float


class Limits(Protocol):
    """Counts only granted requests, each in full or not at all; exact per caller across processes."""

    async def take(self, asks: Sequence[Ask]) -> list[Taken]:
        """Count the requests that fit. The asks are sorted by caller and window; the answers keep that order."""
        ...

    async def active(self) -> int:
        """Return the number of callers with a request within their window."""
        ...


class PostgresLimits:
    """Keeps `Limits` in a PostgreSQL table."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def take(self, asks: Sequence[Ask]) -> list[Taken]:
        """Count the requests that fit, in one statement."""
        columns = (
            [ask.caller for ask in asks],
            ["{" + ",".join(map(str, ask.costs)) + "}" for ask in asks],
            [ask.limit.most for ask in asks],
            [ask.limit.slice_s for ask in asks],
        )
        rows = await self._db.run(lambda connection: connection.fetch(sql("limit_take_all"), *columns))
        return [Taken(tuple(row["granted"]), tuple(row["taken"]), row["into_slice"]) for row in rows]

    async def active(self) -> int:
        """Return the number of callers with a request within their window."""
        return int(await self._db.run(lambda connection: connection.fetchval(sql("limit_active"))))


class OverLimit(Limited):
    """Limited, with the caller's remaining window."""

    def __init__(self, window: Window, message: str | None = None) -> None:
        super().__init__(
            message or f"the limit of {window.limit} requests in {window.window_s} s is reached",
            retry_after_s=window.retry_after_s,
            remedy=f"Try again in {window.retry_after_s} s",
        )
        self.window = window
        self.headers = window.headers


@dataclass(frozen=True, slots=True)
class _Waiting:
    caller: str
    cost: int
    limit: RateLimit
    answer: asyncio.Future[Window | Taken]

    @property
    def row(self) -> tuple[str, float, int]:
        return self.caller, self.limit.slice_s, self.limit.most


class Limiter:
    """Admits or refuses requests."""

    def __init__(self, limits: Limits, strategy: Strategy, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._strategy = strategy
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._active = 0
        self._active_until_s = float("-inf")
        self._counting = asyncio.Lock()

    async def admit(self, ctx: CallerContext, cost: int = 1) -> Window:
        """Count a request of this cost and return the remaining window; raises OverLimit, with `window` and `headers`.

        A request that could never fit raises TooLarge. A request of cost 0 is always admitted.
        """
        limit = self._strategy.limit(ctx, await self._active_callers())
        if cost > limit.most > 0:
            raise TooLarge(
                f"this counts as {cost} requests, and the limit is {limit.most} in {limit.window_s} s",
                remedy="Send it in smaller parts",
            )
        answer: asyncio.Future[Window | Taken] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(ctx.caller_id, cost, limit, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="windlass-limiter")
        found = await answer
        if isinstance(found, Window):
            return found
        raise OverLimit(window(found.taken, found.into_slice, limit, cost))

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            rows: dict[tuple[str, float, int], list[_Waiting]] = {}
            for one in batch:
                rows.setdefault(one.row, []).append(one)
            groups = [rows[row] for row in sorted(rows)]
            asks = [Ask(group[0].caller, tuple(one.cost for one in group), group[0].limit) for group in groups]
            try:
                taken = await self._limits.take(asks)
            except Exception as error:
                for one in batch:
                    if not one.answer.done():
                        one.answer.set_exception(error)
                continue
            for group, after in zip(groups, taken, strict=True):
                # One window for all that were granted together.
                left = window(after.taken, after.into_slice, group[0].limit)
                for one, is_granted in zip(group, after.granted, strict=True):
                    if not one.answer.done():
                        one.answer.set_result(left if is_granted or one.cost <= 0 else after)

    async def _active_callers(self) -> int:
        if self._clock() < self._active_until_s:
            return self._active
        async with self._counting:
            if self._clock() >= self._active_until_s:
                self._active = await self._limits.active()
                self._active_until_s = self._clock() + ACTIVE_FOR_S
        return self._active
