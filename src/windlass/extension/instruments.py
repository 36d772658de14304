"""The metrics of an extension, in the registry of its process; without a registry they do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.core.errors import Broken


class Instruments:
    """The instruments of one extension, by name. `found` is None in a process without metrics."""

    def __init__(self, extension: str, declared: Mapping[str, Any], found: Mapping[str, Any] | None) -> None:
        self._extension = extension
        self._declared = declared
        self._found = found

    def count(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""
        if (one := self._one(name, "counter", labels)) is not None:
            one.inc(amount)

    def observe(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Record a value in a histogram."""
        if (one := self._one(name, "histogram", labels)) is not None:
            one.observe(value)

    def show(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Set a gauge."""
        if (one := self._one(name, "gauge", labels)) is not None:
            one.set(value)

    def _one(self, name: str, kind: str, labels: Mapping[str, str]) -> Any:
        declared = self._declared.get(name)
        if declared is None or declared.kind != kind or set(labels) != set(declared.labels):
            raise Broken(
                f"the extension {self._extension} declares no {kind} {name!r} with the labels {sorted(labels)}"
            )
        if self._found is None:
            return None
        return self._found[name].labels(**labels) if labels else self._found[name]
