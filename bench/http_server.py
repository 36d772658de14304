"""The processes of the HTTP tests: the API as it ships, and the two that ask."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from bench.process import ROOT, spawn, stop
from bench.servers.postgres import free_port
from bench.session import SystemFailed

WINDLASS = str(Path(sys.executable).with_name("windlass"))
READY_LIMIT_S = 60.0
# The tests are about what the server can do, so its guards stand wide open.
OPEN_WIDE = {
    "WINDLASS_SECRET": "the benchmark's own secret of no worth to anybody",
    "WINDLASS_LIMIT_CAPACITY": "100000000",
    "WINDLASS_LIMIT_FLOOR": "100000000",
    "WINDLASS_QUEUE_DEPTH_MAX": "10000000",
    "WINDLASS_STREAMS_MAX": "5000",
    "WINDLASS_STREAMS_PER_CALLER_MAX": "5000",
}


class Api:
    """One `windlass serve api` process, with a key of an administrator."""

    def __init__(self, dsn: str, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        given = {"WINDLASS_DATABASE_URL": dsn, "WINDLASS_HOME": str(folder)}
        self._environment = {**OPEN_WIDE, **given, **(environment or {})}
        self.port = free_port()

    def start(self) -> Self:
        """Make the key, start the server, and wait until it answers."""
        create = [WINDLASS, "keys", "create", "--caller", "bench", "--name", "bench", "--scope", "admin"]
        made = subprocess.run(
            create, env={**os.environ, **self._environment}, capture_output=True, text=True, cwd=ROOT, check=False
        )
        if made.returncode:
            raise SystemFailed(f"no key could be made: {made.stderr.strip()[-300:]}")
        self.key = made.stdout.split()[-1]
        serve = [WINDLASS, "serve", "api", "--listen", f"127.0.0.1:{self.port}"]
        self._process = spawn(serve, log=self._folder / "api.log", environment=self._environment)
        deadline = time.monotonic() + READY_LIMIT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemFailed(f"the API did not start: {(self._folder / 'api.log').read_text()[-500:]}")
            time.sleep(0.05)
        return self

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def stop(self) -> None:
        """End it."""
        stop([self._process])

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


class Asker:
    """A process that does what it is told in JSON lines."""

    def __init__(self, module: str, *arguments: str, log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                start_new_session=True,
            )
        self._module = module

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def ask(self, **what: Any) -> dict[str, Any]:
        """Have one thing done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemFailed(f"{self._module} ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SystemFailed(answer["error"])
        return answer

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
