"""A private Restate server from the npm package @restatedev/restate-server."""

import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from bench.process import spawn, stop
from bench.servers.postgres import free_port
from bench.venvs import npm_of

START_LIMIT_S = 60.0


class Restate:
    """One server; it can be stopped and started again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service_port = free_port()
        self._ports = {"ingress": free_port(), "admin": free_port(), "node": free_port()}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The launcher's process id; the server is its child."""
        assert self._process is not None
        return self._process.pid

    @property
    def ingress(self) -> str:
        """The address for invocations."""
        return f"http://127.0.0.1:{self._ports['ingress']}"

    @property
    def admin(self) -> str:
        """The address for registering deployments and querying state."""
        return f"http://127.0.0.1:{self._ports['admin']}"

    def start(self) -> None:
        """Start the server and wait until it reports that it is healthy."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = ["--base-dir", str(self.folder), "--bind-ip", "127.0.0.1", "--listen-mode", "tcp"]
        environment = {
            "RESTATE_INGRESS__BIND_PORT": str(self._ports["ingress"]),
            "RESTATE_ADMIN__BIND_PORT": str(self._ports["admin"]),
            "RESTATE_BIND_PORT": str(self._ports["node"]),
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LOG_FILTER": "warn",
            "DO_NOT_TRACK": "1",
        }
        log = self.folder / "restate.log"
        command = [str(npm_of("restate-server") / "restate-server"), "--no-logo", *place]
        self._process = spawn(command, log=log, environment=environment, folder=self.folder)
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_well():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Restate did not start: see {log}")
            time.sleep(0.2)
        # It reports healthy a little before it accepts invocations.
        time.sleep(1)

    def stop(self) -> None:
        """Stop the server."""
        if self._process:
            stop([self._process])
            self._process = None

    def _is_well(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.admin}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
