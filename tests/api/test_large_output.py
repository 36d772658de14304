"""Outputs of a hundred megabytes, whole and in ranges: the server holds little of them, and others are answered."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import Any
from uuid import UUID

import windlass as wl
from tests.api.process import MB, SECRET, WITHIN_S, Server, server
from tests.api.rig import Rig
from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass

SIZE = 100 * MB


@wl.step
def words(size: int, letter: str) -> str:
    return letter * size


@wl.step
def numbers(many: int) -> list[int]:
    return list(range(many))


@wl.step
def row(number: int, size: int) -> dict[str, Any]:
    return {"é": "ü" * size, "number": number}


@wl.recipe
def whole(size: int):  # type: ignore[no-untyped-def]
    return words(size, "x")


@wl.recipe
def mixed(size: int, many: int, wide: int):  # type: ignore[no-untyped-def]
    long, short = words(size, "y"), words(3, "z")
    counted = numbers(many)
    rows = row.map(counted, size=wide)
    constants = [1, "${x}", None, {}, []]
    return {"long": long, "rows": rows, "short": short, "rest": constants, "size": size, "é": [long, counted[1]]}


app = wl.App()
app.add([whole, mixed])
INPUTS = {"size": 400_000, "many": 3, "wide": 20_000}


async def test_a_composed_output_is_the_same_text_in_every_range(api: Rig) -> None:
    async with serving(api.windlass, app):
        job = api.windlass.job(UUID(await api.submit("mixed", inputs=INPUTS)))
        await job.wait()
        expected = await job.result()
    path = f"/jobs/{job.job_id}/output"
    body = (await api.user.get(path)).content
    assert json.loads(body) == expected
    assert expected["rest"] == [1, "${x}", None, {}, []] and expected["é"][1] == 1
    assert len(expected["rows"]) == 3 and expected["rows"][2]["number"] == 2
    for start in (0, 1, 399_990, 400_020, 450_000, 521_000, len(body) - 1):
        for length in (1, 2, 1_000, 130_000):
            part = await api.user.get(path, headers={"Range": f"bytes={start}-{start + length - 1}"})
            assert part.status_code == 206
            assert part.content == body[start : start + length]
    first, other = (
        await api.user.get(path),
        await api.user.get(path, headers={"If-Range": '"other"', "Range": "bytes=0-1"}),
    )
    assert (other.status_code, other.headers["ETag"]) == (200, first.headers["ETag"])


async def test_an_output_of_one_step_is_its_text(api: Rig) -> None:
    async with serving(api.windlass, app):
        for size in (0, 1, 300, 300_000):
            job_id = await api.submit("whole", inputs={"size": size})
            await api.ended(job_id)
            assert (await api.user.get(f"/jobs/{job_id}/output")).content == b'"' + b"x" * size + b'"'


async def test_a_hundred_megabytes_cost_little_memory_and_stall_nobody(fresh_dsn: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=fresh_dsn, secret=(SECRET,), caller="user")
    async with Windlass.connect(fresh_dsn, settings=settings) as windlass, serving(windlass, app):
        keys = Keys(windlass.db, Secret.of((SECRET,)), entropy=secrets.token_bytes)
        key = (await keys.create("user", name="user", by="test")).text
        big = await windlass.submit(mixed.plan, inputs={"size": SIZE, "many": 100, "wide": 100_000})
        await big.wait()
    async with server(fresh_dsn, tmp_path) as at:
        head = (
            f"GET /jobs/{big.job_id}/output HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nConnection: close\r\n".encode()
        )
        await counted(at, head + b"Range: bytes=0-9\r\n\r\n")
        before = at.peak_bytes
        ranges = [head + b"Range: bytes=%d-%d\r\n\r\n" % (n * MB, n * MB + 99) for n in range(0, 110, 5)]
        under_way = asyncio.gather(counted(at, head + b"\r\n"), *(counted(at, one) for one in ranges))
        answered = 0
        while not under_way.done():
            await at.is_well()
            answered += 1
        all_bytes, *parts = await under_way
        assert answered and all_bytes > 2 * SIZE and all(parts)
        # Of the second long output, which stands in a list with a looked-up value, nothing is decoded either.
        assert at.peak_bytes - before < 64 * MB


async def counted(at: Server, request: bytes) -> int:
    """How many bytes the answer has, which must be a good one."""
    reader, writer = await at.open()
    writer.write(request)
    async with asyncio.timeout(WITHIN_S * 3):
        status = await reader.readline()
        assert status.startswith(b"HTTP/1.1 20"), status
        count = 0
        while piece := await reader.read(MB):
            count += len(piece)
    writer.close()
    return count
