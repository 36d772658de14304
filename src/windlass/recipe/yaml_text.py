"""Reads YAML and JSON with limits: no tags, no duplicate keys, no multiplying aliases. Records the line of every value.

Plain scalars have their JSON meaning: `yes`, `12:30` and `2024-01-01` are text. So a document means the same in YAML
and in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from windlass.core.errors import BadRecipe, TooLarge

DOCUMENT_BYTES_MAX = 4 << 20
VALUES_MAX = 400_000
DEPTH_MAX = 64

Lines = dict[str, int]

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
# This loader turns every scalar into text; this module decides its meaning.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_DIGITS_MAX = 1000


def read_document(source: str | bytes, *, has_aliases: bool = True) -> tuple[Any, Lines]:
    """Return the value of a document, and the starting line of each of its parts by place.

    Without `has_aliases` an anchor or an alias is refused, because a small text could stand for a large value.
    """
    if len(source) > DOCUMENT_BYTES_MAX:
        raise TooLarge(f"a document of {len(source):,} bytes; at most {DOCUMENT_BYTES_MAX:,} are allowed")
    text = _decoded(source)
    if text.lstrip()[:1] == "{":
        # JSON has escapes that YAML reads differently, so JSON text is parsed as JSON.
        try:
            return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant), {}
        except RecursionError:
            raise BadRecipe(f"nested deeper than {DEPTH_MAX}") from None
        except ValueError:
            pass
    try:
        _check_shape(text, has_aliases)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _unreadable(error) from None
    reader = _Reader()
    return (None if root is None else reader.value(root, "", 0)), reader.lines


def _decoded(source: str | bytes) -> str:
    if isinstance(source, str):
        return source
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRecipe(f"the document is not UTF-8: {error.reason} at byte {error.start}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise BadRecipe(f"the key {key!r} is written twice")
        out[key] = value
    return out


def _no_constant(name: str) -> Any:
    raise BadRecipe(f"{name} is not a JSON number")


def _check_shape(text: str, has_aliases: bool) -> None:
    """Refuse tags, and limit the depth before a tree is built: building it needs a stack as deep as the document."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if count > VALUES_MAX:
            raise TooLarge(f"the document has too many values{_on_line(event.start_mark)}")
        if getattr(event, "tag", None) is not None:
            raise BadRecipe(f"the tag {event.tag} is not supported{_on_line(event.start_mark)}")
        if not has_aliases and getattr(event, "anchor", None) is not None:
            raise BadRecipe(
                f"anchors and aliases (`&name`, `*name`) are not supported here{_on_line(event.start_mark)}",
                remedy="Write the value out; put a text that begins with * or & into quotes",
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise BadRecipe(f"nested deeper than {DEPTH_MAX}{_on_line(event.start_mark)}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Reader:
    """Converts YAML nodes to values, and counts each node as often as it is used."""

    def __init__(self) -> None:
        self.lines: Lines = {}
        self.count = 0

    def value(self, node: yaml.Node, place: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(place, line)
        self.count += 1
        # An alias is the same node again, and a node that contains itself would never end.
        if self.count > VALUES_MAX or depth > DEPTH_MAX:
            raise TooLarge(f"the document has too many values, or aliases that multiply (line {line})")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(part, f"{place}[{at}]", depth + 1) for at, part in enumerate(node.value)]
        out: dict[str, Any] = {}
        for key_node, part in node.value:
            key = self._key(key_node, place)
            if key in out:
                raise BadRecipe(f"the key {key!r} is written twice (line {key_node.start_mark.line + 1})", place=place)
            below = f"{place}.{key}" if place else key
            self.lines[below] = key_node.start_mark.line + 1
            out[key] = self.value(part, below, depth + 1)
        return out

    def _key(self, node: yaml.Node, place: str) -> str:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise BadRecipe(f"a key must be text (line {line})", place=place)
        if node.value == "<<" and not node.style:
            raise BadRecipe(f"`<<` is not supported (line {line})", place=place, remedy="Write the keys out")
        return str(node.value)

    def _scalar(self, node: yaml.ScalarNode, place: str) -> Any:
        text = str(node.value)
        if node.style:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            if len(text) > _DIGITS_MAX:
                raise BadRecipe(f"a number of {len(text):,} digits{_on_line(node.start_mark)}", place=place)
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text


def line_of(lines: Mapping[str, int], place: str) -> int | None:
    """Return the line of a place, or of its nearest ancestor that has a line."""
    while place:
        if place in lines:
            return lines[place]
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    return None


def _unreadable(error: yaml.YAMLError) -> BadRecipe:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return BadRecipe(f"the document cannot be read: {problem}{_on_line(mark)}")


def _on_line(mark: Any) -> str:
    return "" if mark is None else f" (line {mark.line + 1})"
