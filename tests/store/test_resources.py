"""Every resource keeps the promises of the port, and the suite that says so can fail."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from windlass.core.slot import Name, Slot
from windlass.store.resources.keys import Keys, KeysRoom
from windlass.store.resources.money import Money
from windlass.store.resources.places import NoRoom, Places
from windlass.store.resources.port import Lack, Resource
from windlass.testing.resource_conformance import MOST, ResourceConformance


class TestPlaces(ResourceConformance):
    resource: Resource = Places()

    async def stock(self, connection: asyncpg.Connection) -> None:
        await connection.execute(
            "INSERT INTO windlass.providers (name, concurrency, rate, updated_at) VALUES ('fal', $1, 1e6, now())", MOST
        )

    def asking(self, slot: Slot, amount: int) -> Slot:
        return slot._replace(provider="fal", places=amount)


class TestKeys(ResourceConformance):
    resource: Resource = Keys()

    async def stock(self, connection: asyncpg.Connection) -> None:
        """How much there is of a key is said by the steps that ask for it."""

    def asking(self, slot: Slot, amount: int) -> Slot:
        return slot._replace(key="gpu", most=MOST, takes=amount)


class TestMoney(ResourceConformance):
    resource: Resource = Money()

    async def stock(self, connection: asyncpg.Connection) -> None:
        await connection.execute(
            "INSERT INTO windlass.budgets (scope, name, most, updated_at) VALUES ('caller', 'ada', $1, now())", MOST
        )

    def asking(self, slot: Slot, amount: int) -> Slot:
        return slot._replace(cost=Decimal(amount))


class ShelfRoom(NoRoom):
    """What is left of the one thing on the shelf."""

    def __init__(self, left: int) -> None:
        self.left = left

    def lack(self, slot: Slot) -> Lack | None:
        return Lack("shelf:box") if slot.takes > self.left else None

    def use(self, slot: Slot) -> None:
        self.left -= slot.takes


class Shelf:
    """A resource of a third party, which keeps what is held in rows of its own, as devices would."""

    kinds: tuple[str, ...] = ("shelf",)

    async def room(self, connection: asyncpg.Connection, line: str) -> ShelfRoom:
        return ShelfRoom(MOST - await connection.fetchval("SELECT coalesce(sum(amount), 0)::int FROM shelf"))

    async def take(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        for slot in slots:
            values = (slot.job_id, slot.no, slot.fence, slot.takes)
            await connection.execute("INSERT INTO shelf VALUES ($1, $2, $3, $4)", *values)

    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        for slot in slots:
            where = "job_id = $1 AND no = $2 AND fence = $3"
            await connection.execute(f"DELETE FROM shelf WHERE {where}", slot.job_id, slot.no, slot.fence)

    async def back(self, connection: asyncpg.Connection, names: Sequence[Name], most: int) -> set[Name]:
        room = await self.room(connection, "")
        waits = "SELECT job_id, no, takes FROM windlass.slots WHERE behind = 'shelf:box' ORDER BY job_id LIMIT $1"
        for row in await connection.fetch(waits, most):
            if row["takes"] <= room.left:
                room.left -= row["takes"]
                back = "UPDATE windlass.slots SET behind = NULL, turn = 0 WHERE job_id = $1 AND no = $2"
                await connection.execute(back, row["job_id"], row["no"])
        return {("provider", "")}


class TestShelf(ResourceConformance):
    resource: Resource = Shelf()

    async def stock(self, connection: asyncpg.Connection) -> None:
        await connection.execute("CREATE TABLE shelf (job_id uuid, no int, fence bigint, amount int)")

    def asking(self, slot: Slot, amount: int) -> Slot:
        return slot._replace(takes=amount)


class GivesOutTooMuch(Shelf):
    async def room(self, connection: asyncpg.Connection, line: str) -> ShelfRoom:
        return ShelfRoom(MOST)


class ForgetsTheAmount(Shelf):
    async def take(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        await super().take(connection, [slot._replace(takes=1) for slot in slots])


class KnowsNoFence(Shelf):
    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        for slot in slots:
            await connection.execute("DELETE FROM shelf WHERE job_id = $1 AND no = $2", slot.job_id, slot.no)


class GivesBackTwice(Shelf):
    """It keeps a sum, and subtracts every amount that it receives."""

    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        await super().take(connection, [slot._replace(takes=-slot.takes) for slot in slots])


class BringsNobodyBack(Shelf):
    async def back(self, connection: asyncpg.Connection, names: Sequence[Name], most: int) -> set[Name]:
        return set()


class CountsOnlyWhatWasHeldBefore(Shelf):
    async def room(self, connection: asyncpg.Connection, line: str) -> ShelfRoom:
        room = await super().room(connection, line)
        room.use = lambda slot: None  # type: ignore[method-assign]
        return room


class PaysBackTwice(Money):
    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        await super().give(connection, slots)
        await super().give(connection, slots)


class AsksForOneOfTheKey(Keys):
    async def room(self, connection: asyncpg.Connection, line: str) -> KeysRoom:
        room = await super().room(connection, line)
        lack, use = room.lack, room.use
        room.lack = lambda slot: lack(slot._replace(takes=1))  # type: ignore[method-assign]
        room.use = lambda slot: use(slot._replace(takes=1))  # type: ignore[method-assign]
        return room


_FLAWS: list[tuple[type[ResourceConformance], Resource, str]] = [
    (TestShelf, GivesOutTooMuch(), "test_what_is_held_counts_with_its_whole_amount_in_later_turns"),
    (TestShelf, ForgetsTheAmount(), "test_what_is_held_counts_with_its_whole_amount_in_later_turns"),
    (TestShelf, KnowsNoFence(), "test_an_earlier_holding_of_the_same_step_gives_nothing_back"),
    (TestShelf, GivesBackTwice(), "test_giving_back_twice_is_giving_back_once"),
    (TestShelf, BringsNobodyBack(), "test_a_step_that_lacks_it_can_go_once_enough_was_given_back"),
    (TestShelf, CountsOnlyWhatWasHeldBefore(), "test_no_more_is_let_go_than_there_is"),
    (TestMoney, PaysBackTwice(), "test_giving_back_returns_exactly_what_was_taken"),
    (TestKeys, AsksForOneOfTheKey(), "test_no_more_is_let_go_than_there_is"),
]


@pytest.mark.parametrize(("suite", "flawed", "test"), _FLAWS, ids=lambda given: type(given).__name__)
def test_the_suite_refuses_a_resource_that(suite: type[ResourceConformance], flawed: Resource, test: str) -> None:
    stage: Any = suite()
    stage.resource = flawed
    with pytest.raises(AssertionError):
        getattr(stage, test)()
