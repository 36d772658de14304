"""The documentation over HTTP: the files of a built site and no others, under a strict policy."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.console.test_static import TRAVERSALS, raw
from tests.api.rig import Rig, rig
from windlass.api import site
from windlass.api.site import DocsSite

HASH = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="


def built(folder: Path, text: str = "<!doctype html>first") -> Path:
    """A small site, as docs/site/site_build.py leaves one."""
    (folder / "guides").mkdir(parents=True, exist_ok=True)
    (folder / "assets/javascripts").mkdir(parents=True, exist_ok=True)
    for name, body in {
        "index.html": text,
        "guides/index.html": "<!doctype html>guides",
        "guides/console.html": "<!doctype html>console",
        "assets/javascripts/bundle.1.js": "one()",
    }.items():
        (folder / name).write_text(body)
        (folder / f"{name}.gz").write_bytes(gzip.compress(body.encode()))
    (folder / "__init__.py").touch()
    (folder / "site.json").write_text(json.dumps({"sources": "x", "scripts": [HASH, "' evil.example"]}))
    return folder


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without a site, and no installed one."""
    monkeypatch.setattr(site, "checkout_folder", lambda: tmp_path / "checkout")
    monkeypatch.setattr(site, "PACKAGE", "windlass_docs_of_the_tests")
    (tmp_path / "secret.txt").write_text("the secret")
    return tmp_path / "checkout"


@pytest.fixture
async def served(checkout: Path, dsn: str, tmp_path: Path) -> AsyncIterator[Rig]:
    built(checkout / "build/site")
    async with rig(dsn, tmp_path) as api:
        yield api


async def test_pages_and_folders_are_served(served: Rig) -> None:
    moved = await served.stranger.get("/docs")
    assert (moved.status_code, moved.headers["location"]) == (307, "/docs/")
    for path, text in {
        "/docs/": "first",
        "/docs/index.html": "first",
        "/docs/guides/": "guides",
        "/docs/guides/console.html": "console",
        "/api/v1/docs/guides/console.html": "console",
    }.items():
        answer = await served.stranger.get(path)
        assert (answer.status_code, answer.text) == (200, f"<!doctype html>{text}"), path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
    script = await served.stranger.get("/docs/assets/javascripts/bundle.1.js", headers={"Accept-Encoding": "gzip"})
    assert script.headers["content-encoding"] == "gzip" and script.text == "one()"
    assert "immutable" in script.headers["cache-control"]
    tagged = {"If-None-Match": script.headers["etag"], "Accept-Encoding": "gzip"}
    assert (await served.stranger.get("/docs/assets/javascripts/bundle.1.js", headers=tagged)).status_code == 304


async def test_only_the_scripts_of_the_build_may_run(served: Rig) -> None:
    headers = (await served.stranger.get("/docs/")).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["script-src"] == f"'self' 'sha256-{HASH}'"
    assert policy["default-src"] == policy["connect-src"] == policy["font-src"] == policy["worker-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", [*TRAVERSALS, "site.json", "__init__.py", "index.html.gz", "guides", "nowhere.html"])
async def test_nothing_else_is_served(served: Rig, path: str) -> None:
    answer = await raw(served, "GET", f"/docs/{path}")
    assert answer.split(b" ")[1] == b"404", answer[:200]
    assert b"the secret" not in answer and b"root:" not in answer


async def test_without_a_site_a_plain_page_says_so(checkout: Path, dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path) as api:
        for path, status in {"/docs/": 200, "/docs/guides/console.html": 404}.items():
            answer = await api.stranger.get(path)
            assert answer.status_code == status
            assert "was not built" in answer.text and "make site" in answer.text
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "/jobs/{job_id}" in (await api.stranger.get("/openapi")).text
        assert (await api.stranger.get("/openapi.json")).json()["openapi"].startswith("3.1")


def test_a_new_build_is_noticed_and_a_broken_one_is_not(checkout: Path) -> None:
    now_s = 100.0
    folder = built(checkout / "build/site")
    served = DocsSite(clock=lambda: now_s)
    assert b"first" in _body(served)
    built(folder, "<!doctype html>second")
    (folder / "new.html").write_text("new")
    os.utime(folder / "site.json", ns=(1, 1))
    assert served.file("new.html")[1] is None
    now_s += site.LOOK_EVERY_S
    assert b"second" in _body(served)
    assert served.file("new.html")[1] is not None
    (folder / "site.json").write_text("no JSON")
    now_s += site.LOOK_EVERY_S
    assert b"second" in _body(served)


def test_an_installed_package_has_its_site_with_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DocsSite().build() is None
    package = built(tmp_path / "lib/windlass_docs_of_the_tests")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    assert site.find_site() == package


def _body(served: DocsSite) -> bytes:
    file = served.file("index.html")[1]
    assert file is not None
    return file.forms["identity"]
