"""A Membership service as a process of its own, which does as it is told: answers, delays, breaks, hangs, dies.

    python -m tests.access.membership_service

It prints its port. `POST /auth` is the service; `POST /order` is the test's: what each key is answered with, and how.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx

ROOT = Path(__file__).parents[2]


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Key → what it is answered with. `body` is sent as it is if it is text, else as JSON.
    answers: ClassVar[dict[str, dict[str, Any]]] = {}
    unknown: ClassVar[dict[str, Any]] = {"status": 401}
    delay_s = 0.0
    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path == "/order":
            self.order(body)
        elif self.path == "/auth":
            self.auth(body)
        else:
            self.answer(404, "")

    def order(self, body: dict[str, Any]) -> None:
        kind = type(self)
        if body.get("die"):
            os._exit(1)
        if "asked" not in body:
            kind.answers = body.get("answers", kind.answers)
            kind.unknown = body.get("unknown", kind.unknown)
            kind.delay_s = body.get("delay_s", kind.delay_s)
        self.answer(200, kind.asked)

    def auth(self, body: dict[str, Any]) -> None:
        kind = type(self)
        key = body.get("api_key", "")
        kind.asked.append({"key": key, "header": self.headers.get("X-API-Key")})
        time.sleep(kind.delay_s)
        answer = kind.answers.get(key, kind.unknown)
        if answer.get("hang"):
            time.sleep(3600)
        if answer.get("cut"):
            self.connection.close()
            return
        self.answer(answer["status"], answer.get("body", ""))

    def answer(self, status: int, body: Any) -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/order")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


class Remote:
    """The process, from the test's side."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url
        self._client = httpx.AsyncClient(base_url=url, trust_env=False, timeout=60)

    async def order(self, **what: Any) -> None:
        await self._client.post("/order", json=what)

    async def asked(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._client.post("/order", json={"asked": True})).json()
        return found

    async def die(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def close(self) -> None:
        await self._client.aclose()
        if self.process.returncode is None:
            await self.die()


@asynccontextmanager
async def membership_service() -> AsyncIterator[Remote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.access.membership_service", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port = int(await asyncio.wait_for(process.stdout.readline(), 60))
    remote = Remote(process, f"http://127.0.0.1:{port}")
    try:
        yield remote
    finally:
        await remote.close()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
