"""Replaces what was found by a marker. JSON stays JSON: values and keys change, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from windlass.policy.scan.finding import MARKER
from windlass.policy.scan.flat import FlatJson, Piece
from windlass.policy.scan.reading import Hit, Reading, merged

_MARK = MARKER.encode()


def redacted(reading: Reading, hits: Iterable[Hit]) -> bytes | None:
    """Return the content without what was found, or None if it is no text."""
    spans: dict[Piece | None, list[tuple[int, int]]] = {}
    for hit in hits:
        for piece, start, end in hit.parts:
            spans.setdefault(piece, []).append((start, end))
    flat = reading.flat
    if flat is None:
        return _text(reading.data, spans.get(None, []))
    edits = {piece: found for piece, found in spans.items() if piece is not None}
    return msgspec.json.encode(_edited(msgspec.json.decode(reading.data), flat, edits))


def marked(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Return bytes with the marker in place of each span."""
    parts = []
    at = 0
    for start, end in merged(spans):
        parts += [data[at:start], _MARK]
        at = end
    parts.append(data[at:])
    return b"".join(parts)


def _text(data: bytes, spans: list[tuple[int, int]]) -> bytes | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # UTF-16 and archives: a marker inside of them would be no text of theirs.
    return None if b"\0" in data else marked(data, spans)


def _edited(value: Any, flat: FlatJson, edits: dict[Piece, list[tuple[int, int]]]) -> Any:
    """Return the value with the marker in all parts of its pieces."""
    # Containers are found before any key changes.
    holders = {piece: _holder(value, flat, piece.place) for piece in edits}
    names: dict[int, tuple[Any, dict[str, str]]] = {}
    for piece, spans in edits.items():
        text = marked(flat.data[piece.start : piece.end], spans).decode("utf-8", "replace")
        holder, step = holders[piece], flat.places[piece.place].step
        if piece.is_key:
            names.setdefault(id(holder), (holder, {}))[1][str(step)] = text
        elif holder is None:
            value = text
        else:
            holder[step] = text
    for holder, new in names.values():
        _rename(holder, new)
    return value


def _holder(value: Any, flat: FlatJson, place: int) -> Any:
    """Return the object or list that contains a place, or None for the whole value."""
    steps = []
    at = flat.places[place].parent
    if at < 0:
        return None
    while flat.places[at].parent >= 0:
        steps.append(flat.places[at].step)
        at = flat.places[at].parent
    for step in reversed(steps):
        value = value[step]
    return value


def _rename(holder: dict[str, Any], new: dict[str, str]) -> None:
    """Give keys new names, in their order. Equal names get a number, so that no value is lost."""
    items = list(holder.items())
    holder.clear()
    taken = {key for key, _ in items if key not in new}
    for key, item in items:
        name = text = new.get(key, key)
        number = 2
        while key in new and name in taken:
            name = f"{text} {number}"
            number += 1
        taken.add(name)
        holder[name] = item
