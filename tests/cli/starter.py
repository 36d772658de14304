"""Starts `windlass` again and again without reading its modules anew: a process that has them forks for every command.

What runs is the same code in a process of its own, with its own folder, environment and streams. Most of what a short
command costs is the reading of modules, and the tests run hundreds of them. Tests of the start itself, and commands
that run for long, are started from nothing (`Cli.spawn`, `Cli.bare`).
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# What the commands would read one by one.
MODULES = (
    "windlass.cli.main",
    "windlass.cli.session",
    "windlass.cli.local.backend",
    "windlass.client.async_line",
    "windlass.client.async_client",
    "windlass.access.keys",
    "rich.console",
    "rich.table",
    "rich.live",
    "uvloop",
)
LENGTH = struct.Struct("!I")


class Starter:
    """A process that waits to become a command."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="windlass-starter-")
        self._path = str(Path(self._folder.name, "socket"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.listen(64)
        # It ends when this end of the pipe is closed, by `close` or by the death of the tests.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.starter", str(listener.fileno())],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
        listener.close()

    def close(self) -> None:
        """End the process; commands that it started have ended."""
        self._process.communicate(timeout=60)
        self._folder.cleanup()

    def run(
        self, words: list[str], *, cwd: Path, environ: dict[str, str], stdin: str, timeout_s: float
    ) -> tuple[int, str, str]:
        """A command to its end: its exit code and what it printed."""
        asked = json.dumps({"words": words, "cwd": str(cwd), "environ": environ}).encode()
        with (
            socket.socket(socket.AF_UNIX) as line,
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin.encode())
            given.seek(0)
            line.settimeout(timeout_s)
            line.connect(self._path)
            socket.send_fds(line, [LENGTH.pack(len(asked))], [given.fileno(), out.fileno(), err.fileno()])
            line.sendall(asked)
            pid = LENGTH.unpack(_received(line, LENGTH.size))[0]
            try:
                status = LENGTH.unpack(_received(line, LENGTH.size))[0]
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
            return os.waitstatus_to_exitcode(status), _text(out), _text(err)


def _text(file: object) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    return str(file.read().decode())  # type: ignore[attr-defined]


def _received(line: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = line.recv(size - len(got))
        if not more:
            raise EOFError("the starter hung up")
        got += more
    return got


def _serve(listener: socket.socket) -> None:
    """Until the tests have gone: a child for every command, which forks once more and waits for that."""
    import select

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        line, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _attend(line)
            os._exit(0)
        line.close()


def _attend(line: socket.socket) -> None:
    head, streams, _, _ = socket.recv_fds(line, LENGTH.size, 3)
    asked = json.loads(_received(line, LENGTH.unpack(head)[0]))
    pid = os.fork()
    if pid == 0:
        line.close()
        _become(asked["words"], asked["cwd"], asked["environ"], streams)
    line.sendall(LENGTH.pack(pid))
    _, status = os.waitpid(pid, 0)
    line.sendall(LENGTH.pack(status))


def _become(words: list[str], cwd: str, environ: dict[str, str], streams: list[int]) -> None:
    """Be the command, as if it had just been started."""
    from windlass.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The old one may hold what the tests' process wrote to the starter.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    # An interpreter reads this when it starts. The folders may hold extensions.
    sys.path += [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", *sys.path)]
    sys.argv = ["windlass", *words]
    code = 0
    try:
        main()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in MODULES:
        importlib.import_module(name)
    _serve(socket.socket(fileno=int(sys.argv[1])))
