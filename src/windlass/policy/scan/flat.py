"""JSON as one text for scanners, and the way back from offsets to places.

Every key and every value becomes a line: `key:` and, on the next line, the value without JSON's escapes. So rules that
look for a name and a value see both, `^` and `$` of a pattern stand at the ends of a value, and no rule sees JSON's own
signs. The items of a list have the name of the list. Texts that stand in one list, as the parts of an output that was
cut, are joined in a further text at the end.

    {"user": {"token": "a\\nb"}, "n": 1}  ─►  user:⏎ token:⏎ a⏎ b⏎ ␟⏎ n:⏎ 1⏎ ␟⏎
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from windlass.policy.scan.finding import MARKER

_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}")
# After a value. No rule and no line of base64 goes on over this sign.
_END = b"\n\x1f\n"
# Deeper values are shown at the place of their parent.
_PATH_CHARS_MAX = 400


# A content may have a million of these, and tuples are made three times as fast as frozen dataclasses.
class Piece(NamedTuple):
    """A key or a value in the flat text."""

    start: int
    end: int
    # The number of the place in `FlatJson.places`.
    place: int
    is_key: bool


class Place(NamedTuple):
    """A value of a JSON document: its parent, and its key or index there."""

    parent: int
    step: str | int | None


class FlatJson:
    """A JSON value as a flat text."""

    def __init__(self, value: Any) -> None:
        self.places: list[Place] = [Place(-1, None)]
        self.pieces: list[Piece] = []
        self._parts: list[bytes] = []
        self._size = 0
        # The pieces of each list that are texts, in order, to be joined.
        self._lists: list[list[int]] = []
        self._walk(value)
        self.data = b"".join(self._parts)
        self._starts = [piece.start for piece in self.pieces]

    @property
    def joined(self) -> tuple[bytes, list[tuple[int, Piece]]]:
        """The texts of each list without anything between them, and the piece that begins at each offset."""
        parts: list[bytes] = []
        starts: list[tuple[int, Piece]] = []
        size = 0
        for numbers in self._lists:
            for number in numbers:
                piece = self.pieces[number]
                starts.append((size, piece))
                parts.append(self.data[piece.start : piece.end])
                size += piece.end - piece.start
            parts.append(b"\n")
            size += 1
        return b"".join(parts), starts

    def within(self, start: int, end: int) -> list[tuple[Piece, int, int]]:
        """Return the pieces that a part of the flat text touches, each with offsets into the piece."""
        first_at = max(0, bisect_right(self._starts, start) - 1)
        found = []
        for at in range(first_at, len(self.pieces)):
            piece = self.pieces[at]
            if piece.start >= end:
                break
            first, last = max(start, piece.start), min(end, piece.end)
            if first < last:
                found.append((piece, first - piece.start, last - piece.start))
        return found

    def path(self, place: int, hidden: frozenset[int] = frozenset()) -> str:
        """Return a place as `$.a[0].b`. The keys of hidden places are not shown."""
        steps: list[str] = []
        while (one := self.places[place]).parent >= 0:
            match one.step:
                case int():
                    steps.append(f"[{one.step}]")
                case str() if place in hidden:
                    steps.append(f"['{MARKER}']")
                case str() if _NAME.fullmatch(one.step):
                    steps.append(f".{one.step}")
                case _:
                    steps.append(f"[{_quoted(str(one.step))}]")
            place = one.parent
        text = "$" + "".join(reversed(steps))
        return text if len(text) <= _PATH_CHARS_MAX else text[: text.rfind(".", 0, _PATH_CHARS_MAX)] + "['…']"

    def _walk(self, value: Any) -> None:
        # A stack and no recursion: the depth of a value is not limited by this process's own stack.
        todo: list[tuple[Any, int, str, list[int] | None]] = [(value, 0, "", None)]
        while todo:
            one, place, name, texts = todo.pop()
            step = self.places[place].step
            if isinstance(step, str):
                self._put(step, place, is_key=True, end=b":\n")
            elif name and not isinstance(one, dict | list | tuple):
                self._put(name, -1, is_key=True, end=b":\n")
            match one:
                case dict():
                    for key in reversed(one):
                        self.places.append(Place(place, key))
                        todo.append((one[key], len(self.places) - 1, key, None))
                case list() | tuple():
                    below: list[int] | None = [] if sum(type(item) is str for item in one) > 1 else None
                    if below is not None:
                        self._lists.append(below)
                    for at in range(len(one) - 1, -1, -1):
                        self.places.append(Place(place, at))
                        todo.append((one[at], len(self.places) - 1, name, below))
                case None | bool():
                    pass
                case _:
                    if texts is not None and isinstance(one, str):
                        texts.append(len(self.pieces))
                    self._put(one if isinstance(one, str) else str(one), place, is_key=False, end=_END)

    def _put(self, text: str, place: int, *, is_key: bool, end: bytes) -> None:
        data = text.encode("utf-8", "replace")
        if place >= 0:
            self.pieces.append(Piece(self._size, self._size + len(data), place, is_key))
        self._parts += (data, end)
        self._size += len(data) + len(end)


def pieces_of(starts: Sequence[tuple[int, Piece]], start: int, end: int) -> list[tuple[Piece, int, int]]:
    """Return the pieces of a joined text that a part of it touches, each with offsets into the piece."""
    first_at = max(0, bisect_right(starts, start, key=lambda one: one[0]) - 1)
    found = []
    for at in range(first_at, len(starts)):
        offset, piece = starts[at]
        if offset >= end:
            break
        size = piece.end - piece.start
        first, last = max(0, start - offset), min(size, end - offset)
        if first < last:
            found.append((piece, first, last))
    return found


def _quoted(text: str) -> str:
    shown = text if len(text) <= 60 else text[:60] + "…"
    return "'" + shown.replace("\\", "\\\\").replace("'", "\\'") + "'"
