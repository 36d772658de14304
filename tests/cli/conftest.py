"""The real command line as a process, against a real database with a worker of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.starter import Starter
from windlass.testing.postgres import fresh_database

APP = str(Path(__file__).with_name("film.py"))
COMMAND = [sys.executable, "-m", "windlass.cli.main"]
# What a person's shell may hold must not change what is tested.
KEPT = ("PATH", "HOME", "LANG", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR")


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    def ok(self) -> Said:
        assert self.code == 0, self
        return self


class Cli:
    """Runs `windlass` in a folder, with a database or without."""

    def __init__(self, folder: Path, dsn: str | None = None) -> None:
        self.folder = folder
        self.environ = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environ["WINDLASS_HOME"] = str(folder)
        if dsn is not None:
            self.environ["WINDLASS_DATABASE_URL"] = dsn

    def __call__(self, *words: str, stdin: str = "") -> Said:
        """Run a short command in a process that was forked for it."""
        found = starter().run(list(words), cwd=self.folder, environ=self.environ, stdin=stdin, timeout_s=60)
        return Said(*found)

    def bare(self, *words: str, stdin: str = "") -> Said:
        """Run it as a shell would: a new interpreter, which reads everything anew."""
        done = subprocess.run(
            [*COMMAND, *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environ,
            timeout=60,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def spawn(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self.environ,
        )


@cache
def starter() -> Starter:
    """The one of this process; it ends with it."""
    made = Starter()
    atexit.register(made.close)
    return made


def line_with(process: subprocess.Popen[str], word: str) -> str:
    """The first line of output that has the word; what came before it is dropped."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if word in line:
            return line
    raise AssertionError(f"{word!r} was not said: {''.join(seen)}")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A command line whose database has a worker with the app above."""
    cli = Cli(tmp_path_factory.mktemp("served"), asyncio.run(fresh_database()))
    worker = cli.spawn("worker", APP, "--concurrency", "10")
    try:
        line_with(worker, "Ctrl-C stops")
        yield cli
    finally:
        worker.send_signal(signal.SIGTERM)
        # More than the time that a worker gives its running handlers before it hands them back.
        out, _ = worker.communicate(timeout=120)
        assert worker.returncode == 0, out


@pytest.fixture
def alone(tmp_path: Path) -> Cli:
    """A command line without any database."""
    return Cli(tmp_path)


@pytest.fixture
async def fresh_empty_dsn() -> str:
    """A database without Windlass's schema."""
    return await fresh_database(migrated=False)
