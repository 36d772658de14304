"""The results: every run of every figure, with the noise during it."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Better = Literal["higher", "lower"]


@dataclass(slots=True)
class Figure:
    """One figure of one system, over several runs."""

    test: str
    system: str
    unit: str
    better: Better
    runs: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    details: list[Mapping[str, Any]] = field(default_factory=list)
    note: str = ""

    @property
    def best(self) -> float:
        """The best run: noise only slows, so it is the nearest to a quiet machine."""
        return max(self.runs) if self.better == "higher" else min(self.runs)

    @property
    def median(self) -> float:
        """The middle run."""
        return statistics.median(self.runs)


class Results:
    """All figures of a benchmark, in the order in which they were first measured."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str], Figure] = {}

    def add(
        self,
        test: str,
        system: str,
        unit: str,
        better: Better,
        value: float,
        others: float,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Record one run."""
        figure = self._figures.setdefault((test, system), Figure(test, system, unit, better))
        figure.runs.append(value)
        figure.others.append(others)
        figure.details.append(detail or {})

    def fail(self, test: str, system: str, reason: str) -> None:
        """Record that a system failed the test."""
        figure = self._figures.setdefault((test, system), Figure(test, system, "", "higher"))
        figure.note = reason

    def get(self, test: str, system: str) -> Figure | None:
        """Return a figure with at least one run."""
        figure = self._figures.get((test, system))
        return figure if figure and figure.runs else None

    def all(self) -> list[Figure]:
        """Return every figure."""
        return list(self._figures.values())
