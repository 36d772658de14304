from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from windlass.access.limiter import Ask, Limiter, PostgresLimits, Taken
from windlass.core.caller import CallerContext
from windlass.core.errors import DatabaseUnavailable, Limited, TooLarge
from windlass.core.limit import SLICES, FairShare, RateLimit, take, window
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.testing.clock import VirtualClock

ROOT = Path(__file__).parents[2]
ADA, BOB = CallerContext("ada"), CallerContext("bob")


class Fixed:
    """One limit for all, or one each."""

    def __init__(self, requests: int, window_s: int = 60, **each: RateLimit) -> None:
        self.all, self.each = RateLimit(requests, window_s), each
        self.active: list[int] = []

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        self.active.append(active)
        return self.each.get(ctx.caller_id, self.all)


class Watched:
    """Limits that remember what they were asked."""

    def __init__(self, limits: PostgresLimits) -> None:
        self.limits = limits
        self.asked: list[list[Ask]] = []
        self.counted = 0
        self.error: Exception | None = None

    async def take(self, asks: Sequence[Ask]) -> list[Taken]:
        self.asked.append(list(asks))
        if self.error is not None:
            raise self.error
        return await self.limits.take(asks)

    async def active(self) -> int:
        self.counted += 1
        return await self.limits.active()


async def admitted(limiter: Limiter, ctx: CallerContext, costs: Sequence[int]) -> list[bool]:
    answers = await asyncio.gather(*(limiter.admit(ctx, cost) for cost in costs), return_exceptions=True)
    assert all(not isinstance(one, BaseException) or isinstance(one, Limited) for one in answers)
    return [not isinstance(one, Limited) for one in answers]


@pytest.mark.covers("CIX-67")
async def test_requests_are_admitted_up_to_the_limit(timed_db: Database, clock: VirtualClock) -> None:
    limiter = Limiter(PostgresLimits(timed_db), Fixed(3))
    for left in (2, 1, 0):
        assert (await limiter.admit(ADA)).remaining == left
    with pytest.raises(Limited) as refused:
        await limiter.admit(ADA)
    assert refused.value.retry_after_s == 61
    assert refused.value.headers["X-RateLimit-Remaining"] == "0"  # type: ignore[attr-defined]
    assert refused.value.window.used == 3  # type: ignore[attr-defined]
    assert (await limiter.admit(BOB)).remaining == 2
    clock.advance(61)
    assert (await limiter.admit(ADA)).remaining == 2


async def test_a_caller_who_hammers_is_served_as_soon_as_one_who_waits(timed_db: Database, clock: VirtualClock) -> None:
    limiter = Limiter(PostgresLimits(timed_db), Fixed(2))
    assert await admitted(limiter, ADA, [1, 1]) == [True, True]
    for _ in range(120):
        assert await admitted(limiter, ADA, [1]) == [False]
        clock.advance(0.5)
    clock.advance(1)
    assert await admitted(limiter, ADA, [1, 1]) == [True, True]


async def test_a_request_is_counted_whole_or_not_at_all(timed_db: Database) -> None:
    limiter = Limiter(PostgresLimits(timed_db), Fixed(10))
    assert await admitted(limiter, ADA, [6, 5, 4]) == [True, False, True]
    assert (await limiter.admit(ADA, 0)).used == 10


async def test_what_could_never_fit_is_too_large(timed_db: Database) -> None:
    limits = Watched(PostgresLimits(timed_db))
    limiter = Limiter(limits, Fixed(10))
    with pytest.raises(TooLarge):
        await limiter.admit(ADA, 11)
    assert limits.asked == []


async def test_what_costs_nothing_is_admitted_even_over_the_limit(timed_db: Database) -> None:
    strategy = Fixed(10)
    limiter = Limiter(PostgresLimits(timed_db), strategy)
    await limiter.admit(ADA, 10)
    strategy.all = RateLimit(4, 60)
    assert (await limiter.admit(ADA, 0)).remaining == 0
    strategy.all = RateLimit(0, 60)
    assert await admitted(limiter, ADA, [1, 0]) == [False, True]


async def test_requests_at_once_share_round_trips(timed_db: Database) -> None:
    limits = Watched(PostgresLimits(timed_db))
    limiter = Limiter(limits, Fixed(1_000))
    callers = [CallerContext(f"c{n % 7}") for n in range(140)]
    await asyncio.gather(*(limiter.admit(ctx) for ctx in callers))
    assert len(limits.asked) <= 3
    for asks in limits.asked:
        assert [ask.caller for ask in asks] == sorted({ask.caller for ask in asks})
    assert sum(len(ask.costs) for asks in limits.asked for ask in asks) == 140


async def test_requests_of_one_batch_are_served_in_the_order_they_came(timed_db: Database) -> None:
    limiter = Limiter(PostgresLimits(timed_db), Fixed(5))
    assert await admitted(limiter, ADA, [1] * 9) == [True] * 5 + [False] * 4


async def test_windows_of_another_length_are_counted_apart(timed_db: Database, clock: VirtualClock) -> None:
    """A caller whose window becomes longer must not be shut out by slices that have other numbers."""
    strategy = Fixed(2, ada=RateLimit(2, 60))
    limiter = Limiter(PostgresLimits(timed_db), strategy)
    assert await admitted(limiter, ADA, [1, 1, 1]) == [True, True, False]
    strategy.each["ada"] = RateLimit(2, 3600)
    assert await admitted(limiter, ADA, [1, 1, 1]) == [True, True, False]
    clock.advance(3700)
    assert await admitted(limiter, ADA, [1, 1, 1]) == [True, True, False]
    strategy.each["ada"] = RateLimit(2, 60)
    assert await admitted(limiter, ADA, [1, 1, 1]) == [True, True, False]


async def test_a_caller_with_two_limits_in_one_batch_is_counted_once(timed_db: Database) -> None:
    class Two:
        def limit(self, ctx: CallerContext, active: int) -> RateLimit:
            return RateLimit(5 if ctx.tier else 3, 60)

    limiter = Limiter(PostgresLimits(timed_db), Two())
    pro = CallerContext("ada", tier="pro")
    answers = await asyncio.gather(*(limiter.admit(ctx) for ctx in [ADA, pro] * 5), return_exceptions=True)
    assert sum(not isinstance(one, Limited) for one in answers) == 5


async def test_a_fair_share_falls_as_callers_come(timed_db: Database) -> None:
    seconds = [0.0]
    limits = Watched(PostgresLimits(timed_db))
    limiter = Limiter(limits, FairShare(capacity=120, floor=10, burst=1.0, window_s=60), clock=lambda: seconds[0])
    assert (await limiter.admit(ADA)).limit == 120
    await asyncio.gather(*(limiter.admit(CallerContext(f"c{n}")) for n in range(5)))
    assert (await limiter.admit(ADA)).limit == 120
    assert limits.counted == 1
    seconds[0] += 10.0
    assert (await limiter.admit(ADA)).limit == 20
    assert limits.counted == 2


async def test_who_has_not_asked_within_the_window_is_not_active(timed_db: Database, clock: VirtualClock) -> None:
    limits = PostgresLimits(timed_db)
    limiter = Limiter(limits, Fixed(5))
    await limiter.admit(ADA)
    clock.advance(30)
    await limiter.admit(BOB)
    assert await limits.active() == 2
    clock.advance(32)
    assert await limits.active() == 1
    clock.advance(30)
    assert await limits.active() == 0
    forgotten = await timed_db.run(lambda c: c.execute(sql("limit_forget"), 100))
    assert forgotten == "DELETE 2"
    assert (await limiter.admit(ADA)).remaining == 4


async def test_a_row_that_is_forgotten_while_it_is_waited_for_is_made_again(timed_db: Database, db: Database) -> None:
    """The pruner removes the row between the look for it and the lock on it."""
    limits = PostgresLimits(timed_db)
    [before] = await limits.take([Ask("ada", (1,), RateLimit(5, 60))])
    assert before.granted == (True,)
    async with db.connection() as pruner:
        transaction = pruner.transaction()
        await transaction.start()
        await pruner.execute("DELETE FROM windlass.limits")
        taking = asyncio.create_task(limits.take([Ask("ada", (1, 1), RateLimit(5, 60))]))
        await _until_somebody_waits(db)
        await transaction.commit()
    [after] = await taking
    assert after.granted == (True, True)
    assert sum(after.taken) == 2


async def test_a_fault_of_the_database_is_told_to_all_who_wait_and_to_nobody_after(timed_db: Database) -> None:
    limits = Watched(PostgresLimits(timed_db))
    limiter = Limiter(limits, Fixed(5))
    limits.error = DatabaseUnavailable("away")
    answers = await asyncio.gather(*(limiter.admit(ADA) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(one, DatabaseUnavailable) for one in answers)
    limits.error = None
    assert (await limiter.admit(ADA)).remaining == 4


async def test_a_request_that_is_given_up_takes_nobody_with_it(timed_db: Database) -> None:
    limiter = Limiter(PostgresLimits(timed_db), Fixed(5))
    await limiter.admit(BOB)
    given_up, waiting = (asyncio.create_task(limiter.admit(ADA)) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    assert (await waiting).remaining == 3


async def test_the_database_counts_as_the_law_does(timed_db: Database, clock: VirtualClock) -> None:
    rng = random.Random(11)
    limits = PostgresLimits(timed_db)
    for history in range(25):
        limit = RateLimit(rng.choice([0, 1, 5, 20]), rng.choice([1, 60, 3600]), rng.choice([0, 3]))
        state: tuple[int, list[int]] | None = None
        for _ in range(25):
            clock.advance(rng.choice([0.0, 0.01, 0.4, 1.0, 7.0, 59.0, 61.0, 700.0]) * limit.window_s / 60)
            at = clock.now().timestamp() / limit.slice_s
            costs = [rng.randint(0, 4) for _ in range(rng.randint(1, 4))]
            here, counts, granted = take(state, at, costs, limit.most)
            state = (here, counts)
            [found] = await limits.take([Ask(f"h{history}", tuple(costs), limit)])
            assert (list(found.granted), list(found.taken)) == (granted, counts)
            assert found.into_slice == pytest.approx(max(0.0, at - here), abs=1e-3)
            assert window(found.taken, found.into_slice, limit).used == sum(counts)


async def test_a_clock_that_goes_back_counts_as_the_law_does(timed_db: Database) -> None:
    limit = RateLimit(5, 60)
    state: tuple[int, list[int]] | None = None
    for at in (5000.5, 4999.5, 4940.5, 4938.5, 4000.5, 5000.5):
        async with timed_db.connection() as connection:
            await connection.execute("SELECT set_config('windlass.now', to_timestamp($1)::text, false)", at)
            row = await connection.fetchrow(sql("limit_take_all"), ["ada"], ["{2}"], [limit.most], [limit.slice_s])
        here, counts, granted = take(state, at, [2], limit.most)
        state = (here, counts)
        assert (row["taken"], row["granted"]) == (counts, granted)
    assert len(counts) == SLICES + 1


async def test_two_processes_share_one_limit_exactly(fresh_dsn: str) -> None:
    """Each asks more often than the limit allows both of them; together they are let in exactly as often as it does."""
    most, asks = 700, 600
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.access.limit_process", fresh_dsn, str(asks), str(most)),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(2)
    ]
    counts = []
    for process in processes:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        await process.stdin.drain()
    for process in processes:
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        counts.append(int(out))
    assert sum(counts) == most, counts
    assert all(counts), f"one process had it all: {counts}"
    connection = await asyncpg.connect(fresh_dsn)
    try:
        taken: Any = await connection.fetchval("SELECT taken FROM windlass.limits WHERE caller = 'ada'")
    finally:
        await connection.close()
    assert sum(taken) == most


async def _until_somebody_waits(db: Database) -> None:
    while not await db.run(
        lambda c: c.fetchval("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')")
    ):
        await asyncio.sleep(0.01)
