"""Killing the API at any moment: what was answered is there, and what was asked twice is there once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.api.deadly.server import SECRET
from tests.api.recipes import hello
from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.app.windlass import Windlass

ROOT = Path(__file__).parents[3]
HELLO = {"recipe": "hello"}
KILLS = 100
CLIENTS = 16
POINTS = ["before insert", "after commit", "before answer"]
JOBS = "SELECT id::text AS id, idempotency_key FROM windlass.jobs"


class Servers:
    """API processes on one port, one after the other."""

    def __init__(self, dsn: str, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.log = folder / "servers.log"
        with self.log.open("ab") as log:
            self._forks = subprocess.Popen(
                [sys.executable, "-m", "tests.api.deadly.server", dsn, str(folder)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        self.pid = 0

    def start(self, point: str = "never") -> None:
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        self._forks.stdin.write(f"{self.port} {point}\n")
        self._forks.stdin.flush()
        self.pid = int(self._forks.stdout.readline() or 0)
        assert self.pid, self.log.read_text()[-2_000:]

    def kill(self) -> None:
        if self.pid:
            # It may have died at its point, and been reaped.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.pid = 0

    def close(self) -> None:
        self.kill()
        self._forks.kill()
        self._forks.wait()
        for stream in (self._forks.stdin, self._forks.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def servers(fresh_dsn: str, tmp_path: Path) -> Iterator[Servers]:
    made = Servers(fresh_dsn, tmp_path)
    yield made
    made.close()


@pytest.fixture
async def key(fresh_dsn: str) -> AsyncIterator[str]:
    async with Windlass.connect(fresh_dsn) as windlass:
        await windlass.register(hello)
        keys = Keys(windlass.db, Secret.of((SECRET,)), entropy=os.urandom)
        yield (await keys.create("ada", name="test", by="test")).text


def client(servers: Servers, key: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{servers.port}",
        headers={"X-API-Key": key},
        timeout=60,
        trust_env=False,
        # There is nothing to verify, and reading the machine's certificates takes longer than a request.
        verify=False,
    )


async def stored(dsn: str) -> list[tuple[str, str]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [(row["id"], row["idempotency_key"]) for row in await connection.fetch(JOBS)]
    finally:
        await connection.close()


@pytest.mark.parametrize("point", POINTS)
async def test_a_submit_cut_off_at_any_point_can_be_asked_again(
    servers: Servers, key: str, fresh_dsn: str, point: str
) -> None:
    servers.start(point)
    async with client(servers, key) as asking:
        with pytest.raises(httpx.TransportError):
            await asking.post("/jobs", json=HELLO, headers={"Idempotency-Key": "once"})
    before = await stored(fresh_dsn)
    assert len(before) == (point != "before insert")
    servers.start()
    async with client(servers, key) as asking:
        answers = [await asking.post("/jobs", json=HELLO, headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    [(job_id, name)] = await stored(fresh_dsn)
    assert name == "once"
    assert {answer.json()["job_id"] for answer in answers} == {job_id}
    assert before in ([], [(job_id, name)])
    assert answers[0].json()["is_new"] == (point == "before insert")
    assert answers[1].headers["idempotency-replayed"] == "true"


@pytest.mark.covers("CIX-03", "CIX-22")
@pytest.mark.slow
async def test_killed_again_and_again_it_loses_no_answered_job_and_makes_none_twice(
    servers: Servers, key: str, fresh_dsn: str
) -> None:
    answered: dict[str, list[str]] = {}
    unanswered = 0
    heard, is_over = asyncio.Event(), asyncio.Event()
    rng = random.Random(7)

    async def work(number: int) -> None:
        nonlocal unanswered
        made = 0
        while not is_over.is_set():
            name = f"{number}-{made}"
            async with client(servers, key) as asking:
                try:
                    # Until its server is killed, on one connection; the same key until it is answered.
                    while not is_over.is_set():
                        answer = await asking.post("/jobs", json=HELLO, headers={"Idempotency-Key": name})
                        assert answer.status_code == 202, answer.text
                        answered.setdefault(name, []).append(answer.json()["job_id"])
                        heard.set()
                        made += 1
                        name = f"{number}-{made}"
                except httpx.TransportError:
                    unanswered += 1
                    await asyncio.sleep(0.01)

    servers.start()
    clients = [asyncio.create_task(work(number)) for number in range(CLIENTS)]
    for _ in range(KILLS):
        # In the middle of work: a moment after the first answer of this server.
        await heard.wait()
        await asyncio.sleep(rng.uniform(0.0, 0.05))
        servers.kill()
        heard.clear()
        await asyncio.to_thread(servers.start)
    is_over.set()
    await asyncio.gather(*clients)
    jobs = await stored(fresh_dsn)
    by_key: dict[str, list[str]] = {}
    for job_id, name in jobs:
        by_key.setdefault(name, []).append(job_id)
    assert {name: ids for name, ids in by_key.items() if len(ids) > 1} == {}
    gone = {name: ids for name, ids in answered.items() if set(ids) != set(by_key.get(name, ()))}
    assert gone == {}
    # It did happen: answers were cut off, and work went on nevertheless.
    assert unanswered >= KILLS
    assert len(answered) >= KILLS


async def test_a_batch_cut_off_can_be_asked_again(servers: Servers, key: str, fresh_dsn: str) -> None:
    batch: dict[str, Any] = {"jobs": [{**HELLO, "idempotency_key": str(number)} for number in range(50)]}
    servers.start()
    first: list[str] = []
    async with client(servers, key) as asking:
        asked = asyncio.create_task(asking.post("/jobs/batch", json=batch))
        await asyncio.sleep(0.02)
        servers.kill()
        with contextlib.suppress(httpx.TransportError):
            first = [item["job_id"] for item in (await asked).json()["items"]]
    servers.start()
    async with client(servers, key) as asking:
        again = (await asking.post("/jobs/batch", json=batch)).json()
    assert (again["accepted"], again["refused"]) == (50, 0)
    ids = [item["job_id"] for item in again["items"]]
    assert first in ([], ids)
    assert sorted(await stored(fresh_dsn)) == sorted((job_id, str(number)) for number, job_id in enumerate(ids))
