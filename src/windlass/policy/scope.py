"""Compares an instruction with the items of a request, so that an agent cannot add other things.

    instruction: "buy groceries for the week"      allowed_categories: {groceries: [food, household]}
    items: [{name: bread, category: food}, {name: card, category: gift-card}]      the second is out of scope

The words of `allowed_categories` that occur in the instruction say which categories are in scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from windlass.policy.document import ScopeMatch
from windlass.policy.question import fold

_PART = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\*|\d+)\]")
_WORD_BREAK = re.compile(r"[\W_]+")
_MISSING = object()


def is_out_of_scope(scope: ScopeMatch, inputs: Mapping[str, Any]) -> bool:
    """Return whether an item is outside of the instruction's scope, or whether that cannot be known."""
    instruction = next(values_at(inputs, scope.instruction_path), _MISSING)
    items = next(values_at(inputs, scope.items_path), _MISSING)
    if not isinstance(instruction, str) or not isinstance(items, list):
        return scope.on_missing_input == "deny"
    said = f" {_words(instruction)} "
    allowed = [names for word, names in scope.allowed_categories.items() if f" {_words(word)} " in said]
    if not allowed:
        return scope.on_ambiguous == "deny"
    aliases = {_words(name): _words(other) for name, other in scope.aliases.items()}
    known = {aliases.get(_words(name), _words(name)) for names in allowed for name in names}
    return any(_category(item, scope, aliases) not in known for item in items)


def values_at(value: Any, path: str) -> Iterator[Any]:
    """Return the values at a path such as `$.mails[*].body`."""
    found = [value]
    for name, index in _PART.findall(path):
        found = [below for each in found for below in _below(each, name, index)]
    return iter(found)


def _below(value: Any, name: str, index: str) -> list[Any]:
    if name:
        return [value[name]] if isinstance(value, Mapping) and name in value else []
    if not isinstance(value, list):
        return []
    if index == "*":
        return value
    return [value[int(index)]] if int(index) < len(value) else []


def _category(item: Any, scope: ScopeMatch, aliases: Mapping[str, str]) -> str | None:
    """Return the category of an item, or None. An item without a category counts by its name."""
    if not isinstance(item, Mapping):
        return None
    for field in (scope.category_path, scope.name_path):
        text = item.get(field)
        if isinstance(text, str) and text.strip():
            return aliases.get(_words(text), _words(text))
    return None


def _words(text: str) -> str:
    return _WORD_BREAK.sub(" ", fold(text)).strip()
