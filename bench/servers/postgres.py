"""A private PostgreSQL for one benchmark run: a fresh cluster in a separate folder, fsync on, stock settings."""

import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from windlass.app.embedded.binaries import find_binaries, server_system

# Only settings that a benchmark with many clients needs; every setting that affects speed stays at its default.
SETTINGS: Mapping[str, str] = {"max_connections": "200"}
START_LIMIT_S = 60.0


def free_port() -> int:
    """Return a loopback port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Postgres:
    """One running server, reached over loopback TCP like a dedicated server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._data.mkdir(parents=True)
        binaries = find_binaries()
        self._bin = binaries.newest
        self._system = server_system(self._data, binaries)
        self._system.own(self._data)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the postmaster; its children are the server's whole load."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str = "postgres") -> str:
        """Return the address of one database of this server."""
        return f"postgresql://bench@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Create the cluster, start the server and wait until it answers."""
        make = [self._bin / "initdb", "-D", self._data, "-U", "bench", "--auth=trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **self._system.popen)
        log = self.folder / "postgres.log"
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        place = ["-D", self._data, "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [self._bin / "postgres", *place, *settings],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **self._system.popen,
            )
        deadline = time.monotonic() + START_LIMIT_S
        ready = [self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: see {log}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server, ending open sessions."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(30)
