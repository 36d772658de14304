"""The declaration of a metric, and the limit of its labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LABELS_MAX = 500
LABEL_LENGTH_MAX = 128
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Instrument:
    """The declaration of one metric."""

    kind: Literal["counter", "gauge", "histogram", "summary"]
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


class Labels:
    """Distinguishes names up to a limit, and makes them valid labels."""

    def __init__(self, most: int = LABELS_MAX) -> None:
        self._most = most
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, *names: str) -> tuple[str, ...]:
        """Return the names as labels; `other` for each when there are too many."""
        known = self._known.get(names)
        if known is None:
            if len(self._known) >= self._most:
                return (OTHER,) * len(names)
            known = tuple(name[:LABEL_LENGTH_MAX].encode(errors="replace").decode() for name in names)
            self._known[names] = known
        return known
