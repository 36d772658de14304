"""The client side of the HTTP tests, a process of its own: reads what to do as JSON lines, answers with JSON lines."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import uvloop

from bench.host import percentile
from bench.http_lane import OPEN_LIMIT_S, Follower, Lane, fields, request


class Load:
    """What can be asked of it."""

    def __init__(self) -> None:
        self._followers: dict[str, Follower] = {}

    async def submit(self, port: int, key: str, connections: int, count: int, batch: int) -> dict[str, Any]:
        """`count` jobs over that many connections, one or `batch` a request; every answer is looked at."""
        job = {"recipe": "one", "inputs": {"n": 1}}
        if batch == 1:
            what = request("POST", "/jobs", key, json.dumps(job).encode())
        else:
            what = request("POST", "/jobs/batch", key, json.dumps({"jobs": [job] * batch}).encode())
        return await self._drive(port, [what] * (count // batch), connections, wanted=202)

    async def get(self, port: int, asks: Sequence[tuple[str, str]], connections: int) -> dict[str, Any]:
        """GET each (path, key)."""
        whats = [request("GET", path, key) for path, key in asks]
        return await self._drive(port, whats, connections, wanted=200)

    async def read(self, port: int, key: str, paths: Sequence[str]) -> dict[str, Any]:
        """GET each of them, in order; the answers' bodies."""
        return await self._each(port, [request("GET", path, key) for path in paths])

    async def post(self, port: int, key: str, path: str, bodies: Sequence[Any]) -> dict[str, Any]:
        """POST each of them, in order; the answers' bodies."""
        return await self._each(port, [request("POST", path, key, json.dumps(body).encode()) for body in bodies])

    async def _each(self, port: int, whats: Sequence[bytes]) -> dict[str, Any]:
        lane = await _lane(port)
        answers = []
        for what in whats:
            status, told = await lane.ask(what)
            if status >= 300:
                raise RuntimeError(f"{what[:60]!r} was answered {status}: {told[:300]!r}")
            answers.append(json.loads(told))
        lane.close()
        return {"answers": answers}

    async def _drive(self, port: int, whats: Sequence[bytes], connections: int, wanted: int) -> dict[str, Any]:
        lanes = [await _lane(port) for _ in range(connections)]
        todo = iter(whats)
        times: list[float] = []
        statuses: Counter[int] = Counter()
        first_bad = b""

        async def work(lane: Lane) -> None:
            nonlocal first_bad
            for what in todo:
                began = time.perf_counter()
                status, body = await lane.ask(what)
                times.append(time.perf_counter() - began)
                statuses[status] += 1
                if status != wanted and not first_bad:
                    first_bad = body[:300]

        started = time.perf_counter()
        await asyncio.gather(*map(work, lanes))
        seconds = time.perf_counter() - started
        for lane in lanes:
            lane.close()
        if set(statuses) != {wanted}:
            raise RuntimeError(f"answers were {dict(statuses)}: {first_bad!r}")
        ms = [value * 1000 for value in times]
        return {"seconds": seconds, "p50_ms": percentile(ms, 0.5), "p99_ms": percentile(ms, 0.99), "max_ms": max(ms)}

    async def follow(self, port: int, key: str, jobs: Sequence[str]) -> dict[str, Any]:
        """One stream for each job; returns when all have their first frame."""
        loop = asyncio.get_running_loop()
        started = time.perf_counter()
        for job in jobs:
            follower = Follower(request("GET", f"/jobs/{job}/stream", key, Accept="text/event-stream"))
            await loop.create_connection(lambda follower=follower: follower, "127.0.0.1", port)
            self._followers[job] = follower
        async with asyncio.timeout(OPEN_LIMIT_S):
            await asyncio.gather(*(follower.opened for follower in self._followers.values()))
        statuses = Counter(follower.status for follower in self._followers.values())
        if set(statuses) != {200}:
            raise RuntimeError(f"streams were answered {dict(statuses)}")
        return {"seconds": time.perf_counter() - started, "now": time.time()}

    async def collect(self, limit_s: float, since: float) -> dict[str, Any]:
        """Wait until every stream has ended. How many events each told, and how late those after `since` came."""
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*(follower.ended for follower in self._followers.values()))
        except TimeoutError:
            for follower in self._followers.values():
                follower.close()
        seen: dict[str, int] = {}
        delays: list[float] = []
        faults = 0
        for job, follower in self._followers.items():
            seqs = []
            for moment, frame in follower.frames:
                told = fields(frame)
                if told.get("event") in (b"job", b"step"):
                    seqs.append(int(told["id"]))
                    at = _seconds(json.loads(told["data"])["at"])
                    if at > since:
                        delays.append((moment - at) * 1000)
            # Each event once, in order, none left out.
            faults += seqs != list(range(1, len(seqs) + 1))
            seen[job] = len(seqs)
        self._followers.clear()
        late = {"p50_ms": percentile(delays, 0.5), "p99_ms": percentile(delays, 0.99)} if delays else {}
        return {"seen": seen, "faults": faults, "events": len(delays), **late}


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


async def _lane(port: int) -> Lane:
    _, lane = await asyncio.get_running_loop().create_connection(Lane, "127.0.0.1", port)
    return lane


async def serve() -> None:
    """Until standard input ends."""
    load = Load()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        ask = json.loads(line)
        try:
            answer = await getattr(load, ask.pop("do"))(**ask)
        except Exception as error:  # told to the measuring side, which decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(serve())
