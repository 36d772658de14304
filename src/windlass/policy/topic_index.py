"""Finds the rules for a topic without looking at all rules.

A glob is filed under its fixed prefix, a topic without wildcards under itself. A topic is looked up once for each
length of prefix that occurs, so the cost does not grow with the number of rules for other topics. Found lists are kept
by topic; a decision never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from windlass.core.glob import Glob

T = TypeVar("T")

KEPT_MAX = 10_000


class TopicIndex(Generic[T]):
    """Rules by topic, in their order. A rule without globs is for every topic."""

    def __init__(self, rules: Sequence[T], globs: Sequence[tuple[Glob, ...]]) -> None:
        self._rules = rules
        self._plain: dict[str, list[int]] = {}
        self._by_prefix: dict[str, list[tuple[int, Glob]]] = {}
        for at, each in enumerate(globs):
            for glob in each or (Glob("*"),):
                if glob.is_plain:
                    self._plain.setdefault(glob.text, []).append(at)
                else:
                    self._by_prefix.setdefault(glob.prefix, []).append((at, glob))
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})
        self._kept: dict[str, tuple[T, ...]] = {}

    def find(self, topic: str) -> tuple[T, ...]:
        """Return the rules for a topic."""
        found = self._kept.get(topic)
        if found is None:
            found = self._search(topic)
            # Threads may do this at once: then a list is made twice, which is harmless.
            if len(self._kept) >= KEPT_MAX:
                self._kept = {}
            self._kept[topic] = found
        return found

    def covering(self, glob: Glob) -> tuple[T, ...]:
        """Return the rules for every topic that the glob matches."""
        found = set(self._plain.get(glob.text, ()))
        for length in self._lengths:
            if length > len(glob.prefix):
                break
            found.update(at for at, other in self._by_prefix.get(glob.prefix[:length], ()) if other.covers(glob))
        return tuple(self._rules[at] for at in sorted(found))

    def _search(self, topic: str) -> tuple[T, ...]:
        found = set(self._plain.get(topic, ()))
        for length in self._lengths:
            if length > len(topic):
                break
            found.update(at for at, glob in self._by_prefix.get(topic[:length], ()) if glob.matches(topic))
        return tuple(self._rules[at] for at in sorted(found))
