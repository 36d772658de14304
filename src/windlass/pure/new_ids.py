"""The port for new ids. `app/entropy.py` has the adapter, and the simulation has its own."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID


class NewIds(Protocol):
    """A source of ids. Each id is unique, and greater than every earlier id of the same source."""

    def new(self) -> UUID:
        """Return a new unique id."""
        ...
