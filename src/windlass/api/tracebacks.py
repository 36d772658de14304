"""Who is shown the traceback of a failed step: nobody but admins, unless `expose_tracebacks` is set.

A traceback names paths, modules and lines of the operator's programs. Callers of a service need the class of an error
and its message. The command line on one's own database shows everything: it reads the rows.

A request is answered for its caller. A stream's frames are encoded once for all who follow, so there only the setting
counts, and admins find the traceback in the step's document.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import msgspec

from windlass.pure.redact import text_without_frames, without_frames

# The setting, for every task of the server.
_for_all: ContextVar[bool] = ContextVar("windlass_tracebacks_for_all", default=False)
# Whether the caller of this request is an admin.
_for_caller: ContextVar[bool] = ContextVar("windlass_tracebacks_for_caller", default=False)


def expose_to_all(is_on: bool) -> None:
    """Follow the setting, from here on and in every task that is started from here."""
    _for_all.set(is_on)


def expose_to_caller(is_admin: bool) -> None:
    """Show tracebacks in the answer to this request."""
    _for_caller.set(is_admin)


def shown_error(error: Any) -> Any:
    """A step's or job's error as the caller of this request may see it."""
    return error if _for_caller.get() or _for_all.get() else without_frames(error)


def shown_text(text: str) -> str:
    """A log line of a handler as the caller of this request may see it."""
    return text if _for_caller.get() or _for_all.get() else text_without_frames(text)


def shown_payload(payload: Any) -> Any:
    """An event's payload as the caller of this request may see it."""
    return payload if _for_caller.get() or _for_all.get() else _without(payload)


def streamed_payload(payload: Any) -> Any:
    """An event's payload as it may be sent to all who follow."""
    return payload if _for_all.get() else _without(payload)


def streamed_error(text: str) -> msgspec.Raw:
    """The JSON text of an error as it may be sent to all who follow."""
    if _for_all.get() or '"detail"' not in text:
        return msgspec.Raw(text.encode())
    return msgspec.Raw(msgspec.json.encode(without_frames(msgspec.json.decode(text))))


def _without(payload: Any) -> Any:
    if isinstance(payload, Mapping) and "error" in payload:
        return {**payload, "error": without_frames(payload["error"])}
    return payload
