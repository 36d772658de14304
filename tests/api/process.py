"""`windlass serve api` in a process of its own, spoken to by raw sockets: what it costs can be measured."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

WITHIN_S = 60.0
SECRET = "0123456789abcdef" * 4
MB = 1024 * 1024
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@dataclass
class Server:
    port: int
    pid: int

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def status_of(self, *chunks: bytes) -> int:
        """The status of the answer to these bytes, which a client reads only after it has sent them all."""
        reader, writer = await self.open()
        try:
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
            async with asyncio.timeout(WITHIN_S):
                return int((await reader.readline()).split()[1])
        finally:
            writer.transport.abort()

    async def is_well(self) -> None:
        assert await self.status_of(GET + b"\r\n") == 200

    @property
    def peak_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024


@asynccontextmanager
async def server(dsn: str, folder: Path, *, files: int | None = None, **settings: str) -> AsyncIterator[Server]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
    environ |= {"WINDLASS_DATABASE_URL": dsn, "WINDLASS_SECRET": SECRET, "WINDLASS_HOME": str(folder)}
    environ |= {f"WINDLASS_{name.upper()}": value for name, value in settings.items()}

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files // 2, files))

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "windlass.cli.main", "serve", "api", "--listen", "127.0.0.1:0",
        env=environ, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            url = (await process.stdout.readline()).decode().strip()
        yield Server(int(url.rpartition(":")[2]), process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WITHIN_S):
            await process.wait()
