"""Server-sent events as a pure machine: bytes in, frames out, wherever the bytes were cut.

It reads what https://html.spec.whatwg.org/multipage/server-sent-events.html describes, but for one thing: a frame that
has a name or an id and no data is given too, because ours mean something by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from windlass.core.errors import Broken

# Longer than any frame of ours: payloads above 16 KiB are left out of streams.
FRAME_MAX_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream; `id` is None where the frame names none."""

    event: str = "message"
    id: str | None = None
    data: str = ""
    retry_ms: int | None = None


class Frames:
    """Takes bytes as they come and gives the frames that are complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_first = True
        self._size = 0
        self._event = ""
        self._id: str | None = None
        self._data: list[str] = []
        self._retry_ms: int | None = None

    def feed(self, more: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
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
        # A carriage return at the very end may be half of a line's end: the next bytes tell.
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
                pass  # the format says: fields that are not known are left alone

    def _frame(self) -> Frame | None:
        if not (self._event or self._data or self._id is not None or self._retry_ms is not None):
            return None
        return Frame(self._event or "message", self._id, "\n".join(self._data), self._retry_ms)

    def _forget(self) -> None:
        self._event, self._id, self._data, self._retry_ms, self._size = "", None, [], None, 0
