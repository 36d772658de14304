"""A receiver of webhooks, as a process of its own: it can be killed, and it misbehaves as its path says.

`python -m tests.outbound.receiver JOURNAL [PORT]` prints its port, and appends a line of JSON to the journal for every
request that it read, before it answers.

    /ok            204
    /status/N      N; 429 and 503 with Retry-After: 7
    /hang          no answer at all
    /drip          an answer whose body never ends
    /redirect      302 to the metadata service of a cloud
    /big           200 and 10 MB
    /close         the connection ends before an answer
    /half          the connection ends within the head of an answer
    /half-body     the connection ends within the body of a 200
    /endless-head  a head that never ends
    /flaky         any of the above that an honest receiver could do, at random
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

METADATA = "http://169.254.169.254/latest/meta-data/"
_FLAKY = ("ok", "ok", "ok", "status/500", "status/503", "close", "half", "half-body", "hang")


async def _answer(writer: asyncio.StreamWriter, kind: str) -> None:
    match kind.split("/"):
        case ["status", code]:
            after = "Retry-After: 7\r\n" if code in ("429", "503") else ""
            writer.write(f"HTTP/1.1 {code} X\r\n{after}Content-Length: 0\r\n\r\n".encode())
        case ["hang"]:
            await asyncio.sleep(3600)
        case ["drip"]:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.01)
        case ["redirect"]:
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {METADATA}\r\nContent-Length: 0\r\n\r\n".encode())
        case ["big"]:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
            for _ in range(100):
                writer.write(b"x" * 100_000)
                await writer.drain()
        case ["close"]:
            writer.transport.abort()
        case ["half"]:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
        case ["half-body"]:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        case ["endless-head"]:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writer.write(b"X-More: " + b"x" * 10_000 + b"\r\n")
                await writer.drain()
        case _:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def _serve(journal: Path, port: int) -> None:
    log = journal.open("ab", buffering=0)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            path = head[0].split(" ")[1]
            kind = path.split("?")[0].removeprefix("/")
            kind = random.choice(_FLAKY) if kind == "flaky" else kind
            seen = {"path": path, "kind": kind, "headers": headers, "body": body.decode()}
            log.write(json.dumps(seen).encode() + b"\n")
            await _answer(writer, kind)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", port, reuse_address=True)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


class Receiver:
    """The process, from the outside."""

    def __init__(self, journal: Path, port: int = 0) -> None:
        self.journal = journal
        self.port = port
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        self.process = spawn("tests.outbound.receiver", str(self.journal), str(self.port))
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        end(self.process)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def seen(self) -> list[dict[str, Any]]:
        """Every request that it read, in order."""
        # A process that was killed may have written half a line.
        lines = self.journal.read_bytes().split(b"\n") if self.journal.exists() else []
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found


@contextmanager
def receiving(journal: Path) -> Iterator[Receiver]:
    receiver = Receiver(journal)
    try:
        yield receiver
    finally:
        receiver.kill()


def spawn(module: str, *given: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *given], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )


def end(process: subprocess.Popen[str] | None) -> None:
    """SIGKILL, and nothing left of it."""
    if process is not None:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
