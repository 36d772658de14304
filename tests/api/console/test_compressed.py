"""Which answers are compressed for browsers, and which are never compressed."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest

from tests.api.console.page import signed_in
from tests.api.rig import Rig
from windlass.api.compressed import BYTES_MIN


async def raw(client: httpx.AsyncClient, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """The answer, and its body as it came."""
    async with client.stream("GET", path, headers=headers) as answer:
        return answer, b"".join([part async for part in answer.aiter_raw()])


@pytest.fixture
async def jobs(api: Rig) -> list[str]:
    return [await api.submit() for _ in range(20)]


async def test_a_browser_gets_a_long_list_compressed_and_a_program_does_not(api: Rig, jobs: list[str]) -> None:
    async with signed_in(api, api.user_key) as browser:
        answer, body = await raw(browser, "/jobs")
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-length"] == str(len(body))
        assert "Accept-Encoding" in answer.headers["vary"]
        found: Any = json.loads(gzip.decompress(body))
        assert {item["job_id"] for item in found["items"]} == set(jobs)
        plain, whole = await raw(browser, "/jobs", **{"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers and json.loads(whole) == found
        assert "Accept-Encoding" in plain.headers["vary"]
        assert len(body) * 4 < len(whole)
    answer, body = await raw(api.user, "/jobs")
    assert "content-encoding" not in answer.headers and json.loads(body) == found


async def test_what_is_small_a_stream_or_refused_is_sent_as_it_is(api: Rig, jobs: list[str]) -> None:
    async with signed_in(api, api.user_key) as browser:
        for path in ("/me", "/console/session", "/jobs/nothing", "/jobs?limit=1"):
            answer, body = await raw(browser, path)
            assert "content-encoding" not in answer.headers, path
            assert len(body) < BYTES_MIN
        async with browser.stream("GET", "/console/stream?topics=jobs") as stream:
            assert "content-encoding" not in stream.headers


async def test_a_compressed_answer_is_known_again_by_its_tag(api: Rig) -> None:
    job = await api.submit(inputs={"name": "x" * 5_000})
    async with signed_in(api, api.user_key) as browser:
        path = f"/jobs/{job}/input"
        answer, body = await raw(browser, path)
        assert json.loads(gzip.decompress(body))["name"] == "x" * 5_000
        tag = answer.headers["etag"]
        assert tag.startswith('W/"')
        for known in (tag, tag.removeprefix("W/")):
            again, nothing = await raw(browser, path, **{"If-None-Match": known})
            assert (again.status_code, nothing) == (304, b"")


async def test_a_part_of_an_output_is_a_part_of_what_it_is(api: Rig) -> None:
    job = await api.run("large", inputs={"size": 10_000})
    async with signed_in(api, api.user_key) as browser:
        answer, body = await raw(browser, f"/jobs/{job}/output", Range="bytes=1-4")
        assert (answer.status_code, body) == (206, b"0123")
        whole, body = await raw(browser, f"/jobs/{job}/output")
        assert "content-encoding" not in whole.headers and len(body) == 10_002
