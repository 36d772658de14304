"""Keeps the newest log lines of each running attempt, for people who look at the step.

One `logging` handler on the root logger catches every line that is logged where an attempt runs: on the loop, in a
thread, or in a separate process. It costs nothing where nothing is logged. The newest lines of an attempt are written
with its other notes (`worker/notes.py`); `Pace` limits how often, and how much in all.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from windlass.telemetry.logs import clean, configured, message_of, prefix, running

LINES_MAX = 100
BYTES_MAX = 16 * 1024
LINE_MAX_CHARS = 4_000
# `ctx.log` keeps lines from this level on, even if the process's own log does not.
LEVEL = logging.INFO

EVERY_S = 1.0
# Most handlers log a few lines and end. The delay lets one write contain them all.
FIRST_AFTER_S = 0.25
# The bytes that an attempt may write at once, and per second after that. A row costs ROW_BYTES beyond its text.
BURST_BYTES = 64 * 1024
RATE_BYTES = 256
ROW_BYTES = 256

_FORMATTER = logging.Formatter()


class Tail:
    """The newest unwritten lines of an attempt, and the number of older lines that were dropped."""

    __slots__ = ("dropped", "lines", "size")

    def __init__(self) -> None:
        self.lines: deque[dict[str, str]] = deque()
        self.dropped = 0
        self.size = 0

    def add(self, line: dict[str, str]) -> None:
        """Add a line. The oldest lines make room for it."""
        self.lines.append(line)
        self.size += _size(line)
        while len(self.lines) > LINES_MAX or (self.size > BYTES_MAX and len(self.lines) > 1):
            self.size -= _size(self.lines.popleft())
            self.dropped += 1

    def join(self, later: Tail) -> None:
        """Append the lines of a later tail."""
        self.dropped += later.dropped
        for line in later.lines:
            self.add(line)

    def as_json(self) -> dict[str, Any]:
        """Return the payload of the event."""
        return {"lines": list(self.lines), "dropped": self.dropped}


class Pace:
    """Limits how often the lines of one attempt are written: at first once a second, then as its credit allows."""

    __slots__ = ("_at_s", "_credit", "_written_s")

    def __init__(self, now_s: float) -> None:
        self._credit = float(BURST_BYTES)
        self._at_s = now_s
        self._written_s = now_s - EVERY_S + FIRST_AFTER_S

    def wait_s(self, size: int, now_s: float) -> float:
        """Return the seconds until so many bytes may be written."""
        short = size + ROW_BYTES - self._credit_at(now_s)
        return max(0.0, short / RATE_BYTES, self._written_s + EVERY_S - now_s)

    def spend(self, size: int, now_s: float) -> None:
        """Charge the written bytes."""
        self._credit = self._credit_at(now_s) - size - ROW_BYTES
        self._at_s = self._written_s = now_s

    def _credit_at(self, now_s: float) -> float:
        return min(float(BURST_BYTES), self._credit + (now_s - self._at_s) * RATE_BYTES)


def line_of(record: logging.LogRecord) -> dict[str, str]:
    """Convert a record to a stored line: without the prefix that repeats the step's ids, and without secrets."""
    attempt = running.get(None)
    text = message_of(record)
    if attempt is not None:
        text = text.removeprefix(prefix(attempt.job_id, attempt.step, attempt.attempt))
    if record.exc_info and record.exc_info[0] is not None:
        text = f"{text}\n{clean(_FORMATTER.formatException(record.exc_info))}"
    if len(text) > LINE_MAX_CHARS:
        # The beginning names the problem, and the end of a traceback says what happened.
        text = f"{text[: LINE_MAX_CHARS // 2]} … {text[-LINE_MAX_CHARS // 2 :]}"
    at = record.created if math.isfinite(record.created) else 0.0
    return {
        "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": clean(str(record.levelname)).lower()[:20],
        # PostgreSQL's text has no zero character.
        "text": text.replace("\x00", "\\0"),
    }


class Catch(logging.Handler):
    """Hands each log record of an attempt to its context."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line, if an attempt runs here."""
        try:
            last = logging.lastResort
            if last is not None and record.levelno >= last.level and logging.getLogger().handlers == [self]:
                # Where logging is not set up, Python writes warnings to standard error. This handler must not change
                # that.
                last.handle(record)
            attempt = running.get(None)
            if attempt is not None:
                attempt._keep(record)
        except Exception:
            self.handleError(record)


_CATCH = Catch()
_holders = 0


@contextmanager
def caught() -> Iterator[None]:
    """Keep the log lines of attempts inside the block.

    Lowers the root level to `info` where Windlass set up the log.
    """
    global _holders
    if _holders == 0:
        logging.getLogger().addHandler(_CATCH)
        _let_through()
    _holders += 1
    try:
        yield
    finally:
        _holders -= 1
        if _holders == 0:
            logging.getLogger().removeHandler(_CATCH)
            _let_through(_levels.pop() if _levels else None)


# The earlier levels of the root logger and of the `windlass` logger.
_levels: list[tuple[int, int]] = []


def _let_through(before: tuple[int, int] | None = None) -> None:
    """Let lines from `info` on reach the root logger, or restore the earlier levels.

    The process's own log handler has its own level, so the process's log does not grow. The `windlass` logger keeps its
    level: a step's log does not need its lines, and it writes a line for each request.
    """
    root, own = logging.getLogger(), logging.getLogger("windlass")
    if before is not None:
        root.setLevel(before[0])
        own.setLevel(before[1])
    elif configured() is not None and root.level > LEVEL:
        _levels.append((root.level, own.level))
        own.setLevel(own.level or root.level)
        root.setLevel(LEVEL)


def _size(line: dict[str, str]) -> int:
    return len(line["text"].encode()) + len(line["level"]) + len(line["at"])
