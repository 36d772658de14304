"""Log lines for people or for machines, each with the job, step, attempt and request that it is about.

The ids come from where the line is written: a handler's context, a request's, or what the caller of the logger gave as
`extra`. So lines of libraries that know nothing of Windlass have them too. A line never fails to be written because of
what is in it, a JSON line is always one line, and what looks like a key is cut short.
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
# In this order, on every line that has them.
IDS = ("job", "step", "index", "attempt", "request_id", "caller")


class Attempted(Protocol):
    """What a line written in a handler is about."""

    job_id: UUID
    step: str
    index: int | None
    attempt: int
    request_id: str | None


# Of the request that is being answered here, and of the handler that is running here. The first two are set by the
# service for each request, the last by the worker for each attempt.
request_id: ContextVar[str | None] = ContextVar("windlass_request_id", default=None)
caller: ContextVar[str | None] = ContextVar("windlass_caller", default=None)
running: ContextVar[Any] = ContextVar("windlass_context")

_KEY = re.compile(r"\b(wl_[0-9A-Za-z]{12}_|whsec_)[0-9A-Za-z+/=]{8,}")
# Whatever could move the cursor, ring, or begin a line that was never written.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
_ENDS = re.compile(r"[\x7f\x85\u2028\u2029]")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def ids_of(record: logging.LogRecord) -> dict[str, Any]:
    """The ids of a line: what it was given itself, then what is known where it is written."""
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
    """How a handler's own lines begin, so that they can be told apart under any logging set-up."""
    return f"[{job}/{step} attempt {attempt}] "


def message_of(record: logging.LogRecord) -> str:
    """What the line says, whatever it was given."""
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
    """Text that can be written: not too long, without keys and passwords, and without halves of characters."""
    if len(text) > TEXT_MAX_CHARS:
        text = f"{text[:TEXT_MAX_CHARS]}… ({len(text):,} characters)"
    if "wl_" in text or "whsec_" in text:
        text = _KEY.sub(r"\1…", text)
    if "postgres" in text or "password" in text.lower():
        text = masked(text)
    return text.encode(errors="replace").decode()


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
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
        # JSON may hold these as they are; to some who read lines they end one.
        return _ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class ConsoleLines(logging.Formatter):
    """A line for people; what a message holds cannot pass for a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; an exception's lines come after it."""
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
    """The one handler that `configure` puts on the root logger; `stream` None is standard error as it is then."""

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
    # A level of its own: a worker lets more through to the root, for those who look at a step.
    lines.setLevel(root.level)
    root.addHandler(lines)
    logging.captureWarnings(True)


def configured() -> tuple[Format, int] | None:
    """The format and level that `configure` set, for a child process to go on with; None if it was not called."""
    found = (handler for handler in logging.getLogger().handlers if isinstance(handler, _Lines))
    return next(((handler.kind, handler.level) for handler in found), None)
