"""The tests that every resource must pass, for pytest: derive a class that names the resource, and run it.

```python
from windlass.testing.resource_conformance import ResourceConformance

class TestDevices(ResourceConformance):
    resource = Devices()

    async def stock(self, connection):          # the stock is MOST, and no step holds any
        await connection.execute("INSERT INTO acme.devices (name, memory) VALUES ('gpu', $1)", MOST)

    def asking(self, slot, amount):             # the slot of a step that asks for this amount
        return slot._replace(key="gpu", most=MOST, takes=amount)
```

Each test states one promise of `windlass.store.resources.port.Resource`. The suite acts as the granter and as the
writer of slots: it holds the granter's lock, and moves the rows of the steps beside `take` and `give`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.slot import BEHIND_KEY, Name, Slot
from windlass.store.database import Database
from windlass.store.resources.port import Lack, Resource
from windlass.store.statements import sql
from windlass.testing.postgres import fresh_database

# The stock of the resource, in every test.
MOST = 8
_BACK_MAX = 100

_PUT = """
    INSERT INTO windlass.slots AS s
        (job_id, no, fence, provider, places, key, most, takes, cost, caller, recipe, jobs, state, behind,
         priority, turn, since)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
            0, CASE WHEN $14::text IS NULL THEN 0 ELSE -1 END, windlass.clock())
    ON CONFLICT (job_id, no) DO UPDATE
    SET fence = excluded.fence, state = excluded.state, behind = excluded.behind, turn = excluded.turn
"""
_END = "UPDATE windlass.slots SET state = 'IDLE' WHERE job_id = $1 AND no = $2 AND fence = $3 AND state = 'HELD'"
_BEHIND = "SELECT behind FROM windlass.slots WHERE job_id = $1 AND no = $2"


class Ground:
    """The resource on a separate database, and the steps that ask for it."""

    def __init__(self, suite: ResourceConformance, db: Database) -> None:
        self._suite = suite
        self._db = db
        self._steps = 0

    def step(self, amount: int) -> Slot:
        """Return a new step that asks for this amount."""
        self._steps += 1
        job = UUID(int=self._steps)
        bare = Slot(job, 0, 0, "", 1, "", 1, 1, None, "ada", "conformance", [str(job)])
        return self._suite.asking(bare, amount)

    async def let_go(self, *slots: Slot, is_undone: bool = False) -> list[Slot]:
        """Run one turn of the granter; return the granted steps, with their new fences."""
        gone: list[Slot] = await self._run(lambda connection: self._turn(connection, slots), is_undone=is_undone)
        return gone

    async def lack(self, slot: Slot) -> Lack | None:
        """Return the step's `Lack`; None if it can be granted."""

        async def look(connection: asyncpg.Connection) -> Lack | None:
            await connection.execute(sql("grant_wait"))
            room = await self._suite.resource.room(connection, slot.provider)
            await room.read(connection, [slot])
            return room.lack(slot)

        found: Lack | None = await self._run(look, is_undone=True)
        return found

    async def give(self, *slots: Slot, is_undone: bool = False) -> None:
        """Give back the holdings of these steps, current or former."""

        async def operation(connection: asyncpg.Connection) -> None:
            await self._suite.resource.give(connection, slots)
            for slot in slots:
                await connection.execute(_END, slot.job_id, slot.no, slot.fence)

        await self._run(operation, is_undone=is_undone)

    async def set_aside(self, slot: Slot, behind: str) -> None:
        """Record that the step left its line for lack of something."""
        await self._run(lambda connection: _put(connection, slot, "WAITING", behind))

    async def back(self, name: Name) -> None:
        """Tell the resource that something of this name was given back."""

        async def operation(connection: asyncpg.Connection) -> None:
            await connection.execute(sql("grant_wait"))
            await self._suite.resource.back(connection, [name], _BACK_MAX)

        await self._run(operation)

    async def behind(self, slot: Slot) -> str | None:
        """Return where the step waits; None if it stands at the front of its line."""
        found: str | None = await self._run(lambda c: c.fetchval(_BEHIND, slot.job_id, slot.no))
        return found

    async def _turn(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> list[Slot]:
        resource = self._suite.resource
        await connection.execute(sql("grant_wait"))
        room = await resource.room(connection, slots[0].provider)
        await room.read(connection, slots)
        gone: list[Slot] = []
        for slot in slots:
            if (room.steps is None or room.steps > 0) and room.lack(slot) is None:
                room.use(slot)
                gone.append(slot._replace(fence=slot.fence + 1))
                await _put(connection, gone[-1], "HELD", None)
        if gone:
            await resource.take(connection, gone)
        await room.close(connection, is_left=len(gone) < len(slots))
        return gone

    async def _run(self, operation: Callable[[asyncpg.Connection], Awaitable[Any]], *, is_undone: bool = False) -> Any:
        async def run(connection: asyncpg.Connection) -> Any:
            transaction = connection.transaction()
            await transaction.start()
            found = await operation(connection)
            await (transaction.rollback() if is_undone else transaction.commit())
            return found

        return await self._db.run(run)


async def _put(connection: asyncpg.Connection, slot: Slot, state: str, behind: str | None) -> None:
    # The last two fields are no columns.
    await connection.execute(_PUT, *slot[:-2], state, behind)


class ResourceConformance:
    """Derive a class from it that gives `resource`, `stock` and `asking`; the module shows how."""

    resource: Resource

    async def stock(self, connection: asyncpg.Connection) -> None:
        """Set the stock of the resource to MOST."""
        raise NotImplementedError

    def asking(self, slot: Slot, amount: int) -> Slot:
        """Return the slot of a step that asks for this amount."""
        raise NotImplementedError

    def _test(self, test: Callable[[Ground], Awaitable[None]]) -> None:
        async def run() -> None:
            db = await Database.open(await fresh_database(), max_size=2)
            try:
                await db.run(self.stock)
                await test(Ground(self, db))
            finally:
                await db.close()

        asyncio.run(run())

    def test_no_more_is_let_go_than_there_is(self) -> None:
        """Promise 1, in one turn: of three steps that ask for three of eight, two are granted."""

        async def test(on: Ground) -> None:
            first, second, third = on.step(3), on.step(3), on.step(3)
            assert _ids(await on.let_go(first, second, third)) == _ids([first, second])

        self._test(test)

    def test_all_of_it_can_be_had_at_once(self) -> None:
        """Promise 1 does not mean that a part is never used."""

        async def test(on: Ground) -> None:
            assert len(await on.let_go(on.step(MOST))) == 1
            assert await on.let_go(on.step(1)) == []

        self._test(test)

    def test_what_is_held_counts_with_its_whole_amount_in_later_turns(self) -> None:
        """Promise 2."""

        async def test(on: Ground) -> None:
            assert len(await on.let_go(on.step(3))) == 1
            assert len(await on.let_go(on.step(3))) == 1
            assert await on.let_go(on.step(3)) == []
            assert len(await on.let_go(on.step(2))) == 1
            assert await on.let_go(on.step(1)) == []

        self._test(test)

    def test_a_turn_that_is_rolled_back_took_nothing(self) -> None:
        """Promise 2."""

        async def test(on: Ground) -> None:
            assert len(await on.let_go(on.step(5), is_undone=True)) == 1
            assert len(await on.let_go(on.step(MOST))) == 1

        self._test(test)

    def test_what_a_turn_only_looked_at_is_there_for_the_next(self) -> None:
        """Reading takes nothing."""

        async def test(on: Ground) -> None:
            for _ in range(3):
                assert await on.lack(on.step(MOST)) is None
            assert len(await on.let_go(on.step(MOST))) == 1

        self._test(test)

    def test_giving_back_returns_exactly_what_was_taken(self) -> None:
        """Promise 3."""

        async def test(on: Ground) -> None:
            small, large = await on.let_go(on.step(3), on.step(5))
            await on.give(small)
            assert await on.let_go(on.step(4)) == []
            [again] = await on.let_go(on.step(3))
            await on.give(large, again)
            assert len(await on.let_go(on.step(MOST))) == 1

        self._test(test)

    def test_a_give_back_that_is_rolled_back_returned_nothing(self) -> None:
        """Promise 2 again."""

        async def test(on: Ground) -> None:
            [held] = await on.let_go(on.step(MOST))
            await on.give(held, is_undone=True)
            assert await on.let_go(on.step(1)) == []
            await on.give(held)
            assert len(await on.let_go(on.step(MOST))) == 1

        self._test(test)

    def test_giving_back_twice_is_giving_back_once(self) -> None:
        """Promise 4."""

        async def test(on: Ground) -> None:
            small, _ = await on.let_go(on.step(3), on.step(5))
            await on.give(small)
            await on.give(small)
            assert await on.let_go(on.step(4)) == []
            assert len(await on.let_go(on.step(3))) == 1
            assert await on.let_go(on.step(1)) == []

        self._test(test)

    def test_an_earlier_holding_of_the_same_step_gives_nothing_back(self) -> None:
        """Promise 4: the fence tells one holding of a step from the next."""

        async def test(on: Ground) -> None:
            [first] = await on.let_go(on.step(3))
            await on.give(first)
            [second] = await on.let_go(first)
            assert second.fence > first.fence
            await on.give(first)
            assert await on.let_go(on.step(6)) == []
            await on.give(second)
            assert len(await on.let_go(on.step(MOST))) == 1

        self._test(test)

    def test_a_step_that_lacks_it_can_go_once_enough_was_given_back(self) -> None:
        """Promise 5. A step that left its line returns to it, and not before there is enough."""

        async def test(on: Ground) -> None:
            small, large = await on.let_go(on.step(2), on.step(6))
            waiting = on.step(4)
            lack = await on.lack(waiting)
            assert lack is not None
            name = _name(lack, waiting)
            if lack.behind is not None and name is not None:
                assert name[0] in self.resource.kinds
                await on.set_aside(waiting, lack.behind)
                await on.give(small)
                await on.back(name)
                assert await on.behind(waiting) == lack.behind
                await on.give(large)
                await on.back(name)
                assert await on.behind(waiting) is None
            else:
                await on.give(small, large)
            assert len(await on.let_go(waiting)) == 1

        self._test(test)


def _ids(slots: Sequence[Slot]) -> list[tuple[UUID, int]]:
    return [(slot.job_id, slot.no) for slot in slots]


def _name(lack: Lack, slot: Slot) -> Name | None:
    """Return the name that `back` must report for the step; None if its whole line waits."""
    if lack.behind is None or lack.behind == BEHIND_KEY:
        return None if lack.behind is None else (BEHIND_KEY, slot.key)
    kind, _, name = lack.behind.partition(":")
    return kind, name
