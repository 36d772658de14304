"""Globs: texts in which `*` stands for any text and `?` for one character. Matching takes linear time.

`covers` compares two globs: `a*` covers `ab*` and `abc`, so a rule for `a*` leaves nothing for a later rule for `ab*`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WILDCARDS_MAX = 8


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern for a whole text. Case counts."""

    text: str
    # The texts between the stars; a glob without a star has one.
    _parts: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", tuple(self.text.split("*")))

    @property
    def is_plain(self) -> bool:
        """Return whether the glob has no wildcard, so that it matches one text only."""
        return "*" not in self.text and "?" not in self.text

    @property
    def prefix(self) -> str:
        """The text before the first wildcard. Every text that the glob matches begins with it."""
        return self._parts[0].partition("?")[0]

    @property
    def wildcards(self) -> int:
        """The number of wildcards."""
        return self.text.count("*") + self.text.count("?")

    def matches(self, text: str) -> bool:
        """Return whether the glob matches the whole text."""
        return _fits(self._parts, text, "")

    def covers(self, other: Glob) -> bool:
        """Return whether this glob matches everything that the other one matches.

        False may also mean that this is not known. A `?` never covers a `*`, which may stand for more characters.
        """
        return _fits(self._parts, other.text, "*")


def narrower(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """Return globs for texts that both sets match: of each pair, the glob that the other set covers.

    Two globs that overlap without covering one another, such as `a*` and `*b`, are both left out. So the result may
    match less than both sets, and never more than either.
    """
    return _covered(left, right) | _covered(right, left)


def _covered(texts: frozenset[str], by: frozenset[str]) -> frozenset[str]:
    globs = [Glob(text) for text in sorted(by)]
    return frozenset(text for text in texts if any(glob.covers(Glob(text)) for glob in globs))


def _fits(parts: tuple[str, ...], text: str, opaque: str) -> bool:
    """Return whether the parts occur in the text in order, the first at its start and the last at its end.

    The leftmost place of each part leaves most room for the rest, so no other place needs a try.
    """
    head, tail = parts[0], parts[-1]
    if len(parts) == 1:
        return len(head) == len(text) and _is_at(head, text, 0, opaque)
    at, end = len(head), len(text) - len(tail)
    if at > end or not _is_at(head, text, 0, opaque) or not _is_at(tail, text, end, opaque):
        return False
    for part in parts[1:-1]:
        at = _find(part, text, at, end, opaque)
        if at < 0:
            return False
        at += len(part)
    return True


def _find(part: str, text: str, start: int, end: int, opaque: str) -> int:
    if "?" not in part:
        return text.find(part, start, end)
    places = range(start, end - len(part) + 1)
    return next((at for at in places if _is_at(part, text, at, opaque)), -1)


def _is_at(part: str, text: str, at: int, opaque: str) -> bool:
    if "?" not in part:
        return text.startswith(part, at)
    found = text[at : at + len(part)]
    return all(
        wanted == given or (wanted == "?" and given not in opaque) for wanted, given in zip(part, found, strict=True)
    )
