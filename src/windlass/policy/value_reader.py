"""Reads the values of a policy document by the tables of its keys. Every error names the place and the line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from windlass.core.errors import BadExpression, BadPolicy, BadRecipe
from windlass.core.expression import nearest
from windlass.core.glob import WILDCARDS_MAX, Glob
from windlass.policy.keys import SECTIONS, DocumentKey
from windlass.policy.pattern import path_of, pattern_fault
from windlass.policy.predicate import parse_predicate
from windlass.policy.question import TOPIC_PREFIX, fold
from windlass.policy.request_keys import REQUEST_SECTIONS
from windlass.policy.velocity import LABEL_PART
from windlass.policy.when import compile_when
from windlass.recipe.duration import duration_s
from windlass.recipe.yaml_text import line_of

ITEMS_MAX = 1_000
TEXT_CHARS_MAX = 1_000
MAP_MAX = 10_000
JSON_DEPTH_MAX = 32
MONEY_MAX = Decimal(10) ** 12

VELOCITY_PARTS = ("tenant", "topic", "caller", "recipe", "actor_id", "actor_type", "pack_id", "capability")


_GLOB_CHARS = re.compile(r"[^\[\]{}\\\s]+")
_HOST = re.compile(r"[A-Za-z0-9.*?_:-]+")
_ALL_SECTIONS: Mapping[str, Mapping[str, DocumentKey]] = {**SECTIONS, **REQUEST_SECTIONS}


class ValueReader:
    """Reads sections of a document into plain values."""

    def __init__(self, lines: Mapping[str, int]) -> None:
        self.lines = lines
        self._kinds: dict[str, Callable[[DocumentKey, Any, str], Any]] = {
            "text": self._text,
            "word": self._word,
            "words": self._words,
            "texts": self._texts,
            "texts in order": self._texts_in_order,
            "globs": self._texts,
            "topics": self._topics,
            "hosts": self._hosts,
            "patterns": self._patterns,
            "path": self._path,
            "key": self._velocity_key,
            "predicate": self._predicate,
            "when": self._when,
            "flag": self._flag,
            "whole": self._whole,
            "number": self._number,
            "money": self._money,
            "duration": self._duration,
            "json": self._json,
            "map of texts": self._map_of_texts,
            "map of lists": self._map_of_lists,
            "map of numbers": self._map_of_numbers,
            "map of wholes": self._map_of_wholes,
            "section": lambda key, value, place: self.section(key.section, value, place),
            "sections": self._sections,
            "map of sections": self._map_of_sections,
        }

    def bad(self, place: str, message: str, remedy: str | None = None) -> BadPolicy:
        """Return the error for a place of the document."""
        return BadPolicy(message, place=place, line=line_of(self.lines, place), remedy=remedy)

    def line(self, place: str) -> int | None:
        """Return the line of a place."""
        return line_of(self.lines, place)

    def section(self, name: str, value: Any, place: str) -> dict[str, Any]:
        """Read a map with the keys of this section. Keys that are not given are not in the result."""
        keys = _ALL_SECTIONS[name]
        found: dict[str, Any] = {}
        for key, raw in self._map(value, place).items():
            below = f"{place}.{key}" if place else key
            if key not in keys:
                raise self.bad(below, f"there is no key `{key}` here: {nearest(key, keys)}")
            if raw is None:
                # An empty condition would hold for every request.
                raise self.bad(below, "has no value", "Give it one, or leave the key out")
            found[key] = self._kinds[keys[key].kind](keys[key], raw, below)
        for key, spec in keys.items():
            if spec.is_required and key not in found:
                raise self.bad(place, f"has no `{key}`")
        return found

    def _map(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.bad(place, "must be a map, as in `key: value`")
        if len(value) > MAP_MAX:
            raise self.bad(place, f"has {len(value):,} keys; at most {MAP_MAX:,} are allowed")
        return value

    def _list(self, key: DocumentKey, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.bad(place, "must be a list", f"Write [{value}]" if isinstance(value, str) else None)
        if not value and not key.may_be_empty:
            raise self.bad(place, "is an empty list", "Leave the key out")
        if len(value) > ITEMS_MAX:
            raise self.bad(place, f"has {len(value):,} items; at most {ITEMS_MAX:,} are allowed")
        return value

    def _text(self, key: DocumentKey, value: Any, place: str) -> str:
        if value == "" and key.may_be_empty:
            return ""
        return self.text(value, place, min(key.most, TEXT_CHARS_MAX * 2))

    def text(self, value: Any, place: str, most: int = TEXT_CHARS_MAX) -> str:
        """Read a text that is not empty and can be stored and shown."""
        if not isinstance(value, str):
            raise self.bad(place, f"{_shown(value)} is not text", "Put it into quotes")
        text = value.strip()
        if not text or len(text) > most:
            raise self.bad(place, f"must have 1 to {most:,} characters")
        if any(not char.isprintable() and char not in "\n\t" for char in text):
            raise self.bad(place, "has characters that cannot be shown")
        return text

    def _word(self, key: DocumentKey, value: Any, place: str) -> str:
        if not isinstance(value, str) or value.strip().lower() not in key.words:
            raise self.bad(place, f"{_shown(value)} is not known here: {nearest(str(value), key.words)}")
        return value.strip().lower()

    def _words(self, key: DocumentKey, value: Any, place: str) -> frozenset[str]:
        items = enumerate(self._list(key, value, place))
        return frozenset(self._word(key, item, f"{place}[{at}]") for at, item in items)

    def _texts(self, key: DocumentKey, value: Any, place: str) -> frozenset[str]:
        items = enumerate(self._list(key, value, place))
        return frozenset(self.text(item, f"{place}[{at}]") for at, item in items)

    def _texts_in_order(self, key: DocumentKey, value: Any, place: str) -> tuple[str, ...]:
        items = enumerate(self._list(key, value, place))
        return tuple(self.text(item, f"{place}[{at}]") for at, item in items)

    def _topics(self, key: DocumentKey, value: Any, place: str) -> frozenset[str]:
        items = enumerate(self._list(key, value, place))
        return frozenset(self._topic(item, f"{place}[{at}]") for at, item in items)

    def _topic(self, value: Any, place: str) -> str:
        text = self._glob(value, place)
        prefix = Glob(text).prefix
        if not prefix.startswith(TOPIC_PREFIX) and not (TOPIC_PREFIX.startswith(prefix) and not Glob(text).is_plain):
            raise self.bad(
                place,
                f"{text!r} matches no topic, because every topic begins with `{TOPIC_PREFIX}`",
                f"Write {TOPIC_PREFIX}{text}",
            )
        return text

    def _glob(self, value: Any, place: str) -> str:
        text = self.text(value, place)
        if not _GLOB_CHARS.fullmatch(text):
            raise self.bad(place, f"{text!r} is not a glob", "A glob has `*` and `?`, and neither brackets nor spaces")
        if Glob(text).wildcards > WILDCARDS_MAX:
            raise self.bad(place, f"{text!r} has more than {WILDCARDS_MAX} wildcards")
        return text

    def _hosts(self, key: DocumentKey, value: Any, place: str) -> frozenset[str]:
        found = set()
        for at, item in enumerate(self._list(key, value, place)):
            text = self._glob(item, f"{place}[{at}]")
            if not _HOST.fullmatch(text):
                raise self.bad(f"{place}[{at}]", f"{text!r} is not a host", "Write api.example.com or *.example.com")
            found.add(text.lower())
        return frozenset(found)

    def _patterns(self, key: DocumentKey, value: Any, place: str) -> frozenset[str]:
        found = set()
        for at, item in enumerate(self._list(key, value, place)):
            text = self.text(item, f"{place}[{at}]")
            if fault := pattern_fault(text):
                raise self.bad(f"{place}[{at}]", f"the regular expression {fault}")
            found.add(text)
        return frozenset(found)

    def _path(self, key: DocumentKey, value: Any, place: str) -> str:
        path = path_of(self.text(value, place))
        if path is None:
            raise self.bad(place, f"{value!r} is not a path", "Write for example $.mails[*].body")
        return path

    def _velocity_key(self, key: DocumentKey, value: Any, place: str) -> tuple[str, ...]:
        parts = tuple(part.strip() for part in self.text(value, place).split(":"))
        for part in parts:
            is_label = part.startswith(LABEL_PART) and len(part) > len(LABEL_PART)
            if part not in VELOCITY_PARTS and not is_label:
                known = (*VELOCITY_PARTS, "labels.<name>")
                raise self.bad(place, f"{part!r} cannot be counted: {nearest(part, known)}")
        return parts

    def _predicate(self, key: DocumentKey, value: Any, place: str) -> str:
        text = self.text(value, place)
        if parse_predicate(text) is None:
            raise self.bad(place, f"{text!r} is not a predicate", "Write for example delegation.depth > 2")
        return text

    def _when(self, key: DocumentKey, value: Any, place: str) -> str:
        text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else None
        if text is None:
            raise self.bad(place, f"{_shown(value)} is not an expression", "Put it into quotes")
        try:
            return compile_when(text).text
        except BadExpression as error:
            raise self.bad(place, error.message, error.remedy) from None

    def _flag(self, key: DocumentKey, value: Any, place: str) -> bool:
        if not isinstance(value, bool):
            raise self.bad(place, f"{_shown(value)} is neither true nor false")
        return value

    def _whole(self, key: DocumentKey, value: Any, place: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not key.least <= value <= key.most:
            raise self.bad(place, f"{_shown(value)} is not a whole number from {key.least:,} to {key.most:,}")
        return value

    def _number(self, key: DocumentKey, value: Any, place: str) -> float:
        number = self.finite(value, place)
        if not key.least <= number <= key.most:
            raise self.bad(place, f"{_shown(value)} is not a number from {key.least:,} to {key.most:,}")
        return number

    def finite(self, value: Any, place: str) -> float:
        """Read a number that is neither infinite nor NaN."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        raise self.bad(place, f"{_shown(value)} is not a number")

    def _money(self, key: DocumentKey, value: Any, place: str) -> Decimal:
        try:
            amount = Decimal(str(value)) if isinstance(value, int | float | str) else None
        except InvalidOperation:
            amount = None
        if amount is None or isinstance(value, bool) or not amount.is_finite() or not 0 <= amount <= MONEY_MAX:
            raise self.bad(place, f"{_shown(value)} is not an amount of money")
        return amount

    def _duration(self, key: DocumentKey, value: Any, place: str) -> float:
        try:
            seconds = duration_s(value, "")
        except BadRecipe as error:
            raise self.bad(place, error.message, error.remedy) from None
        if seconds < 1:
            raise self.bad(place, f"{_shown(value)} is shorter than a second")
        return seconds

    def _json(self, key: DocumentKey, value: Any, place: str) -> dict[str, Any]:
        stack: list[tuple[Any, int]] = [(self._map(value, place), 0)]
        while stack:
            part, depth = stack.pop()
            if depth > JSON_DEPTH_MAX:
                raise self.bad(place, f"is nested deeper than {JSON_DEPTH_MAX}")
            if isinstance(part, dict):
                stack.extend((each, depth + 1) for each in (*part, *part.values()))
            elif isinstance(part, list):
                stack.extend((each, depth + 1) for each in part)
            elif isinstance(part, str):
                if any("\ud800" <= char <= "\udfff" for char in part):
                    raise self.bad(place, "has text that is not Unicode")
            elif part is not None and not isinstance(part, bool):
                self.finite(part, place)
                if isinstance(part, int) and abs(part) >= 2**63:
                    raise self.bad(place, "has a whole number of more than 64 bits")
        found: dict[str, Any] = value
        return found

    def _map_of_texts(self, key: DocumentKey, value: Any, place: str) -> dict[str, str]:
        found = {}
        for name, part in self._named(key, value, place).items():
            below = f"{place}.{name}"
            # The value of a label may be empty.
            found[name] = part if part == "" else self.text(part, below)
        return found

    def _map_of_lists(self, key: DocumentKey, value: Any, place: str) -> dict[str, frozenset[str]]:
        return {
            name: self._texts(key, part, f"{place}.{name}") for name, part in self._named(key, value, place).items()
        }

    def _map_of_numbers(self, key: DocumentKey, value: Any, place: str) -> dict[str, float]:
        return {name: self.finite(part, f"{place}.{name}") for name, part in self._named(key, value, place).items()}

    def _map_of_wholes(self, key: DocumentKey, value: Any, place: str) -> dict[str, int]:
        return {
            name: self._whole(key, part, f"{place}.{name}") for name, part in self._named(key, value, place).items()
        }

    def _named(self, key: DocumentKey, value: Any, place: str) -> dict[str, Any]:
        found = self._map(value, place)
        if not found and not key.may_be_empty:
            raise self.bad(place, "is an empty map", "Leave the key out")
        for name in found:
            self.text(name, f"{place}.{name}", 255)
        return found

    def _sections(self, key: DocumentKey, value: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
        """Read a list of maps. Each comes with its place, for later errors."""
        if not isinstance(value, list):
            raise self.bad(place, "must be a list")
        places = [f"{place}[{at}]" for at in range(len(value))]
        return [(below, self.section(key.section, item, below)) for below, item in zip(places, value, strict=True)]

    def _map_of_sections(self, key: DocumentKey, value: Any, place: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for name, part in self._named(key, value, place).items():
            folded = fold(name)
            if folded in found:
                raise self.bad(f"{place}.{name}", "is written twice, in another case")
            found[folded] = self.section(key.section, part, f"{place}.{name}")
        return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
