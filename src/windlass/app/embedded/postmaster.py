"""Is a folder's server running? What its `postmaster.pid` says, and whether to believe it."""

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
    """What the server says of itself in `postmaster.pid`."""

    pid: int
    socket_dir: str
    status: str


def find_running(path: str | Path) -> str | None:
    """The DSN of the server of this folder if it runs and is ready, without starting or keeping it."""
    found = running(Path(path).expanduser().absolute())
    return dsn_of(found) if found is not None and found.status == "ready" else None


def dsn_of(server: Postmaster) -> str:
    """The DSN of a running server."""
    return f"postgresql://postgres@/postgres?host={quote(server.socket_dir, safe='/')}&port={PORT}"


def running(path: Path) -> Postmaster | None:
    """The live server of this folder. A file left by a dead one, or a number that is another program's, is none."""
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
    """Whether a process of this number runs; one that is dead and not reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError):  # a killed server that nobody has reaped yet still has its number
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def _is_server_of(pid: int, path: Path) -> bool:
    if not is_alive(pid):
        return False
    if os.path.isdir("/proc/self"):
        # The server's working folder is its data folder, whatever its command line looks like.
        with contextlib.suppress(OSError):
            return os.path.samefile(f"/proc/{pid}/cwd", path)
    listed = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "postgres" in listed.stdout


def forget_foreign_pid(path: Path) -> None:
    """Remove a pid file whose number now belongs to another program.

    PostgreSQL clears a dead server's file itself, but it refuses to start when the number is alive again as some
    other process of its user, which is common after a container restarts.
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
    """Wait for a server that is stopping."""
    deadline = time.monotonic() + STOP_MAX_S
    while found is not None and is_alive(found.pid):
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(
                f"the PostgreSQL server {found.pid} has been stopping for {STOP_MAX_S:.0f} s", remedy="Try again later"
            )
        time.sleep(0.02)
