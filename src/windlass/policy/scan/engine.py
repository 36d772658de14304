"""Compiles regular expressions with RE2, which takes time linear in the text for every expression."""

from __future__ import annotations

from typing import Any

# RE2 keeps what it has learned of a pattern up to this size, and begins again when it is full.
_MEMORY_BYTES = 16 << 20


def compile_pattern(pattern: str) -> Any:
    """Compile an expression with RE2. Raises ValueError if it cannot be compiled."""
    # Imported late: a process that scans nothing needs no engine.
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        raise ValueError(text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)) from None
