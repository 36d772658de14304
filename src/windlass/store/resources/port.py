"""The port of a resource: something that a step must be granted before workers may claim it.

One granter at a time asks the resources for their free amounts, and grants steps while every resource has enough:

    room    opens the resource for one turn of the granter; the rest can only grow until the transaction ends
    take    records that steps hold their amounts; their rows in `slots` already say so
    give    records that steps return their amounts; their rows still say that they hold them
    back    returns steps to the line that left it for lack of the resource, after some of it was returned

The commit of a step's move writes the step's row, and calls `take` and `give` in that transaction. A resource whose
amounts are in that row writes nothing: it sums up the HELD rows. A resource with its own rows writes them there, under
the job, the step and the fence of the slot.

A new resource needs a file here and a line in `registry.py`. `windlass.testing.resource_conformance` tests the
promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import asyncpg

from windlass.core.slot import Name, Slot


class Lack(NamedTuple):
    """The reason why a step cannot be granted now.

    `behind` is what the step then waits behind: BEHIND_KEY, or `kind:name` of the missing resource. The step leaves the
    front of its line until `back` is called for that kind and name, and later steps may pass it. None: the whole line
    waits with it.
    """

    behind: str | None


class Room(Protocol):
    """The rest of a resource, for one turn of the granter.

    `steps` is the highest number of steps that can be granted, for any amounts; None if the line does not limit it.
    """

    @property
    def steps(self) -> int | None:
        """The highest number of steps that can be granted, or None."""
        ...

    async def read(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Read, and lock if necessary, what these steps need. Called once, before the other methods."""
        ...

    def lack(self, slot: Slot) -> Lack | None:
        """Return why there is not enough for this step, or None. The granter asks in the order of the steps."""
        ...

    def use(self, slot: Slot) -> None:
        """Subtract the amounts of a granted step."""
        ...

    async def close(self, connection: asyncpg.Connection, *, is_left: bool) -> None:
        """Write what the turn used besides the steps' amounts. `is_left`: steps still wait in the line."""
        ...


class Resource(Protocol):
    """A resource of which steps hold amounts. It promises:

    1. The held amounts and the amounts that `room` grants never exceed the total. Each step counts with its full
       amount.
    2. A taken amount counts until it is returned. It does not count if its transaction is rolled back.
    3. `give` returns exactly the taken amount.
    4. A second `give`, or a `give` with the fence of an earlier holding, changes nothing.
    5. A step that lacks something gets it after enough was returned.

    All methods are called in a transaction. Only a granter that holds the granter's lock calls `room` and `back`, so no
    other transaction takes anything meanwhile.
    """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of names that `back` gets: their first parts."""
        ...

    async def room(self, connection: asyncpg.Connection, line: str) -> Room:
        """Open the resource for the steps of one line, named by their provider; empty if they need none."""
        ...

    async def take(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Record the amounts of granted steps. Their rows are written."""
        ...

    async def give(self, connection: asyncpg.Connection, slots: Sequence[Slot]) -> None:
        """Return the amounts of these steps. Their rows are locked, and are moved or deleted next."""
        ...

    async def back(self, connection: asyncpg.Connection, names: Sequence[Name], most: int) -> set[Name]:
        """Return steps to their lines that left for lack of these names and can go now, at most `most` for each name.

        Returns what the granter must check next: names of this or another kind, or ("provider", its name) for a line.
        """
        ...
