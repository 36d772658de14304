"""What handlers log while they run: caught where it is written, and the newest kept for whoever looks at the step.

One handler of `logging` on the root logger catches every line that is written where an attempt runs: on the loop, in a
thread, in a process of its own. It costs nothing where nothing is logged. Of each attempt the newest lines wait to be
written down with what else it says (`worker/notes.py`); how often, and how much in all, is what `Pace` allows.
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
# From this level on `ctx.log` is kept whatever the process writes to its own log.
LEVEL = logging.INFO

EVERY_S = 1.0
# Most handlers log a few lines and end: these are written once.
FIRST_AFTER_S = 0.25
# What an attempt may write at once, and after that in each second. A line's row takes more than its text.
BURST_BYTES = 64 * 1024
RATE_BYTES = 256
ROW_BYTES = 256

_FORMATTER = logging.Formatter()


class Tail:
    """The newest lines of an attempt that are not written down yet, and how many older ones were dropped."""

    __slots__ = ("dropped", "lines", "size")

    def __init__(self) -> None:
        self.lines: deque[dict[str, str]] = deque()
        self.dropped = 0
        self.size = 0

    def add(self, line: dict[str, str]) -> None:
        """One more line. The oldest make room for it."""
        self.lines.append(line)
        self.size += _size(line)
        while len(self.lines) > LINES_MAX or (self.size > BYTES_MAX and len(self.lines) > 1):
            self.size -= _size(self.lines.popleft())
            self.dropped += 1

    def join(self, later: Tail) -> None:
        """Add what was logged after this."""
        self.dropped += later.dropped
        for line in later.lines:
            self.add(line)

    def as_json(self) -> dict[str, Any]:
        """What the event says."""
        return {"lines": list(self.lines), "dropped": self.dropped}


class Pace:
    """How often the lines of one attempt may be written: at first once a second, then as its credit allows."""

    __slots__ = ("_at_s", "_credit", "_written_s")

    def __init__(self, now_s: float) -> None:
        self._credit = float(BURST_BYTES)
        self._at_s = now_s
        self._written_s = now_s - EVERY_S + FIRST_AFTER_S

    def wait_s(self, size: int, now_s: float) -> float:
        """In how many seconds so many bytes may be written."""
        short = size + ROW_BYTES - self._credit_at(now_s)
        return max(0.0, short / RATE_BYTES, self._written_s + EVERY_S - now_s)

    def spend(self, size: int, now_s: float) -> None:
        """They are written."""
        self._credit = self._credit_at(now_s) - size - ROW_BYTES
        self._at_s = self._written_s = now_s

    def _credit_at(self, now_s: float) -> float:
        return min(float(BURST_BYTES), self._credit + (now_s - self._at_s) * RATE_BYTES)


def line_of(record: logging.LogRecord) -> dict[str, str]:
    """A record as it is kept: its text without what the step already says, and without keys."""
    attempt = running.get(None)
    text = message_of(record)
    if attempt is not None:
        text = text.removeprefix(prefix(attempt.job_id, attempt.step, attempt.attempt))
    if record.exc_info and record.exc_info[0] is not None:
        text = f"{text}\n{clean(_FORMATTER.formatException(record.exc_info))}"
    if len(text) > LINE_MAX_CHARS:
        # The beginning says what it is, and the end of a traceback what happened.
        text = f"{text[: LINE_MAX_CHARS // 2]} … {text[-LINE_MAX_CHARS // 2 :]}"
    at = record.created if math.isfinite(record.created) else 0.0
    return {
        "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": clean(str(record.levelname)).lower()[:20],
        # PostgreSQL's text has no zero character.
        "text": text.replace("\x00", "\\0"),
    }


class Catch(logging.Handler):
    """Hands what is logged in an attempt to its context."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line, if an attempt runs here."""
        try:
            last = logging.lastResort
            if last is not None and record.levelno >= last.level and logging.getLogger().handlers == [self]:
                # Where nobody has set logging up, warnings go to standard error. They still do.
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
    """Keep what attempts log while this lasts. From `info` on, where the log of the process is ours to set."""
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


# What the levels of the root and of our own loggers were before.
_levels: list[tuple[int, int]] = []


def _let_through(before: tuple[int, int] | None = None) -> None:
    """Let lines from `info` on reach us; or, given what was before, let them no more.

    Our own handler has a level of its own, so the log of the process says no more than it did. And our own loggers keep
    the level that they had: nobody who looks at a step misses them, and they write a line for each request.
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
