"""One process of the cluster (a worker, an engine, the API, the provider), restarted whenever it ends, as an operator's
supervisor would.

Each member leads a separate process group, with its heartbeat and its handlers' processes. So the processes that it
leaves behind can be found, and no other process is ever touched.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from windlass.testing.chaos.listing import children, listing, send

RESTART_AFTER_S = 0.2


@dataclass(frozen=True, slots=True)
class Exited:
    """A process that ended without being killed."""

    name: str
    pid: int
    code: int
    at_s: float


@dataclass
class Member:
    """A name and a command; at most one process at a time."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    is_stopped: bool = False
    is_wanted: bool = True
    groups: list[int] = field(default_factory=list)
    exits: list[Exited] = field(default_factory=list)
    _is_killed: bool = False
    _ended_s: float = 0.0

    @property
    def is_worker(self) -> bool:
        """Tell whether the member runs steps."""
        return self.name.startswith("worker")

    @property
    def pid(self) -> int | None:
        """The process id, while the process runs."""
        return self.process.pid if self.process is not None and self.process.poll() is None else None

    def start(self) -> None:
        """Start the process."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.environment),
                cwd=self.log.parent,
                start_new_session=True,
            )
        self.groups.append(self.process.pid)
        self.is_stopped = self._is_killed = False

    def supervise(self) -> None:
        """Record a process that ended, and start another process a moment later."""
        if self.process is not None and (code := self.process.poll()) is not None:
            if not self._is_killed and self.is_wanted:
                self.exits.append(Exited(self.name, self.process.pid, code, time.time()))
            self.process, self._ended_s = None, time.monotonic()
        if self.process is None and self.is_wanted and time.monotonic() - self._ended_s > RESTART_AFTER_S:
            self.start()

    def kill(self, *, whole_group: bool = False) -> bool:
        """SIGKILL the process, or its whole group; without the group, its children must notice by themselves."""
        if (pid := self.pid) is None:
            return False
        self._is_killed = True
        # The children first: a heartbeat that outlives its worker hands the worker's steps back at once.
        for child in [one for one in self.everyone() if one != pid] if whole_group else []:
            send(child, signal.SIGKILL)
        return send(pid, signal.SIGKILL)

    def halt(self, *, whole_group: bool) -> int | None:
        """SIGSTOP the process, or its whole group; return the process id, for `go_on`."""
        if (pid := self.pid) is None:
            return None
        for one in self.everyone() if whole_group else [pid]:
            send(one, signal.SIGSTOP)
        self.is_stopped = True
        return pid

    def go_on(self, pid: int) -> None:
        """SIGCONT the processes that `halt` stopped, if they still exist."""
        for row in listing():
            if row.group == pid and not row.is_dead:
                send(row.pid, signal.SIGCONT)
        if self.pid == pid:
            self.is_stopped = False

    def everyone(self) -> list[int]:
        """Return the processes of the current group, the leader among them."""
        pid = self.pid
        return [row.pid for row in listing() if row.group == pid and not row.is_dead]

    def heartbeat(self) -> int | None:
        """Return the process that renews the worker's lease."""
        pid = self.pid
        found = [] if pid is None else children(pid, "windlass.worker.heartbeat")
        return found[0] if found else None

    def busy_child(self) -> int | None:
        """Return a process that the worker started for `cpu=True` handlers."""
        pid = self.pid
        found = [] if pid is None else children(pid, "windlass.worker.child")
        return found[-1] if found else None

    def left_behind(self) -> list[int]:
        """Return the processes of former groups whose leader is gone."""
        gone = set(self.groups) - {self.pid}
        return [row.pid for row in listing() if row.group in gone and not row.is_dead]
