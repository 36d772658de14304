"""Places at providers, and the provider's rate, pause and breaker.

The held amount is the sum of the places of the HELD rows. A step that needs more places than the provider has waits for
all of them: a provider's places may be reduced while steps wait, and no step may then wait forever.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import asyncpg

from windlass.core.gate import Gate
from windlass.core.slot import Name, Slot
from windlass.store.provider_gate import gate_of, opened_at
from windlass.store.resources.port import Lack
from windlass.store.statements import sql

# The whole line waits: all of its steps need the same provider.
_WAIT = Lack(None)


class PlacesRoom:
    """The free places and requests of one provider."""

    def __init__(self, provider: str, row: Any) -> None:
        self._provider = provider
        self._concurrency: int = row["concurrency"]
        self._left: int = self._concurrency - row["held"]
        self._gate: Gate = gate_of(row)
        self._now: datetime = row["now"]
        self._requests = self._gate.room(self._now)
        self._used = 0
        self._waits_for_places = False

    @property
    def steps(self) -> int | None:
        """The number of steps that fit: each step takes at least one place and one request."""
        return max(0, min(self._left, self._requests - self._used))

    async def read(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Do nothing: the provider's row has everything."""

    def lack(self, slot: Slot) -> Lack | None:
        """Return a lack for the whole line if no place or no request is free."""
        if self._amount(slot) > self._left:
            self._waits_for_places = True
            return _WAIT
        return _WAIT if self._used >= self._requests else None

    def use(self, slot: Slot) -> None:
        """Subtract the step's places and its one request."""
        self._left -= self._amount(slot)
        self._used += 1

    async def close(self, connection: asyncpg.Connection, *, is_left: bool) -> None:
        """Write the requests, and the time at which the granter must check the line without a bell."""
        gate = self._gate.taken(self._used, self._now)
        # A returned place rings a bell; the time at which the provider accepts requests again does not.
        is_timed = is_left and self._left > 0 and not self._waits_for_places
        later = gate.opens_at(self._now) if is_timed else None
        if not self._used:
            await connection.execute(sql("provider_later"), self._provider, later)
            return
        breaker = gate.breaker
        values = (gate.free_at, breaker.failures, opened_at(breaker), breaker.probes, later)
        await connection.execute(sql("provider_pass"), self._provider, *values)

    def _amount(self, slot: Slot) -> int:
        return min(slot.places, self._concurrency)


class NoRoom:
    """The room of a resource that the steps of a line do not need, or that limits none of them."""

    steps: int | None = None

    async def read(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Read nothing."""

    def lack(self, slot: Slot) -> Lack | None:
        """Return None: every step fits."""
        return None

    def use(self, slot: Slot) -> None:
        """Do nothing: the resource has no amounts."""

    async def close(self, connection: asyncpg.Connection, *, is_left: bool) -> None:
        """Write nothing."""


class Places:
    """Grants the places and requests of providers."""

    kinds: tuple[str, ...] = ("provider",)

    async def room(self, connection: asyncpg.Connection, line: str) -> PlacesRoom | NoRoom:
        """Return the provider's room. The provider's row stays locked until the transaction ends."""
        return PlacesRoom(line, await provider_row(connection, line)) if line else NoRoom()

    async def take(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Do nothing: the held rows are summed."""

    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Do nothing: the held rows are summed."""

    async def back(self, connection: asyncpg.Connection, names: Sequence[Name], most: int) -> set[Name]:
        """Return the lines themselves: no step leaves its line for lack of a place."""
        return set(names)


async def provider_row(connection: asyncpg.Connection, name: str) -> Any:
    """Return the provider's row, locked, with the number of held places."""
    row = await connection.fetchrow(sql("provider_gate"), name)
    if row is None:
        # A recipe may name a provider before any process has declared it.
        await connection.execute(sql("provider_make"), name)
        row = await connection.fetchrow(sql("provider_gate"), name)
    return row
