"""The bus: what carries bells from the process that rings to the processes that listen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from windlass.core.bell import Bell

# A kind of bell, which its hearer is called with.
B = TypeVar("B", bound=Bell)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the bus can be used now, how often its connection was lost, and how many bells wait to be sent."""

    is_connected: bool
    losses: int = 0
    waiting: int = 0


class Bus(Protocol):
    """Carries bells. `testing/bus_conformance.py` tests these promises against every adapter:

    - `ring` returns at once and never raises, whatever state the bus is in. It is called after the commit that the
      bell tells of, and nothing is sent before it is called.
    - A bell is heard by every process that listens to its kind, also by the process that rang it, at least once or not
      at all. Bells may be merged (`core.bell.merged`), split, repeated, reordered and lost.
    - While the bus works, an idle process sends a bell at once. A busy one may gather bells for some milliseconds.
    - `carry` gives what a statement of the database may send with its own commit in place of `ring`, if this bus hears
      the database's notifications. Most buses give nothing, ever.
    - `listen` returns once the kind is heard, or after a few seconds without a connection; it is heard later then.
    - A hearer is called with a bell without particulars when it begins to hear, and after every time in which it may
      have missed something.
    - A hearer that raises keeps no other hearer from hearing, and does not end the bus.
    - A lost connection is opened again, after a wait that is random and grows, so that many processes do not come back
      at the same moment.
    - `close` sends the bells that wait, within a second or so, and calls no hearer afterwards.
    """

    def ring(self, bells: Sequence[Bell]) -> None:
        """Send these bells."""
        ...

    def carry(self, bells: Sequence[Bell]) -> Sequence[tuple[str, str]]:
        """The channels and payloads that a commit may send itself now; none: `ring` after it."""
        ...

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Call `hear` for every bell of this kind from now on, on the event loop. It must not block."""
        ...

    def health(self) -> Health:
        """How the bus is."""
        ...

    async def close(self) -> None:
        """Send what waits, and stop hearing."""
        ...
