"""Other readings of a text, in which a secret may hide: base64, archives, UTF-16, compatibility characters.

    a text ─► View(bytes, origin)     `origin` leads from offsets of the view back to the text

A text is unfolded once: base64 inside of base64 stays closed, but an archive inside of base64 is opened. What an
archive may become is limited, and an archive that is larger or cannot be read makes the scan incomplete.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import unicodedata
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from windlass.policy.scan.engine import compile_pattern
from windlass.policy.scan.finding import ScanLimits

Span = tuple[int, int]
Origin = Callable[[int, int], Span]

_GZIP, _ZIP = b"\x1f\x8b\x08", b"PK\x03\x04"
# Long enough for a short secret. Lines of base64 belong together, with plain or escaped ends.
_BASE64 = r"[0-9A-Za-z+/_-]{24,}(?:(?:\r?\n|(?:\\r)?\\n)[0-9A-Za-z+/_-]{4,})*={0,2}"
_LINE_END = re.compile(rb"\r|\n|\\r|\\n")
# Characters that show nothing: soft hyphens, zero widths, marks of direction, fillers, tags.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0000-\U000e007f"
)
_ODD = re.compile(f"[{_UNSEEN}\u2000-\u200a\u2100-\u218b\u2460-\u24ff\u3000\uff01-\uffee\U0001d400-\U0001d7ff]")
_UNSEEN_ONE = re.compile(f"[{_UNSEEN}]")


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a text. `origin` returns the bytes of the text from which a part of the view was made."""

    data: bytes
    origin: Origin


class Unfolded:
    """Counts the bytes that a scan has unfolded, and remembers whether some were left out."""

    def __init__(self, limits: ScanLimits) -> None:
        self.left = limits.unfolded_bytes
        self.files_left = limits.archive_files
        self.is_cut = False

    def take(self, data: bytes) -> bytes:
        """Return the part of the bytes that the limit allows."""
        if len(data) > self.left:
            self.is_cut = True
            data = data[: self.left]
        self.left -= len(data)
        return data


def views(data: bytes, unfolded: Unfolded) -> Iterator[View]:
    """Return every other reading of a text."""
    if data.startswith((_GZIP, _ZIP)):
        whole = (0, len(data))
        for content in _opened(data, unfolded):
            yield View(content, lambda start, end: whole)
    if b"\0" in data:
        yield _without_zeros(data)
    if not data.isascii():
        yield from _plain_characters(data)
    yield from _decoded(data, unfolded)


def _without_zeros(data: bytes) -> View:
    """Return UTF-16 of either order, or of any offset, as the ASCII in it."""
    places = [at for at, byte in enumerate(data) if byte]
    return View(data.replace(b"\0", b""), _by_places(places, data))


def _by_places(places: list[int], data: bytes) -> Origin:
    def origin(start: int, end: int) -> Span:
        last = places[end - 1] + 1
        # The other half of the last character of UTF-16.
        return places[start], last + (data[last : last + 1] == b"\0")

    return origin


def _plain_characters(data: bytes) -> Iterator[View]:
    """Yield the text with compatibility characters in their plain form (NFKC), and without unseen ones."""
    text = data.decode("utf-8", "replace")
    if _ODD.search(text) is None:
        return
    # Every character is replaced for itself, so that places can be found again.
    plain = _ODD.sub(_plain_one, text)
    view = plain.encode("utf-8", "replace")

    starts: list[int] = []
    origins: list[int] = []

    def origin(start: int, end: int) -> Span:
        if not starts:
            at = there = 0
            for char in text:
                starts.append(at)
                origins.append(there)
                at += len(_plain(char).encode("utf-8", "replace")) if _ODD.match(char) else _width(char)
                there += _width(char)
            starts.append(at)
            origins.append(there)
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, end - 1)
        return origins[first], origins[min(last, len(origins) - 1)]

    yield View(view, origin)


def _plain_one(match: re.Match[str]) -> str:
    return _plain(match[0])


@cache
def _plain(char: str) -> str:
    return "" if _UNSEEN_ONE.match(char) else unicodedata.normalize("NFKC", char)


def _width(char: str) -> int:
    code = ord(char)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _decoded(data: bytes, unfolded: Unfolded) -> Iterator[View]:
    """Yield what base64 in the text decodes to: all plain pieces as one view, and each archive as its own."""
    pieces: list[bytes] = []
    starts: list[int] = []
    origins: list[Span] = []
    size = 0
    for match in _base64().finditer(data):
        token = match[0]
        if not _may_be_base64(token):
            continue
        piece = _from_base64(token)
        if not piece:
            continue
        if piece.startswith((_GZIP, _ZIP)):
            span = match.span()
            for content in _opened(piece, unfolded):
                yield View(content, lambda start, end, span=span: span)  # type: ignore[misc]
            continue
        piece = unfolded.take(piece)
        pieces.append(piece)
        starts.append(size)
        origins.append(match.span())
        size += len(piece) + 1
    if not pieces:
        return
    joined = b"\n".join(pieces)

    def origin(start: int, end: int) -> Span:
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
        return origins[first][0], origins[last][1]

    yield View(joined, origin)
    if b"\0" in joined:
        inner = _without_zeros(joined)
        yield View(inner.data, lambda start, end: origin(*inner.origin(start, end)))


@cache
def _base64() -> Any:
    return compile_pattern(_BASE64)


def _may_be_base64(token: bytes) -> bool:
    """Return whether a token is neither a name, a number, hexadecimal digits nor a ruler."""
    if token.islower() or token.isupper() or token.isdigit():
        return False
    return token.count(b"-") + token.count(b"_") <= len(token) // 6


def _from_base64(token: bytes) -> bytes:
    if b"\n" in token or b"\r" in token or b"\\" in token:
        token = _LINE_END.sub(b"", token)
    token = token.rstrip(b"=")
    token = token[: len(token) - (len(token) % 4 == 1)]
    token += b"=" * (-len(token) % 4)
    is_url = b"-" in token or b"_" in token
    try:
        return base64.urlsafe_b64decode(token) if is_url else binascii.a2b_base64(token)
    except (binascii.Error, ValueError):
        return b""


def _opened(data: bytes, unfolded: Unfolded) -> Iterator[bytes]:
    """Yield the contents of a gzip or zip archive, within the limits."""
    if unfolded.files_left <= 0:
        unfolded.is_cut = True
        return
    # An archive that cannot be read counts too: the attempt costs time.
    unfolded.files_left -= 1
    try:
        if data.startswith(_GZIP):
            yield _inflated(data, unfolded)
        else:
            yield from _unzipped(data, unfolded)
    except Exception:
        # Hostile archives make their readers raise errors of many classes.
        # Encrypted, damaged, or a method that this Python does not know: unread.
        unfolded.is_cut = True


def _inflated(data: bytes, unfolded: Unfolded) -> bytes:
    parts = []
    # A gzip file may consist of several members.
    while data.startswith(_GZIP):
        inflater = zlib.decompressobj(wbits=31)
        part = inflater.decompress(data, unfolded.left + 1)
        parts.append(unfolded.take(part))
        if unfolded.is_cut or not inflater.eof:
            unfolded.is_cut = True
            break
        data = inflater.unused_data
    return b"".join(parts)


def _unzipped(data: bytes, unfolded: Unfolded) -> Iterator[bytes]:
    # Imported late: it takes longer than most scans.
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if unfolded.files_left <= 0 or unfolded.left <= 0:
                unfolded.is_cut = True
                return
            unfolded.files_left -= 1
            with archive.open(info) as file:
                yield info.filename.encode("utf-8", "replace") + b"\n" + unfolded.take(file.read(unfolded.left + 1))
