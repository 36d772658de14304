"""Processes that a benchmark starts, each in a separate session, so that it can be ended with all its children."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
GRACE_S = 5.0


def code_of(tree: Path) -> dict[str, str]:
    """The environment in which processes run the code of this checkout."""
    return {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}


def spawn(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None, folder: Path = ROOT
) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to `log`."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
        )


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Send SIGTERM, wait a little, then kill: only the groups that `spawn` made."""
    for process in processes:
        signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, deadline - time.monotonic()))
        signal_group(process, signal.SIGKILL)
        process.wait()


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a process and to its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
