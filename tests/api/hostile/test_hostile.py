"""Requests that no client sends by accident: each is refused in good order, and the next one is answered as ever."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.rig import Rig

UUID = "0199aaaa-0000-7000-8000-00000000dead"
HELLO = {"recipe": "hello", "inputs": {"name": "x"}}


def problem(answer: httpx.Response, *statuses: int) -> dict[str, Any]:
    """The problem document of a refusal."""
    assert answer.status_code in statuses, (answer.status_code, answer.text[:300])
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["status"] == answer.status_code
    assert told["request_id"] == answer.headers["x-request-id"]
    assert told["hint"]
    return told


async def post(api: Rig, body: Any, path: str = "/jobs", **headers: str) -> httpx.Response:
    """Send a body as it is, or as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.user.post(path, content=content, headers={"Content-Type": "application/json", **named})


async def is_well(api: Rig) -> None:
    """The API answers, and takes a job."""
    assert (await api.stranger.get("/healthz")).status_code == 200
    await api.submit()


# ---------------------------------------------------------------- paths

IDS = [
    "x", "0", "-1", "1" * 10_000, "%00", "%00" * 100, "%2F", "..%2f..%2fetc%2fpasswd", "%ff%fe", "%C0%80",
    "%F0%9F%98%80",
    "null", "undefined", "*", "%7B" + UUID + "%7D", "urn:uuid:" + UUID, UUID + "%00", UUID + "0", UUID[:-1],
    "%20" + UUID,
    "'%20OR%201=1--", "9" * 36, "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz", "%EF%BC%90" * 36,
]  # fmt: skip
SUFFIXES = [
    "",
    "/events",
    "/graph",
    "/steps",
    "/why",
    "/input",
    "/output",
    "/stream",
    "/webhook",
    "/steps/0/output",
    "/costs",
]


async def test_what_cannot_be_an_id_names_no_job(api: Rig) -> None:
    for text in IDS:
        for suffix in SUFFIXES:
            problem(await api.user.get(f"/jobs/{text}{suffix}"), 404)
        for action in ("cancel", "pause", "resume", "retry", "rerun"):
            problem(await api.user.post(f"/jobs/{text}/{action}"), 404)
        problem(await api.user.post(f"/jobs/{text}/events", json={"name": "x"}), 404)
        problem(await api.admin.post(f"/jobs/{text}/complete", json={"token": "x", "status": "success"}), 404)
        problem(await api.user.delete(f"/jobs/{text}"), 404)
    await is_well(api)


@pytest.mark.parametrize(
    "no", ["-1", "x", "1e3", "99999999999999999999", "2147483648", "9223372036854775808", "%00", "0x0"]
)
async def test_what_cannot_be_a_step_is_not_there(api: Rig, no: str) -> None:
    job = await api.submit()
    problem(await api.user.get(f"/jobs/{job}/steps/{no}/output"), 404, 422)


async def test_a_recipe_is_named_by_text(api: Rig) -> None:
    for name in ("%00", "%ff", "x" * 10_000, "..", "%2e%2e", "%F0%9F%98%80", "a%2Fb"):
        for suffix in ("", "/versions", "/schema"):
            problem(await api.user.get(f"/recipes/{name}{suffix}"), 404, 422)


@pytest.mark.parametrize(
    "path", ["/", "/job", "/jobs/", "//jobs", "/JOBS", "/jobs/stream/x", "/api/v1", "/api/v2/jobs"]
)
async def test_an_unknown_path_is_a_problem_too(api: Rig, path: str) -> None:
    assert problem(await api.user.get(path), 404)["code"] == "not_found"


async def test_a_method_that_a_path_does_not_have_is_named_with_those_it_has(api: Rig) -> None:
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        answer = await api.user.request(method, "/jobs")
        assert problem(answer, 405)["code"] == "method_not_allowed"
        assert {part.strip() for part in answer.headers["allow"].split(",")} == {"GET", "POST"}
    assert (await api.user.head("/jobs")).status_code == 405


async def test_the_alias_is_the_same_api(api: Rig) -> None:
    job = await api.submit()
    assert (await api.user.get(f"/api/v1/jobs/{job}")).json()["job_id"] == job
    problem(await api.stranger.get(f"/api/v1/jobs/{job}"), 401)


# ---------------------------------------------------------------- bodies

NOT_JSON = [
    b"", b" ", b"{", b"}", b"nul", b"{'recipe': 'hello'}", b'{"recipe": "hello"', b'{"recipe": "hello"} x', b"\xff\xfe",
    b"\xef\xbb\xbf{}", b'{"recipe": NaN}', b'{"recipe": "hello", "inputs": {"name": NaN}}', b'{"recipe": "hel\xfflo"}',
    b'{"recipe": "hello", "inputs": {"name": Infinity}}', b'{"recipe": "he\nllo"}', b"[" * 31,
    b'{"recipe": "hello", "inputs": {"name": 1e400}}', b'{"recipe": "hello", "inputs": {"name": "\\ud800"}}',
]  # fmt: skip
NOT_A_JOB: list[Any] = [
    None, [], "x", 1, True, {}, {"recipe": None}, {"recipe": 1}, {"recipe": ["hello"]}, {"recipe": ""},
    {"recipe": "hello\x00"}, {"recipe": "x" * 10_000}, {**HELLO, "extra": 1}, {**HELLO, "inputs": None},
    {**HELLO, "inputs": []}, {**HELLO, "inputs": {"name": 1}}, {**HELLO, "inputs": {"nobody": 1}},
    {**HELLO, "inputs": {"name": 2**63}}, {**HELLO, "inputs": {"name": 10**400}},
    {**HELLO, "labels": {"k": 1}}, {**HELLO, "labels": {"k": "\x00"}}, {**HELLO, "labels": {"\x00": "v"}},
    {**HELLO, "labels": {"k" * 300: "v"}}, {**HELLO, "labels": {str(n): "" for n in range(65)}}, {**HELLO,
    "labels": []},
    {**HELLO, "priority": 101}, {**HELLO, "priority": 1.5}, {**HELLO, "priority": "1"}, {**HELLO, "priority": True},
    {**HELLO, "priority": 2**63}, {**HELLO, "priority": -(2**64)}, {**HELLO, "deadline": -1}, {**HELLO, "deadline": 0},
    {**HELLO, "deadline": "soon"}, {**HELLO, "deadline": 1e300}, {**HELLO, "ttl": True}, {**HELLO,
    "ttl": "P" + "9" * 99 + "D"},
    {**HELLO, "ttl": "9" * 60 + "d"}, {**HELLO, "version": 0}, {**HELLO, "version": 2**31}, {**HELLO, "version": 2**64},
    {**HELLO, "idempotency_key": ""}, {**HELLO, "idempotency_key": "x" * 256}, {**HELLO, "idempotency_key": "\x00"},
    {**HELLO, "idempotency_key": 1}, {**HELLO, "webhook": {}}, {**HELLO, "webhook": {"url": "x", "secret": "y"}},
    {**HELLO, "webhook": {"url": "file:///etc/passwd", "secret": "whsec_" + "A" * 32}}, {**HELLO, "webhook": "x"},
    {**HELLO, "webhook": {"url": "http://169.254.169.254/", "secret": "whsec_" + "A" * 32}},
]  # fmt: skip


async def test_what_is_not_json_is_refused(api: Rig) -> None:
    for body in NOT_JSON:
        problem(await post(api, body), 400, 422)
    await is_well(api)


async def test_what_is_not_a_job_is_refused_and_leaves_no_trace(api: Rig) -> None:
    for body in NOT_A_JOB:
        problem(await post(api, body), 400, 404, 413, 422)
        problem(await post(api, {"jobs": [HELLO, body]}, "/jobs/batch"), 400, 404, 413, 422)
    assert (await api.user.get("/jobs")).json()["items"] == []
    await is_well(api)


@pytest.mark.parametrize("levels", [33, 100, 10_000, 200_000])
@pytest.mark.parametrize("kind", ["list", "object"])
async def test_a_bottomless_body_is_refused_before_it_is_read(api: Rig, levels: int, kind: str) -> None:
    opening, closing = (b"[", b"]") if kind == "list" else (b'{"a":', b"}")
    for tail in (closing * levels, b""):
        body = b'{"recipe": "hello", "inputs": {"name": ' + opening * levels + b"1" + tail + b"}}"
        problem(await post(api, body), 400, 413)
    await is_well(api)


async def test_text_that_looks_deep_is_not(api: Rig) -> None:
    answer = await post(api, {**HELLO, "inputs": {"name": '[{"' * 1_000 + '\\"'}})
    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"recipe": "nobody", "recipe": "hello"}', "recipe"),
        (b'{"recipe": "hello", "inputs": {"name": "a:b", "name": "c"}}', "name"),
        (b'{"recipe": "hello", "inputs": {"x": [{"b": 1, "\\u0062": 2}]}}', "b"),
        (b'{"recipe": "hello", "inputs": {"name": "' + b"x" * 5_000 + b'"}, "priority": 1, "priority" :2}', "priority"),
    ],
)
async def test_a_key_that_is_given_twice_is_named(api: Rig, body: bytes, key: str) -> None:
    answer = await post(api, body)
    assert answer.status_code == 400 and f"the key '{key}' is given twice" in answer.json()["detail"]
    assert (await api.user.get("/jobs")).json()["items"] == []


async def test_the_same_key_in_two_objects_is_fine(api: Rig) -> None:
    text = '{"name": 1, "name": "\\u0062"} recipe: "recipe":'
    for name in ("inputs", "a: b", text, "x" * 5_000 + text):
        answer = await post(api, {**HELLO, "inputs": {"name": name}, "labels": {"recipe": "a", "name": "b"}})
        assert answer.status_code == 202, answer.text


async def test_inputs_that_postgresql_could_not_hold_are_no_fault_of_ours(api: Rig) -> None:
    for name in ("\x00", "a\x00b", "\U0001f600", "\ufffe", "\u202e", "x" * 100_000):
        answer = await post(api, {**HELLO, "inputs": {"name": name}})
        assert answer.status_code in (202, 422), answer.text
        if answer.status_code == 202:
            assert (await api.user.get(f"/jobs/{answer.json()['job_id']}/input")).json()["name"] == name
    await is_well(api)


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/xml", "application/json; charset=utf-16", "x" * 5_000, ""]
)
async def test_a_body_of_another_kind_is_refused(api: Rig, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = await api.user.post("/jobs", content=json.dumps(HELLO).encode(), headers=headers)
    assert problem(answer, 415)["code"] == "bad_media"


async def test_a_compressed_body_is_refused(api: Rig) -> None:
    problem(await post(api, b"\x1f\x8b\x08\x00", content_encoding="gzip"), 415)


async def test_a_body_over_its_cap_is_refused_by_what_it_says_and_by_what_it_is(api: Rig) -> None:
    body = json.dumps({**HELLO, "inputs": {"name": "x" * 1_100_000}}).encode()
    assert problem(await post(api, body), 413)["code"] == "too_large"

    async def parts() -> Any:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    answer = await api.user.post("/jobs", content=parts(), headers={"Content-Type": "application/json"})
    assert problem(answer, 413)["code"] == "too_large"
    await is_well(api)


async def test_a_batch_has_its_limits(api: Rig) -> None:
    problem(await post(api, {"jobs": []}, "/jobs/batch"), 422)
    problem(await post(api, {"jobs": [HELLO] * 1_001}, "/jobs/batch"), 413, 422)
    problem(await post(api, {"jobs": [HELLO]}, "/jobs/batch", Idempotency_Key="x"), 400)
    assert (await api.user.get("/jobs")).json()["items"] == []


async def test_a_bulk_action_says_what_it_means(api: Rig) -> None:
    await api.submit()
    bulk: dict[str, Any] = {"action": "cancel", "filter": {"recipe": "hello"}, "dry_run": False}
    for body in (
        {}, {**bulk, "filter": {}}, {**bulk, "action": "delete"}, {**bulk, "limit": 0}, {**bulk, "limit": 501},
        {**bulk, "filter": {"recipe": "\x00"}}, {**bulk, "filter": {"status": ["NOPE"]}}, {**bulk, "reason": "\x00"},
        {**bulk, "expect": -1}, {**bulk, "expect": "1"}, {**bulk, "filter": {"recipe": "hello", "cursor": "x"}},
    ):  # fmt: skip
        problem(await post(api, body, "/jobs/bulk"), 400, 413, 422)
    problem(await post(api, {**bulk, "expect": 2}, "/jobs/bulk"), 409)
    problem(await post(api, {**bulk, "filter": {"recipe": "hello", "caller": "other"}}, "/jobs/bulk"), 403, 422)
    [job] = (await api.user.get("/jobs")).json()["items"]
    assert job["status"] == "QUEUED"


# ---------------------------------------------------------------- queries and headers

QUERIES = [
    "limit=1&limit=2", "recipe=a&recipe=a",
    "limit=0", "limit=-1", "limit=201", "limit=1e9", "limit=x", "limit=", "limit=99999999999999999999999",

    "cursor=x", "cursor=", "cursor=%00", "cursor=" + "A" * 5_000, "cursor=e30", "since=x", "since=2026-01-01", "since=",
    "since=99999-01-01T00:00:00Z", "until=0000-01-01T00:00:00Z", "status=NOPE", "status=", "status=QUEUED%00",
    "recipe=%00",
    "recipe=" + "x" * 5_000, "label=novalue", "label=%00=x", "label==", "label=k=%00", "label=c:%00", "failed_step=%00",
    "caller=other", "caller=*", "deleted=perhaps", "nonsense=1", "%00=1", "limit[]=1", "LIMIT=1",
]  # fmt: skip


async def test_a_query_that_means_nothing_is_refused(api: Rig) -> None:
    answers = {query: await api.user.get(f"/jobs?{query}") for query in QUERIES}
    assert [query for query, answer in answers.items() if answer.status_code not in (400, 403, 422)] == []
    for answer in answers.values():
        problem(answer, 400, 403, 422)
    await is_well(api)


@pytest.mark.parametrize(
    "query",
    [
        "recipe=%ff",
        "label=%ff=%fe",
        "since=0001-01-01T00:00:00Z",
        "until=9999-12-31T23:59:59Z",
        "label=c:%F0%9F%98%80",
    ],
)
async def test_an_odd_query_finds_what_it_says(api: Rig, query: str) -> None:
    answer = await api.user.get(f"/jobs?{query}")
    assert answer.status_code in (200, 400, 422), answer.text


async def test_a_cursor_belongs_to_its_list(api: Rig) -> None:
    for _ in range(3):
        await api.submit()
    cursor = (await api.user.get("/jobs?limit=1")).json()["next"]
    assert len((await api.user.get("/jobs", params={"cursor": cursor})).json()["items"]) == 2
    problem(await api.user.get("/jobs", params={"cursor": cursor, "recipe": "hello"}), 400)
    problem(await api.other.get("/jobs", params={"cursor": cursor}), 400)
    problem(await api.user.get("/jobs", params={"cursor": cursor[:-2]}), 400)


@pytest.mark.parametrize(
    "header", ["bytes=abc", "bytes=5-1", "bytes=-0", "bytes=0-0,2-3", "bytes=", "lines=1-2", "bytes=9" * 50]
)
async def test_an_odd_range_is_no_fault(api: Rig, header: str) -> None:
    job = await api.run()
    answer = await api.user.get(f"/jobs/{job}/output", headers={"Range": header})
    assert answer.status_code in (200, 206, 416), answer.text


async def test_an_odd_header_is_no_fault(api: Rig) -> None:
    for name, value in (
        ("X-Request-Id", "x" * 5_000), ("X-Request-Id", "a b"), ("X-Request-Id", "é"), ("X-Request-Id", ""),
        ("Accept", "text/nothing"), ("If-None-Match", '"' * 999), ("traceparent", "00-" + "z" * 90), ("Cookie", "a=b"),
        ("X-Forwarded-For", "1.2.3.4, evil"), ("Origin", "https://evil.example"), ("Host", "evil.example"),
    ):  # fmt: skip
        answer = await api.user.get("/jobs", headers=[(name.encode(), value.encode())])
        assert answer.status_code == 200, (name, answer.text)
        assert value != answer.headers["x-request-id"]
        assert "access-control-allow-origin" not in answer.headers


async def test_an_idempotency_key_is_text(api: Rig) -> None:
    for value in (b"", b"x" * 256, b"\xff", b"a\tb", "é".encode()):
        answer = await api.user.post("/jobs", json=HELLO, headers=[(b"Idempotency-Key", value)])
        assert answer.status_code in (202, 400, 422), (value, answer.text)
    body = {**HELLO, "idempotency_key": "one"}
    problem(await post(api, body, Idempotency_Key="other"), 400)


async def test_odd_credentials_are_nobodys(api: Rig) -> None:
    good = api.user_key
    for headers in (
        {"Authorization": "Bearer"}, {"Authorization": f"Basic {good}"},
        {"X-API-Key": ""},
        {"X-API-Key": "x" * 5_000}, {"X-API-Key": good + "x"}, {"X-API-Key": good.upper()},
        {"X-API-Key": f"{good}, {good}"},
        {"Authorization": good},
        {"Cookie": f"key={good}"},
    ):  # fmt: skip
        problem(await api.stranger.get("/jobs", headers=headers), 401)
    problem(await api.stranger.get(f"/jobs?api_key={good}"), 401)
    # Two different keys: it is not for the server to choose.
    problem(
        await api.stranger.get("/jobs", headers={"X-API-Key": good, "Authorization": f"Bearer {api.admin_key}"}), 400
    )
    for name in ("X-API-Key", "Authorization"):
        kind = "Bearer " if name == "Authorization" else ""
        twice = [(name, kind + good), (name, kind + api.admin_key)]
        problem(await api.stranger.get("/jobs", headers=twice), 400)
    problem(await api.stranger.get("/jobs", headers=[(b"X-API-Key", b"\xff\xfe" + good.encode())]), 401)
    assert (await api.stranger.get("/jobs", headers={"Authorization": f"bearer {good}"})).status_code == 200
    assert (await api.stranger.get("/jobs", headers={"X-API-Key": good, "Authorization": f"Bearer {good}"})).is_success


# ---------------------------------------------------------------- below HTTP


async def raw(api: Rig, *chunks: bytes, is_cut: bool = False) -> bytes:
    """What the server says to these bytes."""
    parts = urlsplit(api.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        if is_cut:
            return b""
        writer.write_eof()
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_what_is_not_http_harms_nobody(api: Rig) -> None:
    key = api.user_key.encode()
    head = b"POST /jobs HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + b"\r\nContent-Type: application/json\r\n"
    for chunks in (
        [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"], [b"GET\r\n\r\n"], [b"\x00" * 1_000], [b"GET /jobs HTTP/9.9\r\n\r\n"],
        [b"G" * 200_000], [b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"],
        [b"GET /jobs HTTP/1.1\r\nHost: x\r\nX-Pad: " + b"y" * 200_000 + b"\r\n\r\n"],
        [head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
        [head + b"Content-Length: -1\r\n\r\n"], [head + b"Content-Length: 99999999999999999999\r\n\r\n"],
        [head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
        [head + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}"],
    ):  # fmt: skip
        told = await raw(api, *chunks)
        assert b" 50" not in told[:12], (chunks[0][:40], told[:100])
    await is_well(api)


async def test_a_client_that_hangs_up_is_no_fault_of_ours(api: Rig, caplog: pytest.LogCaptureFixture) -> None:
    parts = urlsplit(api.url)
    key = api.user_key.encode()
    head = b"POST /jobs HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + b"\r\nContent-Type: application/json\r\n"
    seen = asyncio.Event()
    true_verify = api.parts.verifier.verify

    async def verify(credential: str) -> Any:
        seen.set()
        return await true_verify(credential)

    api.parts.verifier.verify = verify  # type: ignore[method-assign]
    with caplog.at_level(logging.INFO):
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(head + b'Content-Length: 1000\r\n\r\n{"recipe": ')
        async with asyncio.timeout(60):
            # The request is under way, and waits for the rest of its body.
            await seen.wait()
            writer.transport.abort()
            while not any("499" in record.getMessage() for record in caplog.records):
                await asyncio.sleep(0.01)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_client_that_leaves_in_the_middle_harms_nobody(api: Rig) -> None:
    key = api.user_key.encode()
    head = b"POST /jobs HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + b"\r\nContent-Type: application/json\r\n"
    for _ in range(20):
        await raw(api, head + b'Content-Length: 1000\r\n\r\n{"recipe": ', is_cut=True)
        await raw(api, head[:50], is_cut=True)
        await raw(api, b"GET /jobs/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + b"\r\n\r\n", is_cut=True)
    await is_well(api)
    assert len((await api.user.get("/jobs")).json()["items"]) == 1
