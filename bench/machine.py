"""The load of the machine during a run: CPU by role, memory, and the CPU of foreign processes."""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# A run with less foreign CPU than this is clean.
QUIET_CORES = 0.3


def tree(pids: Iterable[int]) -> list[psutil.Process]:
    """Return the live processes among `pids`, and all their descendants, each once."""
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        try:
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                found.setdefault(process.pid, process)
        except psutil.Error:
            continue
    return list(found.values())


def cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU seconds of the processes and their descendants, including ended ones."""
    total = 0.0
    for process in tree(pids):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def memory_mb(pid: int) -> float:
    """Return the proportional memory (PSS) of one process: shared pages are split among their users."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _machine_busy_s() -> float:
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a stretch of time. `others` is in cores, used by processes outside the benchmark."""

    wall_s: float
    others: float
    cpu_s: Mapping[str, float]


def wait_until_quiet(limit_s: float) -> None:
    """Return when the machine has been nearly idle for a second, or after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        before = _machine_busy_s()
        time.sleep(1)
        if _machine_busy_s() - before < QUIET_CORES:
            return


class Watch:
    """Measures a `with` block. `roles` names the process trees of interest; this process always belongs to the
    benchmark.
    """

    def __init__(self, roles: Mapping[str, Iterable[int]]) -> None:
        self._roles = {role: list(pids) for role, pids in roles.items()}

    def __enter__(self) -> Self:
        self._cpu = self._now()
        self._busy = _machine_busy_s()
        self._started = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall_s = time.monotonic() - self._started
        busy_s = _machine_busy_s() - self._busy
        used = {role: now - self._cpu[role] for role, now in self._now().items()}
        own = used.pop("self")
        others = max(0.0, busy_s - own) / max(wall_s, 1e-6)
        self.load = Load(wall_s=wall_s, others=round(others, 2), cpu_s=used)

    def _now(self) -> dict[str, float]:
        # All roles are descendants of this process, so `self` is the sum of them and of this process.
        return {"self": cpu_s([os.getpid()])} | {role: cpu_s(pids) for role, pids in self._roles.items()}
