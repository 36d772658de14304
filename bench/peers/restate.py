"""Restate: its server, one service process under hypercorn, invocations sent by httpx.

A job is a handler with one `ctx.run`, a chain has three, and a fan-out calls another handler and gathers.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import restate

from bench.counter import tick
from bench.process import spawn, stop
from bench.system import System, target

CLIENTS = 32
REGISTER_LIMIT_S = 30.0
OPEN = "SELECT count(*) AS n FROM sys_invocation WHERE status <> 'completed'"

service = restate.Service("S")


def _body() -> int:
    tick()
    return 1


@service.handler()
async def leaf(ctx: restate.Context, x: int) -> int:
    return _body()


@service.handler()
async def one(ctx: restate.Context, x: int) -> int:
    return await ctx.run_typed("a", _body)


@service.handler()
async def three(ctx: restate.Context, x: int) -> int:
    for name in "abc":
        await ctx.run_typed(name, _body)
    return 3


@service.handler()
async def fan(ctx: restate.Context, width: int) -> int:
    await restate.gather(*(ctx.service_call(leaf, 0) for _ in range(width)))
    return width


app = restate.app(services=[service])


class Peer(System):
    """The submitting client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        limits = httpx.Limits(max_connections=100)
        self._http = httpx.AsyncClient(base_url=target().restate_ingress, timeout=600, limits=limits)

    def prepare(self) -> None:
        # The server asks a running service for its handlers, once.
        worker = spawn(self.worker(), log=Path(target().folder) / "restate-prepare.log")
        deadline = time.monotonic() + REGISTER_LIMIT_S
        try:
            while not self._is_registered():
                if time.monotonic() > deadline:
                    raise TimeoutError("Restate did not register the service")
                time.sleep(0.2)
        finally:
            stop([worker])

    def worker(self) -> list[str]:
        bind = f"127.0.0.1:{target().restate_service_port}"
        options = ["--bind", bind, "-w", "1", "--log-level", "ERROR"]
        return [sys.executable, "-m", "hypercorn", "bench.peers.restate:app", *options]

    def submit(self, count: int) -> None:
        self._many("one", count)

    def open_jobs(self) -> int:
        answer = httpx.post(
            f"{target().restate_admin}/query", json={"query": OPEN}, headers={"accept": "application/json"}, timeout=30
        )
        return int(answer.json()["rows"][0]["n"])

    def roundtrip(self) -> None:
        self._loop.run_until_complete(self._http.post("/S/one", json=0)).raise_for_status()

    def chain(self, count: int) -> None:
        self._many("three", count)

    def fan(self, width: int) -> None:
        answer = self._loop.run_until_complete(self._http.post("/S/fan", json=width))
        assert answer.json() == width, answer.text[:200]

    def close(self) -> None:
        self._loop.run_until_complete(self._http.aclose())

    def _many(self, handler: str, count: int) -> None:
        async def client(numbers: Iterator[int]) -> None:
            for number in numbers:
                (await self._http.post(f"/S/{handler}/send", json=number)).raise_for_status()

        async def all_clients() -> None:
            numbers = iter(range(count))
            await asyncio.gather(*(client(numbers) for _ in range(CLIENTS)))

        self._loop.run_until_complete(all_clients())

    def _is_registered(self) -> bool:
        uri = f"http://127.0.0.1:{target().restate_service_port}"
        try:
            answer = httpx.post(f"{target().restate_admin}/deployments", json={"uri": uri}, timeout=10)
        except httpx.HTTPError:
            return False
        return answer.status_code < 300
