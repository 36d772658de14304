"""Keyed limits: steps of all jobs with one concurrency key share the limit that their recipes declare.

The held amount is the sum of what the HELD rows take. A smaller step never overtakes the first step in a key's line.
Otherwise a large step would wait for as long as small steps arrive.
"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from windlass.core.slot import BEHIND_KEY, Name, Slot
from windlass.store.resources.port import Lack
from windlass.store.statements import sql

# At most this many steps of one key are at the front of a provider's line.
FRONT_MAX = 100

_BEHIND = Lack(BEHIND_KEY)


class KeysRoom:
    """The held amount of each key, during one turn of the granter."""

    steps: int | None = None

    def __init__(self) -> None:
        # The held amount of each key, and the lowest limit that a holder declares.
        self._held: dict[str, tuple[int, int | None]] = {}
        # The keys for which a step did not fit. Later steps of the same key do not overtake it.
        self._kept: set[str] = set()

    async def read(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Sum up the held amounts of the steps' keys."""
        keys = sorted({slot.key for slot in slots if slot.key})
        rows = await connection.fetch(sql("grant_keys"), keys) if keys else []
        self._held = {row["key"]: (row["held"], row["most"]) for row in rows}

    def lack(self, slot: Slot) -> Lack | None:
        """Check the step's own limit and the limits of all holders of the key."""
        found = self._held.get(slot.key)
        if found is None:
            return None
        held, most = found
        limit = slot.most if most is None else min(most, slot.most)
        if slot.key in self._kept or held + slot.takes > limit:
            self._kept.add(slot.key)
            return _BEHIND
        return None

    def use(self, slot: Slot) -> None:
        """Add the step's amount to its key."""
        found = self._held.get(slot.key)
        if found is not None:
            held, most = found
            self._held[slot.key] = (held + slot.takes, slot.most if most is None else min(most, slot.most))

    async def close(self, connection: asyncpg.Connection, *, is_left: bool) -> None:
        """Write nothing."""


class Keys:
    """Limits the steps that share a concurrency key."""

    kinds: tuple[str, ...] = (BEHIND_KEY,)

    async def room(self, connection: asyncpg.Connection, line: str) -> KeysRoom:
        """Return an empty room. The steps name the keys, not the line."""
        return KeysRoom()

    async def take(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Do nothing: the held rows are summed."""

    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Do nothing: the held rows are summed."""

    async def back(self, connection: asyncpg.Connection, names: Sequence[Name], most: int) -> set[Name]:
        """Move the first steps of each key to the front of their lines, while the key has enough left."""
        await connection.execute(sql("grant_front"), sorted(name for _, name in names), min(FRONT_MAX, most))
        # The statement itself notes the changed lines.
        return set()
