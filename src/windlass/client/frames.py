"""Parses server-sent events: takes bytes in pieces of any length and returns frames, without input or output.

It follows https://html.spec.whatwg.org/multipage/server-sent-events.html with one exception. It also returns frames
with a name or an id but no data, because such frames of a Windlass server have a meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.errors import Broken

# This exceeds every frame of a Windlass server: streams omit payloads above 16 KiB.
FRAME_MAX_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream; `id` is None if the frame has no id."""

    event: str = "message"
    id: str | None = None
    data: str = ""
    retry_ms: int | None = None


class Frames:
    """Takes bytes as they arrive and returns the complete frames."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_first = True
        self._size = 0
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []
        self._retry_ms: int | None = None

    def feed(self, more: bytes) -> list[Frame]:
        """Return the frames that these bytes complete."""
        self._rest += more
        if self._is_first and len(self._rest) >= len(_BOM):
            self._rest, self._is_first = self._rest.removeprefix(_BOM), False
        found: list[Frame] = []
        for line in self._lines():
            self._size += len(line)
            if not line:
                if (frame := self._frame()) is not None:
                    found.append(frame)
                self._forget()
            elif not line.startswith(b":"):
                self._field(line)
        if self._size + len(self._rest) > FRAME_MAX_BYTES:
            raise Broken(f"a frame of the stream has more than {FRAME_MAX_BYTES} bytes")
        return found

    def _lines(self) -> list[bytes]:
        # A final carriage return may be half of a line end, so it is held back until the next bytes arrive.
        held = b"\r" if self._rest.endswith(b"\r") else b""
        text = self._rest[: len(self._rest) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = rest + held
        return lines

    def _field(self, line: bytes) -> None:
        name, _, rest = line.partition(b":")
        value = rest.removeprefix(b" ").decode(errors="replace")
        match name:
            case b"event":
                self._event = value
            case b"data":
                self._data.append(value)
            case b"id" if "\x00" not in value:
                self._id = value
            case b"retry" if value.isascii() and value.isdigit():
                self._retry_ms = int(value)
            case _:
                pass  # the format requires that unknown fields are ignored

    def _frame(self) -> Frame | None:
        if not (self._event or self._data or self._id is not None or self._retry_ms is not None):
            return None
        return Frame(self._event or "message", self._id, "\n".join(self._data), self._retry_ms)

    def _forget(self) -> None:
        self._event, self._id, self._data, self._retry_ms, self._size = "", None, [], None, 0
