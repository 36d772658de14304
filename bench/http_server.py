"""The processes of the HTTP tests: the API as it ships, and the two clients."""

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

from bench.process import ROOT, code_of, spawn, stop
from bench.servers.postgres import free_port
from bench.session import SystemFailed

WINDLASS = str(Path(sys.executable).with_name("windlass"))
READY_LIMIT_S = 60.0
# The tests measure the capacity of the server, so its limits are out of the way.
OPEN_WIDE = {
    "WINDLASS_SECRET": "a secret of the benchmark that protects nothing",
    "WINDLASS_LIMIT_CAPACITY": "100000000",
    "WINDLASS_LIMIT_FLOOR": "100000000",
    "WINDLASS_QUEUE_DEPTH_MAX": "10000000",
    "WINDLASS_CALLER_DEPTH_MAX": "10000000",
    "WINDLASS_STREAMS_MAX": "5000",
    "WINDLASS_STREAMS_PER_CALLER_MAX": "5000",
}


class Api:
    """One `windlass serve api` process of a checkout, with a key of an administrator."""

    def __init__(
        self, dsn: str, folder: Path, environment: Mapping[str, str] | None = None, *, tree: Path = ROOT
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._tree = tree
        given = {"WINDLASS_DATABASE_URL": dsn, "WINDLASS_HOME": str(folder)}
        self._environment = {**OPEN_WIDE, **code_of(tree), **given, **(environment or {})}
        self.port = free_port()

    def start(self) -> Self:
        """Create the key, start the server, and wait until it answers."""
        create = [WINDLASS, "keys", "create", "--caller", "bench", "--name", "bench", "--scope", "admin"]
        made = subprocess.run(
            create, env={**os.environ, **self._environment}, capture_output=True, text=True, cwd=self._tree, check=False
        )
        if made.returncode:
            raise SystemFailed(f"no key could be made: {made.stderr.strip()[-300:]}")
        self.key = made.stdout.split()[-1]
        serve = [WINDLASS, "serve", "api", "--listen", f"127.0.0.1:{self.port}"]
        log = self._folder / "api.log"
        self._process = spawn(serve, log=log, environment=self._environment, folder=self._tree)
        deadline = time.monotonic() + READY_LIMIT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemFailed(f"the API did not start: {(self._folder / 'api.log').read_text()[-500:]}")
            time.sleep(0.05)
        return self

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def stop(self) -> None:
        """End the process."""
        stop([self._process])

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


class Asker:
    """A process that runs requests, given as JSON lines."""

    def __init__(self, module: str, *arguments: str, log: Path, tree: Path = ROOT) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=tree,
                env={**os.environ, **code_of(tree)},
                start_new_session=True,
            )
        self._module = module

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, **what: Any) -> dict[str, Any]:
        """Run one request."""
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
        """Close its input, and wait until it ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
