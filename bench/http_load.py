"""The client of the HTTP tests, a separate process: it reads requests and writes answers as JSON lines."""

import asyncio
import hashlib
import hmac
import json
import sys
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import uvloop

from bench.host import percentile
from bench.http_lane import OPEN_LIMIT_S, Follower, Lane, fields, request

APPLIED = b'"applied"'


def _webhook(path: str, secret: bytes, id: str, now_s: int) -> bytes:
    """Build a signed webhook that reports success, after Standard Webhooks."""
    body = json.dumps({"id": id, "status": "done", "output": {"frames": 24}, "usage": {"seconds": 1.5}}).encode()
    signed = hmac.new(secret, f"msg_{id}.{now_s}.".encode() + body, hashlib.sha256).digest()
    headers = {"webhook_id": f"msg_{id}", "webhook_timestamp": str(now_s)}
    return request("POST", path, "", body, **headers, webhook_signature=f"v1,{b64encode(signed).decode()}")


class Load:
    """The requests that the process can run."""

    def __init__(self) -> None:
        self._followers: dict[str, Follower] = {}

    async def submit(self, port: int, key: str, connections: int, count: int, batch: int) -> dict[str, Any]:
        """Submit `count` jobs over that many connections, one or `batch` per request; every answer is checked."""
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
        """GET each path, in order; return the bodies of the answers."""
        return await self._each(port, [request("GET", path, key) for path in paths])

    async def post(self, port: int, key: str, path: str, bodies: Sequence[Any]) -> dict[str, Any]:
        """POST each body, in order; return the bodies of the answers."""
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

    async def _drive(
        self, port: int, whats: Sequence[bytes], connections: int, wanted: int, body: bytes = b""
    ) -> dict[str, Any]:
        lanes = [await _lane(port) for _ in range(connections)]
        todo = iter(whats)
        times: list[float] = []
        statuses: Counter[int] = Counter()
        first_bad = b""

        async def work(lane: Lane) -> None:
            nonlocal first_bad
            for what in todo:
                began = time.perf_counter()
                status, told = await lane.ask(what)
                times.append(time.perf_counter() - began)
                is_good = status == wanted and body in told
                statuses[status if is_good or status != wanted else 0] += 1
                if not is_good and not first_bad:
                    first_bad = told[:300]

        started = time.perf_counter()
        await asyncio.gather(*map(work, lanes))
        seconds = time.perf_counter() - started
        for lane in lanes:
            lane.close()
        if set(statuses) != {wanted}:
            raise RuntimeError(f"answers were {dict(statuses)}: {first_bad!r}")
        ms = [value * 1000 for value in times]
        return {"seconds": seconds, "p50_ms": percentile(ms, 0.5), "p99_ms": percentile(ms, 0.99), "max_ms": max(ms)}

    async def webhooks(
        self, port: int, path: str, secret: str, ids: Sequence[str], connections: int, rate: float | None
    ) -> dict[str, Any]:
        """Send the signed end of each piece of work; `rate` per second, or as fast as the server answers.

        With a rate, each webhook is sent at its due time, and its delay counts from then, so a server that falls behind
        is noticed.
        """
        now_s, signed_with = int(time.time()), b64decode(secret.removeprefix("whsec_"))
        whats = [_webhook(path, signed_with, id, now_s) for id in ids]
        if rate is None:
            return await self._drive(port, whats, connections, wanted=200, body=APPLIED)
        return await self._paced(port, whats, connections, rate)

    async def _paced(self, port: int, whats: Sequence[bytes], connections: int, rate: float) -> dict[str, Any]:
        idle = [await _lane(port) for _ in range(connections)]
        lanes = list(idle)
        free = asyncio.Semaphore(connections)
        late_ms: list[float] = []
        bad: list[bytes] = []

        async def send(what: bytes, due: float) -> None:
            async with free:
                lane = idle.pop()
                status, body = await lane.ask(what)
                idle.append(lane)
            late_ms.append((time.perf_counter() - due) * 1000)
            if status != 200 or APPLIED not in body:
                bad.append(body[:300])

        started = time.perf_counter()
        async with asyncio.TaskGroup() as sending:
            for no, what in enumerate(whats):
                due = started + no / rate
                if (wait_s := due - time.perf_counter()) > 0:
                    await asyncio.sleep(wait_s)
                sending.create_task(send(what, due))
        seconds = time.perf_counter() - started
        for lane in lanes:
            lane.close()
        if bad:
            raise RuntimeError(f"{len(bad)} webhooks were answered otherwise: {bad[0]!r}")
        told = {"p50_ms": percentile(late_ms, 0.5), "p99_ms": percentile(late_ms, 0.99), "max_ms": max(late_ms)}
        return {"seconds": seconds, **told}

    async def follow(self, port: int, key: str, jobs: Sequence[str]) -> dict[str, Any]:
        """Open one stream for each job; return when all have their first frame."""
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
        """Wait until every stream has ended; return the events of each, and the delays of events after `since`."""
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
    """Answer requests until standard input ends."""
    load = Load()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        ask = json.loads(line)
        try:
            answer = await getattr(load, ask.pop("do"))(**ask)
        except Exception as error:  # reported to the measuring process, which decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(serve())
