"""What strangers may send: bodies of any size and shape, headers, paths. All of it is answered with 4xx, never 5xx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.api.rig import Rig, rig
from windlass.api.guard import decoded, too_deep
from windlass.core.errors import BadRequest, TooLarge

JSON = {"Content-Type": "application/json"}


async def test_every_answer_carries_its_request_and_no_surprises(api: Rig) -> None:
    given = await api.user.get("/me", headers={"X-Request-Id": "abc:1.2-3_4"})
    assert given.headers["X-Request-Id"] == "abc:1.2-3_4"
    for path in ("/me", "/nowhere", "/jobs?x=1", "/openapi"):
        answer = await api.user.get(path, headers={"X-Request-Id": "no good\ttext"})
        assert len(answer.headers["X-Request-Id"]) == 32
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "server" not in answer.headers and "access-control-allow-origin" not in answer.headers
    assert given.headers["X-RateLimit-Limit"] and given.headers["RateLimit-Policy"]


async def test_the_old_prefix_is_the_same_api(api: Rig) -> None:
    job_id = await api.submit()
    assert (await api.user.get(f"/api/v1/jobs/{job_id}")).json()["job_id"] == job_id
    assert (await api.user.get("/api/v1")).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"nonsense", 400),
        (b"null", 422),
        (b"[]", 422),
        (b'{"recipe": "hello", "inputs": {"name": NaN}}', 400),
        (b'{"recipe": "hello", "inputs": {"name": Infinity}}', 400),
        (b'{"recipe": "hello", "inputs": {"name": 1e400}}', 400),
        (b'{"recipe": "hello", "priority": 1e400}', 400),
        (b'{"recipe": "hello", "priority": 99999999999999999999999999}', 422),
        (b'{"recipe": "hello", "inputs": {"name": 99999999999999999999999999}}', 422),
        (b'{"recipe": "hello", "priority": ' + b"9" * 5000 + b"}", 400),
        (b'{"recipe": "\\ud800"}', 400),
        (b'{"recipe": "hello", "inputs": {"name": "\\udfff"}}', 400),
        (b'{"recipe": "\xed\xa0\x80"}', 400),
        (b'{"recipe": "\xff"}', 400),
        (b'{"recipe": "he\\u0000llo"}', 422),
        (b'{"recipe": "hello", "idempotency_key": "\\u0000"}', 400),
        (b'{"recipe": "hello", "labels": {"\\u0000": "x"}}', 422),
        (b'\xef\xbb\xbf{"recipe": "hello"}', 400),
        (b'{"recipe": "hello", "inputs": ' + b"[" * 32 + b"]" * 32 + b"}", 413),
        (b"[" * 100_000, 413),
        (b'{"a":' * 50_000, 413),
        (b'{"recipe": "' + b"x" * 100_000 + b'"}', 422),
        (b'{"' + b"x" * 100_000 + b'": 1, "recipe": "hello"}', 422),
        (b'{"recipe": "hello", "inputs": {"name": "' + b"x" * 1_048_576 + b'"}}', 413),
    ],
)
async def test_a_body_of_any_kind_is_answered_with_4xx(api: Rig, body: bytes, status: int) -> None:
    answer = await api.user.post("/jobs", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert len(answer.content) < 4_096


async def test_nul_in_an_input_is_an_inputs_own_affair(api: Rig) -> None:
    job_id = await api.run(inputs={"name": "a\x00b"})
    assert (await api.user.get(f"/jobs/{job_id}")).json()["status"] in ("COMPLETED", "FAILED")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": 'Application/JSON; charset="UTF-8"'}, 202),
        ({}, 415),
    ],
)
async def test_only_json_is_taken(api: Rig, headers: dict[str, str], status: int) -> None:
    answer = await api.user.post("/jobs", content=b'{"recipe": "hello"}', headers=headers)
    assert answer.status_code == status, answer.text


async def test_the_cap_holds_for_a_body_that_does_not_say_its_size(dsn: str, tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100_000_000:
            sent += 10_000
            yield b"[" + b" " * 9_999

    async with rig(dsn, tmp_path, body_max_bytes=2048) as api:
        said = await api.user.post("/jobs", content=b" " * 3000, headers=JSON)
        assert (said.status_code, said.json()["code"]) == (413, "too_large")
        answered = asyncio.create_task(api.user.post("/jobs", content=endless(), headers=JSON))
        try:
            answer = await answered
        except Exception:  # a body without end is cut off before its client looks for an answer
            pass
        else:
            assert answer.status_code == 413
        assert sent < 50_000_000
        assert (await api.user.get("/me")).status_code == 200


async def test_headers_have_a_largest_size(api: Rig) -> None:
    answer = await api.user.get("/me", headers={"X-Long": "x" * 40_000})
    assert (answer.status_code, answer.json()["code"]) == (431, "head_too_large")
    assert answer.headers["Connection"] == "close"
    assert (await api.user.get("/me", headers={"X-Long": "x" * 20_000})).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/%00", "/jobs/" + "x" * 10_000, "/jobs/%ff%fe", "/jobs/..%2f..", "/jobs/1' OR 1=1--", "/jobs/{}/graph",
        "/jobs/00000000-0000-0000-0000-00000000000g", "/recipes/%00", "/recipes/" + "y" * 9_000, "/recipes/%ff/schema",
        "/jobs/00000000-0000-0000-0000-000000000000/steps/x/output",
        "/jobs/00000000-0000-0000-0000-000000000000/steps/-1/output",
        "/jobs/00000000-0000-0000-0000-000000000000/steps/99999999999999999999/output", "//jobs", "/jobs//graph",
    ],
)  # fmt: skip
async def test_a_path_that_names_nothing_is_404(api: Rig, path: str) -> None:
    answer = await api.user.get(path)
    assert answer.status_code == 404, answer.text
    assert len(answer.content) < 2_048


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("unknown=1", 400), ("limit=0", 422), ("limit=201", 422), ("limit=x", 422), ("limit=1e9", 422),
        ("status=NONE", 422), ("status=failed,timeout", 200), ("label=x", 422), ("label=a=b&label=c:d", 200),
        ("recipe=%00", 422), ("recipe=%ff", 200), ("since=yesterday", 422), ("since=2026-01-01", 422),
        ("since=2026-01-01T00:00:00Z&until=9999-12-31T23:59:59Z", 200), ("since=0001-01-01T00:00:00%2B14:00", 422),
        ("cursor=x", 400), ("cursor=%00", 400), ("caller=other", 403), ("caller=*", 403), ("deleted=maybe", 422),
        ("recipe=" + "x" * 300, 422), ("failed_step=greet&label=corpus:c", 200), ("&&&=", 400), ("limit", 422),
    ],
)  # fmt: skip
async def test_a_query_is_taken_at_its_word_or_refused(api: Rig, query: str, status: int) -> None:
    answer = await api.user.get(f"/jobs?{query}")
    assert answer.status_code == status, answer.text


async def test_a_path_without_a_query_takes_none(api: Rig) -> None:
    answer = await api.user.get("/me?verbose=1")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def bodies() -> Iterator[tuple[bytes, bool]]:
    yield b"[" * 32 + b"]" * 32, False
    yield b"[" * 33 + b"]" * 33, True
    yield b"[[]," * 1000 + b"[]" + b"]" * 1000, True
    yield b"[" + b"[]," * 1000 + b"[]]", False
    yield b'["' + b"[" * 1000 + b'"]', False
    yield b'["' + b'\\"[' * 1000 + b'"]', False
    yield b'"' + b"[" * 1000, False
    yield b'{"a": "\\\\", "b": ' + b"[" * 40, True


@pytest.mark.parametrize(("body", "is_deep"), list(bodies()))
def test_depth_is_counted_outside_of_strings(body: bytes, is_deep: bool) -> None:
    assert too_deep(body) is is_deep


def test_a_hostile_string_is_scanned_in_one_pass() -> None:
    with pytest.raises((BadRequest, TooLarge)):
        decoded(b'{"a":[' * 40 + b'"' + b'\\"' * 500_000)
