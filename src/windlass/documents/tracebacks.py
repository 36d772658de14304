"""Shows the traceback of a failed step only to admins, unless `expose_tracebacks` is set.

A traceback names paths, modules and lines of the operator's programs. Callers of a service need only the class and the
message of an error. The command line on a local database shows tracebacks, because its user can read the rows.

An answer depends on the caller of its request. A stream's frames are encoded once for all followers, so there only the
setting decides, and admins find the traceback in the step's document.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import msgspec

from windlass.pure.redact import text_without_frames, without_frames

# The setting `expose_tracebacks`, for every task of the server.
_for_all: ContextVar[bool] = ContextVar("windlass_tracebacks_for_all", default=False)
# Whether the caller of this request is an admin.
_for_caller: ContextVar[bool] = ContextVar("windlass_tracebacks_for_caller", default=False)


def expose_to_all(is_on: bool) -> None:
    """Apply the setting to this context and to every task that it starts later."""
    _for_all.set(is_on)


def expose_to_caller(is_admin: bool) -> None:
    """Show tracebacks in the answer to this request if its caller is an admin."""
    _for_caller.set(is_admin)


def shown_error(error: Any) -> Any:
    """Return a step's or job's error as the caller of this request may see it."""
    return error if _for_caller.get() or _for_all.get() else without_frames(error)


def shown_text(text: str) -> str:
    """Return a handler's log line as the caller of this request may see it."""
    return text if _for_caller.get() or _for_all.get() else text_without_frames(text)


def shown_payload(payload: Any) -> Any:
    """Return an event's payload as the caller of this request may see it."""
    return payload if _for_caller.get() or _for_all.get() else _without(payload)


def streamed_payload(payload: Any) -> Any:
    """Return an event's payload as every follower may see it."""
    return payload if _for_all.get() else _without(payload)


def streamed_error(text: str) -> msgspec.Raw:
    """Return the JSON text of an error as every follower may see it."""
    if _for_all.get() or '"detail"' not in text:
        return msgspec.Raw(text.encode())
    return msgspec.Raw(msgspec.json.encode(without_frames(msgspec.json.decode(text))))


def _without(payload: Any) -> Any:
    if isinstance(payload, Mapping) and "error" in payload:
        return {**payload, "error": without_frames(payload["error"])}
    return payload
