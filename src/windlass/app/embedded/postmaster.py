"""Tells whether a folder's server runs, from its `postmaster.pid`, which may be stale."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from windlass.core.errors import DatabaseUnavailable

PORT = 5432  # names the socket file only: nothing listens on the network
STOP_MAX_S = 30.0


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The server's entries in `postmaster.pid`."""

    pid: int
    socket_dir: str
    status: str


def find_running(path: str | Path) -> str | None:
    """Return the DSN of this folder's server if it runs and is ready, without starting or keeping it."""
    found = running(Path(path).expanduser().absolute())
    return dsn_of(found) if found is not None and found.status == "ready" else None


def dsn_of(server: Postmaster) -> str:
    """Return the DSN of a running server."""
    return f"postgresql://postgres@/postgres?host={quote(server.socket_dir, safe='/')}&port={PORT}"


def running(path: Path) -> Postmaster | None:
    """Return the live server of this folder; None for the file of a dead server, or a pid reused by another program."""
    try:
        lines = (path / "postmaster.pid").read_text().splitlines()
        pid = int(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    if not _is_server_of(pid, path):
        return None
    socket_dir = lines[4].strip() if len(lines) > 4 else ""
    return Postmaster(pid, socket_dir, lines[7].strip() if len(lines) > 7 else "starting")


def is_alive(pid: int) -> bool:
    """Tell whether a process of this number runs; a dead process that is not reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError):  # a killed server keeps its number until its parent reaps it
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def _is_server_of(pid: int, path: Path) -> bool:
    if not is_alive(pid):
        return False
    if os.path.isdir("/proc/self"):
        # The server's working folder is its data folder; its command line is not reliable.
        with contextlib.suppress(OSError):
            return os.path.samefile(f"/proc/{pid}/cwd", path)
    listed = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "postgres" in listed.stdout


def forget_foreign_pid(path: Path) -> None:
    """Remove a pid file whose number now belongs to another program.

    PostgreSQL clears a dead server's file itself. But it refuses to start when the number is alive again as another
    process of its user, which is common after a container restarts.
    """
    file = path / "postmaster.pid"
    with contextlib.suppress(OSError, ValueError, IndexError):
        pid = int(file.read_text().splitlines()[0])
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # a killed server that this process started keeps its number until reaped
        os.kill(pid, 0)
        if not _is_server_of(pid, path):
            file.unlink()


def wait_until_gone(found: Postmaster | None) -> None:
    """Wait until a stopping server is gone."""
    deadline = time.monotonic() + STOP_MAX_S
    while found is not None and is_alive(found.pid):
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(
                f"the PostgreSQL server {found.pid} has been stopping for {STOP_MAX_S:.0f} s", remedy="Try again later"
            )
        time.sleep(0.02)
