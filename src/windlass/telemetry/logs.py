"""Log lines for people or for machines, each with its job, step, attempt and request.

The ids come from the context of the line: a handler's context, a request's, or the `extra` of the logging call. So
lines of libraries that know nothing of Windlass have them too. No content can make a line fail, a JSON line is always
one line, and text that looks like a key is shortened.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TextIO
from uuid import UUID

import msgspec

from windlass.pure.redact import masked

Format = Literal["json", "console"]

TEXT_MAX_CHARS = 32 * 1024
# The ids, in their order on every line.
IDS = ("job", "step", "index", "attempt", "request_id", "caller")


class Attempted(Protocol):
    """The attempt that a handler's line belongs to."""

    job_id: UUID
    step: str
    index: int | None
    attempt: int
    request_id: str | None


# The ids of the current request, and the attempt of the current handler. The service sets the first two for each
# request, and the worker sets the last for each attempt.
request_id: ContextVar[str | None] = ContextVar("windlass_request_id", default=None)
caller: ContextVar[str | None] = ContextVar("windlass_caller", default=None)
running: ContextVar[Any] = ContextVar("windlass_context")

_KEY = re.compile(r"\b(wl_[0-9A-Za-z]{12}_|whsec_)[0-9A-Za-z+/=]{8,}")
# Characters that could move the cursor, ring, or fake the beginning of a line.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
_ENDS = re.compile(r"[\x7f\x85\u2028\u2029]")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def ids_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the ids of a line: its own values take precedence over those of its context."""
    found: dict[str, Any] = {"request_id": request_id.get(), "caller": caller.get()}
    attempt: Attempted | None = running.get(None)
    if attempt is not None:
        found |= {
            "job": str(attempt.job_id),
            "step": attempt.step,
            "index": attempt.index,
            "attempt": attempt.attempt,
            "request_id": attempt.request_id,
        }
    given = vars(record)
    found.update((name, given[name]) for name in IDS if given.get(name) is not None)
    return {name: value for name in IDS if (value := found.get(name)) is not None}


def prefix(job: object, step: object, attempt: object) -> str:
    """Return the prefix of a handler's own lines, which distinguishes them under any logging set-up."""
    return f"[{job}/{step} attempt {attempt}] "


def message_of(record: logging.LogRecord) -> str:
    """Return the message of a line. Arguments that do not fit the message cause no error."""
    try:
        return clean(record.getMessage())
    except Exception:
        return _text(record.msg) + " (its arguments do not fit)"


def _text(value: object) -> str:
    try:
        return clean(str(value))
    except Exception:
        return f"(a {type(value).__name__} that cannot be shown)"


def clean(text: str) -> str:
    """Make text fit to write: shortened, without keys and passwords, and without half characters."""
    if len(text) > TEXT_MAX_CHARS:
        text = f"{text[:TEXT_MAX_CHARS]}… ({len(text):,} characters)"
    if "wl_" in text or "whsec_" in text:
        text = _KEY.sub(r"\1…", text)
    if "postgres" in text or "password" in text.lower():
        text = masked(text)
    return text.encode(errors="replace").decode()


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the line, without its end."""
        ids = ids_of(record)
        message = message_of(record).removeprefix(prefix(ids.get("job"), ids.get("step"), ids.get("attempt")))
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
            **{name: value if isinstance(value, int) else _text(value) for name, value in ids.items()},
        }
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in line and name not in IDS:
                line[name] = value if isinstance(value, int | float | bool) else _text(value)
        if record.exc_info:
            line["error"] = clean(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = clean(self.formatStack(record.stack_info))
        text = msgspec.json.encode(line).decode()
        # JSON may contain these characters, but some readers take them for line ends.
        return _ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class ConsoleLines(logging.Formatter):
    """Formats a record for people. A message cannot fake another line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the line, without its end. The lines of an exception follow it."""
        ids = ids_of(record)
        message = _CONTROL.sub("", message_of(record)).replace("\n", "\n    ")
        if message.startswith(prefix(ids.get("job"), ids.get("step"), ids.get("attempt"))):
            ids = {name: value for name, value in ids.items() if name in ("request_id", "caller")}
        tail = " ".join(f"{name}={_CONTROL.sub('', _text(value))}" for name, value in ids.items())
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        line = f"{at}.{record.msecs:03.0f} {record.levelname} {record.name}: {message}"
        parts = [f"{line}  {tail}" if tail else line]
        if record.exc_info:
            parts.append(clean(self.formatException(record.exc_info)))
        if record.stack_info:
            parts.append(clean(self.formatStack(record.stack_info)))
        return "\n".join(parts)


class _Lines(logging.StreamHandler[TextIO]):
    """The handler that `configure` puts on the root logger; `stream` None is the current standard error."""

    def __init__(self, format: Format, stream: TextIO | None) -> None:
        super().__init__(stream or sys.stderr)
        self.kind: Format = format
        self.setFormatter(JsonLines() if format == "json" else ConsoleLines())


def configure(format: str, level: str | int, stream: TextIO | None = None) -> None:
    """Write the log of this process to standard error in this format, from this level on. The last call counts."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Lines):
            root.removeHandler(handler)
    lines = _Lines("json" if format == "json" else "console", stream)
    root.setLevel(level if isinstance(level, int) else level.upper())
    # The handler has its own level, because a worker lowers the root's level to store more lines with the steps.
    lines.setLevel(root.level)
    root.addHandler(lines)
    logging.captureWarnings(True)


def configured() -> tuple[Format, int] | None:
    """Return the format and level that `configure` set, for a child process; None if it was not called."""
    found = (handler for handler in logging.getLogger().handlers if isinstance(handler, _Lines))
    return next(((handler.kind, handler.level) for handler in found), None)
