"""Reads the SQL text in `sql/*.sql` once, and returns each statement by its name.

    -- name: list_caller                                    begins a statement
    -- fragment: job_columns                                begins a text that statements include
    -- fragment: list_page (found)                          a fragment with a placeholder `:found`
    -- include: job_columns                                 inserts the fragment, indented like this line
    -- include: list_page (found: j.caller = :caller)       fills the placeholder; `;` separates several
    WHERE j.id < :before::uuid                              a parameter by name

Includes are static: the files contain all parts of a statement, and are checked when they are read. A statement has
parameters by name or by number (`$1`), not both. Names become numbers in the order of their first appearance. `bound`
returns a statement with its values, and refuses a missing or unknown name; `ordered` checks this once for all calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any

_PART = re.compile(r"^-- (name|fragment): (\w+)(?: \((\w+(?:, \w+)*)\))?[ \t]*$", re.MULTILINE)
_INCLUDE = re.compile(r"^([ \t]*)-- include: (\w+)(?: \((.+)\))?[ \t]*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*-- ?(?:name|fragment|include) ?:.*$", re.MULTILINE)
# Matches quoted text, comments and casts too, so that they are skipped.
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|::|:([a-z_][a-z0-9_]*)|\$([0-9]+)")


@dataclass(frozen=True, slots=True)
class _Fragment:
    body: str
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The statements of some files: their texts, and how to order the values of named parameters."""

    texts: dict[str, str]
    names: dict[str, tuple[str, ...]]
    values: dict[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]]


@cache
def _loaded() -> _Loaded:
    entries = sorted(files("windlass.store").joinpath("sql").iterdir(), key=lambda entry: entry.name)
    return _load((entry.name, entry.read_text(encoding="utf-8")) for entry in entries)


def _statements() -> dict[str, str]:
    return _loaded().texts


def named(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the statements of these files by name. Parameters must be numbered. A file is its name and its text."""
    loaded = _load(texts)
    for name, found in loaded.names.items():
        raise ValueError(
            f"the SQL statement {name} has parameters by name ({', '.join(found)}); here they go by number"
        )
    return loaded.texts


def sql(name: str) -> str:
    """Return the statement of this name."""
    return _loaded().texts[name]


def names(name: str) -> tuple[str, ...]:
    """Return the statement's named parameters in order; empty if they are numbered."""
    return _loaded().names.get(name, ())


def bound(name: str, /, **values: Any) -> tuple[Any, ...]:
    """Return the statement and its values for a connection: `connection.execute(*bound("…", a=1))`."""
    return sql(name), *arguments(name, values)


def arguments(name: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values in the order of the statement's parameters. Raises TypeError for a missing or unknown name."""
    loaded = _loaded()
    try:
        ordered = loaded.values[name](values)
    except KeyError:
        raise _mismatch(name, values) from None
    if len(ordered) != len(values):
        raise _mismatch(name, values)
    return ordered


@cache
def ordered(name: str, given: tuple[str, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function that puts values from the order of these names into the order of the statement's parameters.

    It serves statements on the hot path: the names are checked once, and a call only picks the values.
    """
    arguments(name, dict.fromkeys(given))
    return itemgetter(*(given.index(one) for one in names(name)))


def _mismatch(name: str, values: Mapping[str, Any]) -> TypeError:
    wanted, given = set(names(name)), set(values)
    if not wanted:
        return TypeError(f"the SQL statement {name} has no parameters by name")
    told = [f"lacks {', '.join(sorted(wanted - given))}" if wanted - given else ""]
    told.append(f"has no {', '.join(sorted(given - wanted))}" if given - wanted else "")
    return TypeError(f"the SQL statement {name} {' and '.join(filter(None, told))}")


def _load(texts: Iterable[tuple[str, str]]) -> _Loaded:
    bodies, fragments = _parts(texts)
    loaded = _Loaded({}, {}, {})
    for name, body in bodies.items():
        text, found = _numbered(name, _expanded(body, fragments, (name,)))
        loaded.texts[name] = text
        if found:
            loaded.names[name] = found
            loaded.values[name] = itemgetter(*found) if len(found) > 1 else _only(found[0])
    return loaded


def _only(name: str) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a getter for one name: an itemgetter of one name returns no tuple."""
    return lambda values: (values[name],)


def _parts(texts: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, _Fragment]]:
    """Return the statements and the fragments of these files, without expanding includes."""
    bodies: dict[str, str] = {}
    fragments: dict[str, _Fragment] = {}
    for file, text in texts:
        for line in _DIRECTIVE.findall(text):
            if not (_PART.fullmatch(line) or _INCLUDE.fullmatch(line)):
                raise ValueError(f"{file}: this line cannot be read: {line.strip()}")
        head, *parts = _PART.split(text)
        if _INCLUDE.search(head):
            raise ValueError(f"{file}: an include stands before the first statement")
        for kind, name, gaps, body in zip(parts[0::4], parts[1::4], parts[2::4], parts[3::4], strict=True):
            if name in bodies or name in fragments:
                raise ValueError(f"two SQL statements or fragments are named {name}")
            if kind == "fragment":
                fragments[name] = _Fragment(body.strip("\n").rstrip(), tuple(gaps.split(", ")) if gaps else ())
            elif gaps:
                raise ValueError(f"{file}: the statement {name} cannot have gaps; a fragment can")
            else:
                bodies[name] = body.strip()
    return bodies, fragments


def _expanded(body: str, fragments: Mapping[str, _Fragment], within: tuple[str, ...]) -> str:
    """Return the text with its includes expanded; `within` names the parts around it."""

    def included(line: re.Match[str]) -> str:
        indent, name, given = line.groups()
        if name in within:
            raise ValueError(f"the SQL fragment {name} includes itself: {' → '.join((*within, name))}")
        if name not in fragments:
            raise ValueError(f"{within[-1]} includes {name}, and there is no such SQL fragment")
        text = _filled(fragments[name], _given(given), f"{within[-1]} includes {name}")
        text = _expanded(text, fragments, (*within, name))
        return "\n".join(indent + one if one else one for one in text.splitlines())

    return _INCLUDE.sub(included, body)


def _given(text: str | None) -> dict[str, str]:
    pairs = [one.partition(":") for one in (text or "").split(";") if one.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _filled(fragment: _Fragment, given: Mapping[str, str], where: str) -> str:
    if set(given) != set(fragment.gaps) or not all(given.values()):
        wanted, told = ", ".join(fragment.gaps) or "none", ", ".join(given) or "none"
        raise ValueError(f"{where}: its gaps are {wanted}, not {told}")
    return _TOKEN.sub(lambda token: given.get(token[1] or "", token[0]), fragment.body)


def _numbered(name: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the statement with numbers in place of names, and the names in the order of their numbers."""
    found: dict[str, int] = {}
    is_numbered = False

    def number(token: re.Match[str]) -> str:
        nonlocal is_numbered
        is_numbered = is_numbered or token[2] is not None
        if token[1] is None:
            return token[0]
        return f"${found.setdefault(token[1], len(found) + 1)}"

    text = _TOKEN.sub(number, text)
    if found and is_numbered:
        raise ValueError(f"the SQL statement {name} has parameters by name and by number")
    return text, tuple(found)
