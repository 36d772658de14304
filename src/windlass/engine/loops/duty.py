"""What every loop is: a duty that can be done once, and says when it wants to be done again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Done:
    """How much was done; `is_more` says that a full batch was found, so that there is likely more."""

    count: int
    is_more: bool = False


class Duty(Protocol):
    """One of the engine's duties. Any number of processes may do the same duty at once: each action is fenced."""

    name: str

    async def run_once(self) -> Done:
        """Do one bounded batch of whatever is due."""
        ...
