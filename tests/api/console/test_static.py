"""The console over HTTP: the right file in the right form with the right headers, and no way out of its folder."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.console.test_files import built
from tests.api.rig import Rig, rig
from windlass.api.console_files import VARIABLE

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
async def site(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """A server with a small build."""
    monkeypatch.setenv(VARIABLE, str(built(tmp_path / "console")))
    (tmp_path / "secret.txt").write_text("the secret")
    async with rig(dsn, tmp_path) as api:
        yield api


async def test_files_have_their_types_and_are_cached_by_their_names(site: Rig) -> None:
    for path, kind, cache in (
        ("", "text/html; charset=utf-8", "no-cache"),
        ("index.html", "text/html; charset=utf-8", "no-cache"),
        ("icon.svg", "image/svg+xml", "no-cache"),
        ("assets/main-1.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        ("assets/a-1.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable"),
        ("assets/inter-1.woff2", "font/woff2", "public, max-age=31536000, immutable"),
    ):
        answer = await site.stranger.get(f"/console/{path}", headers={"Accept-Encoding": "identity"})
        assert answer.status_code == 200
        assert (answer.headers["content-type"], answer.headers["cache-control"]) == (kind, cache), path
        assert "content-encoding" not in answer.headers
        assert answer.headers["vary"] == "Accept-Encoding"


async def test_every_answer_has_the_headers_that_keep_the_page_to_itself(site: Rig) -> None:
    for path in ("", "jobs/x", "icon.svg", "assets/main-1.js"):
        headers = (await site.stranger.get(f"/console/{path}")).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["script-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "set-cookie" not in headers


async def test_unknown_pages_are_the_one_page_and_unknown_assets_are_not(site: Rig) -> None:
    index = (await site.stranger.get("/console/")).text
    for path in (
        "jobs",
        "jobs/01a1e247-f915-7792-be90-84c786ed2e37",
        "recipes/my.recipe",
        "sign-in",
        "x/y/z",
        "%00",
        "ünï",
    ):
        answer = await site.stranger.get(f"/console/{path}")
        assert (answer.status_code, answer.text) == (200, index), path
    for path in ("assets/main-0.js", "assets/", "assets/../index.html", "assets/main-1.js.map"):
        refused = await raw(site, "GET", f"/console/{path}")
        assert refused.startswith(b"HTTP/1.1 404") and b"problem+json" in refused, path


async def test_what_is_the_apis_is_no_page(site: Rig) -> None:
    assert (await site.stranger.head("/console/session")).status_code == 404
    for path in ("/console/demo/run", "/console/demo", "/console/session/x"):
        answer = await site.stranger.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_compressed_form_is_sent_to_whoever_takes_it(site: Rig) -> None:
    async with site.stranger.stream("GET", "/console/assets/main-1.js", headers={"Accept-Encoding": "gzip"}) as answer:
        body = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == b"one()"
    async with site.stranger.stream("GET", "/console/", headers={"Accept-Encoding": "br, gzip"}) as answer:
        body = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "br"
    assert body.startswith(b"brotli of")


async def test_what_is_known_is_not_sent_again_and_each_form_has_its_tag(site: Rig) -> None:
    tags = set()
    for coding in ("identity", "gzip", "br"):
        headers = {"Accept-Encoding": coding}
        async with site.stranger.stream("GET", "/console/", headers=headers) as answer:
            tag = answer.headers["etag"]
        tags.add(tag)
        for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
            again = await site.stranger.get("/console/", headers={**headers, "If-None-Match": known})
            assert (again.status_code, again.content) == (304, b""), known
            assert again.headers["etag"] == tag and again.headers["cache-control"] == "no-cache"
            assert "content-security-policy" in again.headers
        assert (await site.stranger.get("/console/", headers={**headers, "If-None-Match": '"x"'})).status_code == 200
    assert len(tags) == 3


async def test_head_says_what_get_would(site: Rig) -> None:
    for path in ("/console/", "/console/assets/main-1.js", "/console/assets/none.js", "/console"):
        got, head = await site.stranger.get(path), await site.stranger.head(path)
        assert head.content == b""
        assert head.status_code == got.status_code
        changing = {"date", "x-request-id"}
        assert {k: v for k, v in head.headers.items() if k not in changing} == {
            k: v for k, v in got.headers.items() if k not in changing
        }, path


async def test_a_range_is_answered_with_the_whole(site: Rig) -> None:
    for asked in ("bytes=0-1", "bytes=999-", "bytes=0-1,3-4", "bytes=-1", "lines=1-2"):
        answer = await site.stranger.get("/console/assets/main-1.js", headers={"Range": asked})
        assert (answer.status_code, answer.text) == (200, "one()"), asked


async def test_other_methods_are_refused(site: Rig) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = await site.stranger.request(method, "/console/jobs")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"
        assert "access-control-allow-origin" not in answer.headers


async def test_browsers_are_sent_to_the_console_and_programs_are_not(site: Rig) -> None:
    answer = await site.stranger.get("/", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (307, "/console/")
    for accept in ("*/*", "application/json", ""):
        answer = await site.stranger.get("/", headers={"Accept": accept})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = await site.stranger.get("/console?token=wll_x&tab=graph")
    assert answer.headers["location"] == "/console/?token=wll_x&tab=graph"


async def test_a_redirect_leads_nowhere_else(site: Rig) -> None:
    for path in ("//evil.example/", "/console?//evil.example", "/\\evil.example", "/%2f%2fevil.example"):
        answer = await raw(site, "GET", path, Accept="text/html")
        for line in answer.split(b"\r\n"):
            if line.lower().startswith(b"location:"):
                assert line.split(b" ", 1)[1].startswith(b"/console/"), (path, line)


TRAVERSALS = [
    "../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "%252e%252e%252fsecret.txt",
    "..\\secret.txt", "..%5csecret.txt", "assets/../../secret.txt", "assets/..%2f..%2fsecret.txt",
    "....//secret.txt", "/secret.txt", "//secret.txt", "%2fetc/passwd", "assets/%00", "index.html%00.js",
    "assets/main-1.js%00", "%c0%ae%c0%ae/secret.txt", "..;/secret.txt", "file:///etc/passwd", "C:/secret.txt",
    "assets/main-1.js/", "assets//main-1.js", "./secret.txt", "%E2%80%A5/secret.txt", "assets/main-1.js.gz",
]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
async def test_no_path_leads_out_of_the_folder(site: Rig, path: str) -> None:
    for start in ("/console/", "/api/v1/console/"):
        answer = await raw(site, "GET", start + path)
        assert b"the secret" not in answer and b"root:" not in answer
        assert answer.split(b" ")[1] in (b"200", b"404"), answer[:200]
        if answer.split(b" ")[1] == b"200":
            assert b"<!doctype html>one" in answer


async def test_a_path_that_is_not_utf8_or_very_long_is_only_a_page(site: Rig) -> None:
    for path in ("%ff%fe", "a" * 6_000, "%F0%9F%98%80"):
        answer = await raw(site, "GET", f"/console/{path}")
        assert answer.split(b" ")[1] == b"200", answer[:200]


async def test_no_path_at_all_breaks_it(site: Rig) -> None:
    rng = random.Random(7)
    pieces = ["assets", "..", ".", "%2e", "%2f", "%5c", "%00", "%ff", "index.html", "console", "//", "?", "#", "%", ";"]
    for _ in range(300):
        path = "/console/" + "".join(
            rng.choice([rng.choice(pieces), f"%{rng.randrange(256):02x}", "/"]) for _ in range(rng.randrange(1, 12))
        )
        answer = await raw(site, rng.choice(["GET", "HEAD"]), path)
        assert answer.split(b" ")[1] in (b"200", b"404"), (path, answer[:200])
        assert b"the secret" not in answer


async def test_without_a_build_the_lite_page_is_served_everywhere(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.api.console_files._places", lambda: iter(()))
    async with rig(dsn, tmp_path) as api:
        for path in ("", "jobs/x", "index.html"):
            answer = await api.stranger.get(f"/console/{path}")
            assert answer.status_code == 200 and "Windlass lite" in answer.text
            assert "script-src 'self' 'sha256-" in answer.headers["content-security-policy"]
        told = (await api.stranger.get("/version")).json()
        assert told["console"] == "lite"


async def test_the_version_names_the_console_and_its_build(site: Rig, tmp_path: Path) -> None:
    told = (await site.stranger.get("/version")).json()
    assert told["console"] == "full" and len(told["console_build"]) == 12


async def raw(site: Rig, method: str, path: str, **headers: str) -> bytes:
    """What is answered to this very path: a client would tidy it up before it sends it."""
    at = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {at.netloc}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


async def test_many_at_once_get_the_same(site: Rig) -> None:
    async def one(client: httpx.AsyncClient) -> bytes:
        return (await client.get("/console/assets/main-1.js")).content

    assert set(await asyncio.gather(*(one(site.stranger) for _ in range(200)))) == {b"one()"}
