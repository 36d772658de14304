"""Reads one content in all its views, and leads what is found back to places that can be named and redacted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from windlass.policy.scan.finding import Found, ScanLimits
from windlass.policy.scan.flat import FlatJson, Piece, pieces_of
from windlass.policy.scan.matcher import Matcher
from windlass.policy.scan.view import Unfolded, views

# Escapes behind which the raw text of JSON hides what a rule looks for. Others are short, and rules know them.
_HIDING = (b"\\u", b"\\/")
# Between two texts of a list, or of an object.
_BETWEEN = re.compile(rb'",\s*"')


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found, the bytes that were found, and the parts of values that contain it.

    A part without a piece is a part of the content itself, which is no JSON.
    """

    found: Found
    text: bytes
    parts: tuple[tuple[Piece | None, int, int], ...]


class Reading:
    """A content as scanners read it."""

    def __init__(self, content: bytes, media_type: str, limits: ScanLimits) -> None:
        self.is_truncated = len(content) > limits.scan_bytes
        self.data = content[: limits.scan_bytes] if self.is_truncated else content
        self._limits = limits
        self._is_json = not self.is_truncated and _may_be_json(self.data, media_type)
        self._flat: FlatJson | None = None
        self.value: Any = None

    @property
    def flat(self) -> FlatJson | None:
        """The content as flat JSON, or None if it is no JSON."""
        if self._flat is None and self._is_json:
            try:
                self.value = msgspec.json.decode(self.data)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                self._is_json = False
            else:
                self._flat = FlatJson(self.value)
        return self._flat

    @property
    def text(self) -> bytes:
        """The text for scanners that read no views: flat JSON, or the content."""
        flat = self.flat
        return self.data if flat is None else flat.data

    def hits(self, matcher: Matcher, *, must_be_flat: bool) -> list[Hit]:
        """Return what the rules find. Without `must_be_flat` a look at the raw text may show that it is clean."""
        raw = list(self._found_in(matcher, self.data))
        if self._is_json and not raw and not must_be_flat and self._hides_nothing(matcher):
            return []
        flat = self.flat
        if flat is None:
            return [self.placed(one, text) for one, text in raw]
        hits = [self.placed(one, text) for one, text in self._found_in(matcher, flat.data)]
        hits += self._joined_hits(matcher, flat)
        hits = [hit for hit in hits if hit.parts]
        known = {hit.found.rule for hit in hits}
        missing = [(one, text) for one, text in raw if one.rule not in known]
        if missing and _has_twin_keys(self.data):
            # Of two equal keys only one is in the value, but both are in the stored text.
            hits += [Hit(one, text, ((None, one.start, one.end),)) for one, text in missing]
        return hits

    def placed(self, one: Found, text: bytes | None = None) -> Hit:
        """Return a hit with its parts for something that was found in `text`."""
        if text is None:
            text = self.text[one.start : one.end]
        flat = self.flat
        if flat is None:
            return Hit(one, text, ((None, one.start, one.end),))
        return Hit(one, text, tuple(flat.within(one.start, one.end)))

    def _hides_nothing(self, matcher: Matcher) -> bool:
        """Return whether raw JSON without findings has none behind its escapes, or cut over several texts."""
        data = self.data
        if any(sign in data for sign in _HIDING):
            return False
        joined = data.replace(b'","', b"").replace(b'", "', b"")
        if b'",\n' in joined:
            joined = _BETWEEN.sub(b"", joined)
        if len(joined) < len(data):
            matches = matcher.find(joined)
            return not matches.is_cut and not any(one.rule in matcher.joining for one in matches.found)
        return True

    def _found_in(self, matcher: Matcher, data: bytes) -> Iterator[tuple[Found, bytes]]:
        matches = matcher.find(data)
        self.is_truncated |= matches.is_cut
        for one in matches.found:
            yield one, data[one.start : one.end]
        unfolded = Unfolded(self._limits)
        for view in views(data, unfolded):
            matches = matcher.find(view.data)
            self.is_truncated |= matches.is_cut
            for one in matches.found:
                start, end = view.origin(one.start, one.end)
                moved = Found(one.scanner, one.rule, one.type, start, end, one.severity, one.confidence)
                yield moved, view.data[one.start : one.end]
        self.is_truncated |= unfolded.is_cut

    def _joined_hits(self, matcher: Matcher, flat: FlatJson) -> Iterator[Hit]:
        data, starts = flat.joined
        if not data:
            return
        for one in matcher.find(data).found:
            if one.rule in matcher.joining:
                parts = pieces_of(starts, one.start, one.end)
                if len(parts) > 1:
                    yield Hit(one, data[one.start : one.end], tuple(parts))


def distinct(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits, each rule once at each place."""
    seen: dict[object, Hit] = {}
    for hit in hits:
        places = tuple((None if piece is None else piece.start, start, end) for piece, start, end in hit.parts)
        seen.setdefault((hit.found.scanner, hit.found.rule, places), hit)
    return list(seen.values())


def _may_be_json(data: bytes, media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    if kind:
        return kind == "application/json" or kind.endswith("+json")
    return data[:64].lstrip()[:1] in (b"{", b"[", b'"')


def _has_twin_keys(data: bytes) -> bool:
    """Return whether an object of the JSON has a key twice."""
    twins = False

    def looked_at(pairs: list[tuple[str, Any]]) -> None:
        nonlocal twins
        twins |= len({key for key, _ in pairs}) < len(pairs)

    try:
        json.loads(data, object_pairs_hook=looked_at)
    except (ValueError, RecursionError):
        return True
    return twins


def merged(spans: Iterable[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the parts that spans cover, in order and without overlaps."""
    parts: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if parts and start <= parts[-1][1]:
            parts[-1] = (parts[-1][0], max(parts[-1][1], end))
        else:
            parts.append((start, end))
    return parts
