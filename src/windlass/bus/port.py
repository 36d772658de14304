"""The bus carries bells from the process that rings them to the processes that listen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from windlass.core.bell import Bell

# The kind of bell that a listener gets.
B = TypeVar("B", bound=Bell)


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the bus: its connection, the number of lost connections, and the number of waiting bells."""

    is_connected: bool
    losses: int = 0
    waiting: int = 0
    # True before the first use, which opens the connection.
    is_unused: bool = False

    @property
    def can_be_used(self) -> bool:
        """Return whether a bell that is rung now goes out soon."""
        return self.is_connected or self.is_unused


class Bus(Protocol):
    """Carries bells. `testing/bus_conformance.py` tests these promises against every adapter:

    - `ring` returns at once and never raises, in any state of the bus. Callers call it after the commit that the bell
      announces, and the bus sends nothing before the call.
    - Every process that listens to a kind gets its bells, the ringing process too, at least once or not at all. Bells
      may be merged (`core.bell.merged`), split, repeated, reordered and lost.
    - While the bus works, an idle process sends a bell at once. A busy process may gather bells for some milliseconds.
    - `carry` returns what a statement of the database may send with its commit instead of `ring`, if this bus listens
      to the database's notifications. Most buses always return nothing.
    - `listen` returns once the bus listens to the kind, or after a few seconds without a connection. It listens later
      then.
    - A listener gets a bell without details when it starts to listen, and whenever it may have missed a bell.
    - A listener that raises affects no other listener, and does not end the bus.
    - The bus reopens a lost connection after a random, growing wait, so that many processes do not reconnect at the
      same moment.
    - `close` sends the waiting bells, within a second or so, and calls no listener afterwards.
    """

    def ring(self, bells: Sequence[Bell]) -> None:
        """Send these bells."""
        ...

    def carry(self, bells: Sequence[Bell]) -> Sequence[tuple[str, str]]:
        """Return the channels and payloads that a commit may send itself. If empty, call `ring` after the commit."""
        ...

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Call `hear` on the event loop for every bell of this kind from now on. It must not block."""
        ...

    def health(self) -> Health:
        """Return the state of the bus."""
        ...

    async def close(self) -> None:
        """Send the waiting bells, and stop listening."""
        ...
