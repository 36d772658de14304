"""The journal of the handlers, outside the database: which process started which attempt, and which attempts ended.

Each process has one file. Each line is one write, so a SIGKILL can cut off no more than the last line. The database can
be wrong about the attempts that ran; the journal cannot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from windlass.worker.context import Context

FOLDER_VARIABLE = "CHAOS_JOURNAL"

_files: dict[int, int] = {}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an attempt: `start`, or `end` when its handler returned a result."""

    word: str
    job_id: UUID
    step: str
    index: int | None
    attempt: int
    pid: int
    at_s: float


@contextmanager
def journal(ctx: Context) -> Iterator[None]:
    """Write that the attempt starts and, unless it raises, that it ends."""
    _write("start", ctx)
    yield
    _write("end", ctx)


def _write(word: str, ctx: Context) -> None:
    pid = os.getpid()
    if pid not in _files:
        path = Path(os.environ[FOLDER_VARIABLE]) / f"{pid}.log"
        _files[pid] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    place = "-" if ctx.index is None else str(ctx.index)
    line = f"{word} {ctx.job_id} {ctx.step} {place} {ctx.attempt} {pid} {time.time():.6f}\n"
    os.write(_files[pid], line.encode())


def read_journal(folder: Path) -> list[Line]:
    """Return every line of every process, in the order of time; a line that was cut off is left out."""
    lines: list[Line] = []
    for path in sorted(folder.glob("*.log")):
        whole, _, _ = path.read_text().rpartition("\n")
        lines.extend(_parsed(text) for text in whole.splitlines())
    return sorted(lines, key=lambda line: line.at_s)


def _parsed(text: str) -> Line:
    word, job_id, step, index, attempt, pid, at_s = text.split(" ")
    place = None if index == "-" else int(index)
    return Line(word, UUID(job_id), step, place, int(attempt), int(pid), float(at_s))
