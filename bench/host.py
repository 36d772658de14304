"""The client process of one system: it runs in that system's environment, and measures on request.

This file measures every system, so the yardstick is the same. It needs nothing but the standard library.
"""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from bench.counter import Counter
from bench.process import spawn, stop
from bench.system import System, slow_log, slow_release, target

RUN_LIMIT_S = 600.0
READY_LIMIT_S = 90.0
PAUSE_S = 0.005


def percentile(values: list[float], share: float) -> float:
    """Return the value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Host:
    """One system under measurement, with the worker processes started for it."""

    def __init__(self, module: str) -> None:
        self._folder = Path(target().folder)
        self._counter = Counter(Path(os.environ["BENCH_COUNTER"]))
        self._system: System = importlib.import_module(module).Peer()
        self._workers: list[subprocess.Popen[bytes]] = []

    def prepare(self) -> dict[str, Any]:
        """Let the system create its schema."""
        self._system.prepare()
        return {}

    def start(self, workers: int = 1, warm: int = 50) -> dict[str, Any]:
        """Start worker processes, and return when `warm` jobs have run."""
        log = self._folder / "worker.log"
        for _ in range(workers):
            self._workers.append(spawn(self._system.worker(), log=log))
        base = self._counter.total()
        self._system.submit(warm)
        self._counter.wait(base + warm, READY_LIMIT_S)
        self._settle()
        time.sleep(0.3)
        return {"pids": [worker.pid for worker in self._workers]}

    def stop(self) -> dict[str, Any]:
        """End the worker processes."""
        stop(self._workers)
        self._workers.clear()
        return {}

    def jobs(self, count: int) -> dict[str, Any]:
        """Time one-step jobs, from the first submit to the last recorded end."""
        return self._burst(self._system.submit, count, bodies=count)

    def chains(self, count: int) -> dict[str, Any]:
        """Time jobs of three steps, from the first submit to the last recorded end."""
        return self._burst(self._system.chain, count, bodies=3 * count)

    def fan(self, width: int) -> dict[str, Any]:
        """Time one fan-out and its join."""
        started = time.monotonic()
        self._system.fan(width)
        return {"seconds": time.monotonic() - started}

    def latency(self, count: int) -> dict[str, Any]:
        """Time one job at a time on an idle system, from the submit to the seen result, in milliseconds.

        Durable commits are timed in turn with the jobs, so both meet the same noise.
        """
        for _ in range(10):
            self._system.roundtrip()
            has_commits = self._system.commit()
        seen_ms: list[float] = []
        begun_ms: list[float] = []
        commit_ms: list[float] = []
        for _ in range(count):
            started_ns = time.monotonic_ns()
            self._system.roundtrip()
            seen_ms.append((time.monotonic_ns() - started_ns) / 1e6)
            begun_ms.append((self._counter.last_ns() - started_ns) / 1e6)
            time.sleep(PAUSE_S)
            if has_commits:
                started_ns = time.monotonic_ns()
                self._system.commit()
                commit_ms.append((time.monotonic_ns() - started_ns) / 1e6)
                time.sleep(PAUSE_S)
        return {
            "p50_ms": percentile(seen_ms, 0.5),
            "p99_ms": percentile(seen_ms, 0.99),
            "begin_p50_ms": percentile(begun_ms, 0.5),
            "commit_p50_ms": percentile(commit_ms, 0.5) if commit_ms else None,
        }

    def kill(self, limit_s: float, is_host: bool) -> dict[str, Any]:
        """SIGKILL the worker that runs a slow step, and wait until the step begins in another worker.

        With `is_host`, all processes of the worker die, as with their machine; else only the process that runs
        handlers.
        """
        slow_log().write_text("")
        slow_release().unlink(missing_ok=True)
        self._system.slow()
        (_, pid) = self._slow_starts(1, READY_LIMIT_S)[0]
        time.sleep(1.0)
        victim = next(worker for worker in self._workers if pid in _group(worker.pid))
        killed_at = time.monotonic()
        for member in _group(victim.pid) if is_host else [victim.pid]:
            os.kill(member, signal.SIGKILL)
        victim.wait()
        self._workers.remove(victim)
        starts = self._slow_starts(2, limit_s)
        slow_release().touch()
        if len(starts) > 1:
            self._settle()
        return {"seconds": starts[1][0] - killed_at if len(starts) > 1 else None, "watched_s": limit_s}

    def park(self, count: int) -> dict[str, Any]:
        """Park jobs that wait for an external answer."""
        started = time.monotonic()
        self._system.park(count)
        return {"seconds": time.monotonic() - started}

    def close(self) -> dict[str, Any]:
        """Stop the workers and close the system."""
        self.stop()
        self._system.close()
        return {}

    def _burst(self, submit: Callable[[int], None], count: int, bodies: int) -> dict[str, Any]:
        base = self._counter.total()
        started = time.monotonic()
        submit(count)
        submitted = time.monotonic()
        self._counter.wait(base + bodies, RUN_LIMIT_S)
        self._settle()
        return {"seconds": time.monotonic() - started, "submit_s": submitted - started}

    def _settle(self) -> None:
        """Wait until the system has recorded the end of every job: bodies may run before their end is recorded."""
        deadline = time.monotonic() + RUN_LIMIT_S
        while left := self._system.open_jobs():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{left} jobs are still open")
            time.sleep(PAUSE_S)

    def _slow_starts(self, count: int, limit_s: float) -> list[tuple[float, int]]:
        deadline = time.monotonic() + limit_s
        while True:
            lines = [line.split() for line in slow_log().read_text().splitlines()]
            if len(lines) >= count or time.monotonic() > deadline:
                return [(float(at), int(pid)) for at, pid in lines]
            time.sleep(0.02)


def _group(leader: int) -> list[int]:
    """Return the processes of a session that `spawn` made, which die together with a machine."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                members.append(int(entry.name))
    return members


def serve(host: Host, line: Connection) -> None:
    """Answer requests until the other side closes the connection."""
    while True:
        try:
            name, arguments = line.recv()
        except EOFError:
            return
        try:
            line.send({"answer": getattr(host, name)(**arguments)})
        except Exception as error:  # every failure of a measured system belongs in the report
            line.send({"error": f"{type(error).__name__}: {error}"[:400]})


if __name__ == "__main__":
    with Client(os.environ["BENCH_SOCKET"], family="AF_UNIX") as connection:
        try:
            under_test = Host(sys.argv[1])
        except Exception as problem:
            connection.send({"error": f"{type(problem).__name__}: {problem}"[:400]})
            raise
        connection.send({"answer": {}})
        serve(under_test, connection)
        under_test.stop()
