"""The provider's journal of requests and answers, one JSON line each, on disk before the answer goes out.

A checker reads it afterwards. The provider reads it when it restarts, and so forgets nothing. Lines written at the same
time share one `fsync`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec


class Entry(msgspec.Struct, omit_defaults=True):
    """One line.

    `kind`: accepted (new work), repeated (the same key again, and the same work), told (an answer to a poll of
    work; `status`, `way`), cancelled, ended, webhook (one was sent; `event`, `status`, `answer` of the receiver),
    fault (one was played; `way`), begun (the process started).
    """

    kind: str
    at: float
    id: str = ""
    protocol: str = ""
    key: str = ""
    model: str = ""
    webhook: str = ""
    status: str = ""
    way: str = ""
    event: str = ""
    answer: int = 0
    input: Any = None
    extra: Any = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entry)


def read_journal(path: str | Path) -> list[Entry]:
    """Return all complete lines; a crash may have cut the last line."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    lines = text.split(b"\n")
    return [_decoder.decode(line) for line in lines[:-1] if line]


class Journal:
    """Appends entries; `kept` returns once all added entries are on disk."""

    def __init__(self, path: str | Path, *, is_durable: bool = True) -> None:
        self.path = Path(path)
        self._is_durable = is_durable
        _drop_torn_end(self.path)
        self._file = self.path.open("ab", buffering=0)
        self._lines: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, entry: Entry) -> None:
        """Add an entry; it is on disk a moment later."""
        self._lines.append(_encoder.encode(entry) + b"\n")
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def kept(self) -> None:
        """Wait until every added entry is on disk."""
        if self._task is not None:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def flush(self) -> None:
        """Write and sync at once, for a process that is about to die."""
        self._put(b"".join(self._lines), self._is_durable)
        self._lines = []

    async def _write(self) -> None:
        try:
            await asyncio.sleep(0)
            while self._lines or self._waiting:
                lines, self._lines = self._lines, []
                waiting, self._waiting = self._waiting, []
                if waiting and self._is_durable:
                    await asyncio.to_thread(self._put, b"".join(lines), True)
                else:
                    self._put(b"".join(lines), False)
                for future in waiting:
                    if not future.done():
                        future.set_result(None)
        finally:
            self._task = None

    def _put(self, text: bytes, is_synced: bool) -> None:
        if text:
            self._file.write(text)
        if is_synced:
            os.fdatasync(self._file.fileno()) if hasattr(os, "fdatasync") else os.fsync(self._file.fileno())


def _drop_torn_end(path: Path) -> None:
    """Drop an incomplete last line: the next line would be appended to it."""
    if not path.exists():
        return
    text = path.read_bytes()
    end = text.rfind(b"\n") + 1
    if end < len(text):
        os.truncate(path, end)
