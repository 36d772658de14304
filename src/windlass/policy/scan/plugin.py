"""Asks the scanner of a plug-in, which runs in a process of its own (`plugin_child.py`).

A scanner that hangs, dies, eats memory, raises or answers nonsense did not answer: `ScannerSilent`. It never counts as
a clean answer. A content that has killed the process three times is not given to it again.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from windlass.policy.keys import SEVERITIES
from windlass.policy.scan.finding import Found
from windlass.policy.scan.port import ScannerSilent, ScanText
from windlass.recipe.framed_process import FramedProcess

DEATHS_MAX = 3
# Contents that have killed a scanner, remembered by their digests.
_DEADLY_MAX = 1_000
_TEXT_MAX = 200
# Settings and addresses of databases are no business of a plug-in.
_PRIVATE = ("WINDLASS_", "DATABASE_URL", "PGPASSWORD")


@dataclass(frozen=True, slots=True)
class PluginLimits:
    """The limits of a plug-in's process."""

    start_s: float = 20.0
    cpu_s: float = 5.0
    wall_s: float = 10.0
    memory_bytes: int = 1 << 30


PLUGIN_LIMITS = PluginLimits()


class PluginScanner:
    """A scanner of a plug-in, behind the port. Threads take turns; the process starts with the first text."""

    def __init__(self, name: str, reference: str, limits: PluginLimits = PLUGIN_LIMITS) -> None:
        self._name = name
        self._limits = limits
        numbers = (limits.cpu_s, limits.wall_s, limits.memory_bytes)
        self._command = [sys.executable, "-m", "windlass.policy.scan.plugin_child", reference, *map(str, numbers)]
        self._lock = threading.Lock()
        self._process: FramedProcess | None = None
        self._owner = os.getpid()
        self._deaths: dict[bytes, int] = {}

    @property
    def name(self) -> str:
        """The name by which rules of policies know the scanner."""
        return self._name

    def scan(self, text: ScanText) -> list[Found]:
        """Return what the scanner found. Raises ScannerSilent."""
        with self._lock:
            digest = hashlib.sha256(text.data).digest()
            if self._deaths.get(digest, 0) >= DEATHS_MAX:
                raise ScannerSilent(f"it has died {DEATHS_MAX} times on this content", has_given_up=True)
            process = self._started()
            body = msgspec.json.encode({"media_type": text.media_type}) + b"\n" + text.data
            reply = process.exchange(body, self._limits.wall_s + 1.0)
            if reply is None:
                self._bury(digest)
            return self._read(reply, len(text.data))

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> FramedProcess:
        if self._owner != os.getpid():
            # The process belongs to the one that forked this one.
            if self._process is not None:
                self._process.forget()
            self._process, self._owner = None, os.getpid()
        if self._process is None:
            process = FramedProcess(self._command, _environment())
            first = process.exchange(b"", self._limits.start_s)
            reason = "it did not start" if first is None else _started_reason(first, self._name)
            if reason is not None:
                process.process.kill()
                process.kill()
                raise ScannerSilent(reason)
            self._process = process
        return self._process

    def _bury(self, digest: bytes) -> None:
        """Count the death, and raise the error that tells it."""
        self._end()
        deaths = self._deaths[digest] = self._deaths.get(digest, 0) + 1
        if len(self._deaths) > _DEADLY_MAX:
            self._deaths.pop(next(iter(self._deaths)))
        raise ScannerSilent("it died, or took too long or too much memory", has_given_up=deaths >= DEATHS_MAX)

    def _end(self) -> None:
        if self._process is not None:
            self._process.process.kill()
            self._process.kill()
            self._process = None

    def _read(self, reply: bytes | None, size: int) -> list[Found]:
        try:
            answer: Any = msgspec.json.decode(reply or b"")
        except msgspec.DecodeError:
            raise ScannerSilent("its answer cannot be read") from None
        if "error" in answer:
            raise ScannerSilent(str(answer["error"])[:_TEXT_MAX])
        return [self._checked(one, size) for one in answer["found"]]

    def _checked(self, one: list[Any], size: int) -> Found:
        rule, kind, start, end, severity, confidence = one
        is_placed = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= size
        is_named = all(isinstance(text, str) and 0 < len(text) <= _TEXT_MAX for text in (rule, kind))
        is_sure = isinstance(confidence, int | float) and math.isfinite(confidence) and 0 <= confidence <= 1
        if not (is_placed and is_named and is_sure and severity in SEVERITIES):
            raise ScannerSilent("a finding is outside of the text, or has no rule, severity or confidence")
        return Found(self._name, rule, kind, start, end, severity, float(confidence))


def _started_reason(first: bytes, name: str) -> str | None:
    """Return why a process that has answered cannot be used, or None."""
    try:
        answer: Any = msgspec.json.decode(first)
    except msgspec.DecodeError:
        return "its answer cannot be read"
    if "error" in answer:
        return str(answer["error"])[:_TEXT_MAX]
    return None if answer.get("ready") == name else f"its entry point is {name!r}, but its name {answer.get('ready')!r}"


def _environment() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE)}
