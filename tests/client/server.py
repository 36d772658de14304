"""A server as a process of its own, killed and started again at the same address; and both clients as one."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.cli.conftest import Cli, line_with
from windlass import AsyncClient, Client
from windlass.client.async_client import AsyncRemoteJob

SECRET = "a-secret-of-the-tests-that-is-long-enough"
APP = str(Path(__file__).with_name("steps.py"))


class Server:
    """`windlass serve api` at one address, and a worker beside it that goes on when the server dies."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.cli = Cli(folder, dsn)
        self.cli.environ["WINDLASS_SECRET"] = SECRET
        # The first start takes a free port, and each restart the same port.
        self.address = "127.0.0.1:0"
        self.worker = self.spawn("worker", APP, "--concurrency", "20")
        line_with(self.worker, "Ctrl-C stops")
        self.key = self.cli("keys", "create", "--caller", "ana", "--scope", "jobs:write").ok().out.strip()
        self.admin = self.cli("keys", "create", "--caller", "root", "--scope", "admin").ok().out.strip()
        self.api = self.start()

    def spawn(self, *words: str) -> subprocess.Popen[str]:
        return self.cli.spawn(*words)

    def start(self) -> subprocess.Popen[str]:
        self.api = self.spawn("serve", "api", "--listen", self.address)
        self.url = line_with(self.api, "http://").split()[-1]
        self.address = self.url.removeprefix("http://")
        line_with(self.api, "Ctrl-C stops")
        return self.api

    def kill(self) -> None:
        self.api.kill()
        self.api.communicate(timeout=60)

    def restart(self) -> None:
        """Dies without a word, and is started again in the background."""
        self.kill()
        threading.Thread(target=self.start).start()

    def stop(self) -> None:
        for process in (self.api, self.worker):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
            assert process.returncode in (0, -signal.SIGKILL), out


class Blocking:
    """The async client, its handles and its iterators, used as if they blocked: one suite then fits both clients."""

    def __init__(self, target: Any, runner: asyncio.Runner) -> None:
        self._target = target
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        return self._called(found) if callable(found) else found

    def _called(self, function: Any) -> Any:
        def call(*args: Any, **given: Any) -> Any:
            return self._plain(function(*args, **given))

        return call

    def _plain(self, value: Any) -> Any:
        if inspect.iscoroutine(value):
            return self._plain(self._runner.run(value))
        if inspect.isasyncgen(value):
            return self._each(value)
        if isinstance(value, list):
            return [self._plain(one) for one in value]
        return Blocking(value, self._runner) if isinstance(value, AsyncRemoteJob) else value

    def _each(self, values: Any) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(values, None)

        try:
            while (value := self._runner.run(following())) is not None:
                yield value
        finally:
            self._runner.run(values.aclose())


def client_of(kind: str, runner: asyncio.Runner, url: str, key: str | None, **more: Any) -> Any:
    """A client of either kind, which the caller closes."""
    if kind == "sync":
        return Client(url, api_key=key, **more)
    return Blocking(AsyncClient(url, api_key=key, **more), runner)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False, timeout=60).status_code == 200
    except httpx.TransportError:
        return False
