"""Removes secrets from shown texts: passwords from database URLs, tracebacks from errors.

A password is before the host (`//user:password@host`) or in the query (`?password=…`). It may be in a URL or in
PostgreSQL's `key=value` form, alone or within a message. The functions hide too much rather than too little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HIDDEN = "***"
_FRAME = '  File "'
# The heading, each frame, and the indented lines of code and marks below it.
_FRAMES = re.compile(r'^(?:\s*Traceback \(most recent call last\):|\s+File ".*|[ \t]{4,}.*)(?:\n|$)', re.MULTILINE)
_SECRET_KEYS = frozenset({"password", "sslpassword"})
# Up to the last `@`, because a password may contain `@`, escaped or not.
_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@?#]*):[^\s]*@")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_PAIR = re.compile(r"([A-Za-z0-9_%]+)(\s*=\s*)('[^']*'|[^&\s'\"]*)")


def masked(text: str) -> str:
    """Return the text without database passwords."""
    return _PAIR.sub(_pair, _USER.sub(rf"\1:{_HIDDEN}@", text))


def without_frames(error: Any) -> Any:
    """Return a JSON error without traceback frames, which reveal paths and programs of the operator."""
    if isinstance(error, Mapping) and _FRAME in str(error.get("detail", "")):
        return {key: value for key, value in error.items() if key != "detail"}
    return error


def text_without_frames(text: str) -> str:
    """Return a log line without traceback frames; the exception's class and message stay."""
    return _FRAMES.sub("", text) if _FRAME in text else text


def _pair(found: re.Match[str]) -> str:
    key, equals, _ = found.groups()
    # PostgreSQL's clients decode the names of parameters too.
    name = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), key).lower()
    return f"{key}{equals}{_HIDDEN}" if name in _SECRET_KEYS else found.group()
