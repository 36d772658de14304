"""Lists the processes of this machine, their parents and their groups."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A process as `ps` shows it."""

    pid: int
    parent: int
    group: int
    state: str
    command: str

    @property
    def is_dead(self) -> bool:
        """Tell whether the process is dead and only waits to be reaped."""
        return self.state.startswith("Z")


def listing() -> list[Row]:
    """List every process of this machine."""
    command = ["ps", "-A", "-ww", "-o", "pid=,ppid=,pgid=,state=,command="]
    shown = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    rows = (line.split(None, 4) for line in shown.splitlines())
    return [Row(int(row[0]), int(row[1]), int(row[2]), row[3], row[4] if len(row) > 4 else "") for row in rows]


def children(parent: int, word: str) -> list[int]:
    """Return the live children of a process whose command contains this word."""
    return [row.pid for row in listing() if row.parent == parent and word in row.command and not row.is_dead]


def is_child(pid: int, parent: int) -> bool:
    """Tell whether this process is a live child of that parent: another process may have reused the number."""
    return any(row.pid == pid and row.parent == parent and not row.is_dead for row in listing())


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False when the process is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
