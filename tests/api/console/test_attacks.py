"""What other people's pages, and people with time on their hands, try with a session that is not theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.api.console.page import CSRF, cookie_of, page, signed_in
from tests.api.rig import Rig, rig
from windlass.access import sessions
from windlass.app.console_link import console_token

HELLO = {"recipe": "hello"}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "SAME-ORIGIN", "none, same-origin"])
async def test_another_sites_page_has_no_use_of_the_cookie(api: Rig, site: str) -> None:
    """Nor has one on another port of this machine, to which browsers send the cookie along."""
    async with signed_in(api, api.user_key) as browser:
        foreign = {"Sec-Fetch-Site": site}
        for path in ("/me", "/jobs", "/jobs/stream", "/console/stream?topics=jobs", "/console/session"):
            assert (await browser.get(path, headers=foreign)).status_code == 401, path
        assert (await browser.post("/jobs", json=HELLO, headers=foreign)).status_code == 401
        for answer in (
            await browser.post("/console/session", json={"key": api.admin_key}, headers=foreign),
            await browser.delete("/console/session", headers=foreign),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "bad_csrf")
            assert "set-cookie" not in answer.headers
        # A request from the address bar has no origin.
        assert (await browser.get("/me", headers={"Sec-Fetch-Site": "none"})).json()["caller"] == "user"


async def test_a_form_of_another_site_signs_nobody_in_or_out(api: Rig) -> None:
    """What needs no leave of ours: simple requests, of which a browser sends the cookie and never asks before."""
    body = f'{{"key": "{api.admin_key}"}}'
    async with signed_in(api, api.user_key) as browser:
        del browser.headers["Sec-Fetch-Site"], browser.headers[CSRF]
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            for path in ("/console/session", "/jobs"):
                answer = await browser.post(path, content=body, headers={"Content-Type": kind, "Origin": "http://evil"})
                assert answer.status_code in (403, 415), (kind, path)
                assert "set-cookie" not in answer.headers
        assert (await browser.get("/me")).json()["caller"] == "user"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:1", "http://[", "x"])
async def test_without_other_signs_the_origin_decides(api: Rig, origin: str) -> None:
    async with page(api) as browser:
        del browser.headers["Sec-Fetch-Site"]
        answer = await browser.post("/console/session", json={"key": api.user_key}, headers={"Origin": origin})
        assert (answer.status_code, answer.json()["code"]) == (403, "bad_csrf")
        own = await browser.post("/console/session", json={"key": api.user_key}, headers={"Origin": api.url})
        assert own.status_code == 201


async def test_behind_a_proxy_that_changes_the_host_the_public_address_is_ours(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, public_url="https://windlass.example") as api, page(api) as browser:
        del browser.headers["Sec-Fetch-Site"]
        for origin, status in (("https://windlass.example", 201), ("https://windlass.example.evil", 403)):
            answer = await browser.post("/console/session", json={"key": api.user_key}, headers={"Origin": origin})
            assert answer.status_code == status


async def test_no_other_origin_is_ever_given_leave(api: Rig) -> None:
    asked = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, x-windlass-csrf",
    }
    for path in ("/console/session", "/jobs", "/console/", "/me"):
        answer = await api.stranger.options(path, headers=asked)
        assert answer.status_code == 405
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_csrf_is_good_for_its_own_session_only(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser, signed_in(api, api.user_key) as twin:
        assert browser.headers[CSRF] != twin.headers[CSRF]
        stolen = {CSRF: twin.headers[CSRF]}
        assert (await browser.post("/jobs", json=HELLO, headers=stolen)).json()["code"] == "bad_csrf"
        # By itself it opens nothing.
        async with page(api) as nobody:
            for headers in (stolen, {**stolen, "Cookie": "", "X-API-Key": stolen[CSRF]}):
                assert (await nobody.post("/jobs", json=HELLO, headers=headers)).status_code == 401


@pytest.mark.parametrize("csrf", [b"", b"\xff\xfe", b"a" * 20_000, b"null", "ü".encode()])
async def test_a_csrf_of_any_kind_is_only_wrong(api: Rig, csrf: bytes) -> None:
    async with signed_in(api, api.user_key) as browser:
        answer = await browser.post("/jobs", json=HELLO, headers={CSRF.encode(): csrf})
        assert (answer.status_code, answer.json()["code"]) == (403, "bad_csrf")


async def test_cookies_of_any_kind_are_only_wrong(api: Rig) -> None:
    name = api.parts.sessions.names[0]
    good = "wls_" + "a" * 43
    hostile = [
        f"{name}=", f"{name}", f"{name}={good}", f"{name}={good};{name}={good}", f"{name}=wls_{'a' * 44}", "=", ";;;",
        f"{name}={'a' * 20_000}", f"{name}=%00", f'{name}="{good}"', f"{name}=wls_{'ü' * 43}", f"{name}=\xff\xfe",
        "; ".join(f"c{at}=x" for at in range(2_000)), f"{name.upper()}={good}",
        f"__Host-{name}={good}", f"${name}={good}", f"{name}={good} OR 1=1",
    ]  # fmt: skip
    async with page(api) as browser:
        for cookie in hostile:
            answer = await browser.get("/me", headers={b"Cookie": cookie.encode("latin-1")})
            assert answer.status_code == 401, cookie[:80]
            assert answer.headers["content-type"] == "application/problem+json"
        huge = await browser.get("/me", headers={"Cookie": f"{name}={'a' * 40_000}"})
        assert huge.status_code == 431


async def test_a_cookie_for_a_narrower_path_does_not_take_the_place_of_ours(api: Rig) -> None:
    """A browser sends cookies of longer paths first; a page that can set one must not decide who is signed in."""
    async with signed_in(api, api.user_key) as browser, signed_in(api, api.admin_key) as evil:
        name, ours = cookie_of(browser)
        both = f"{name}={cookie_of(evil)[1]}; {name}={ours}"
        assert (await browser.get("/me", headers={"Cookie": both})).json()["caller"] == "user"


async def test_a_caller_keeps_so_many_sessions_and_the_oldest_go(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_PER_CALLER_MAX", 5)
    async with signed_in(api, api.admin_key) as admin:
        cookies = []
        for _ in range(8):
            async with signed_in(api, api.user_key) as browser:
                cookies.append("=".join(cookie_of(browser)))
        async with page(api) as browser:
            found = [(await browser.get("/me", headers={"Cookie": cookie})).status_code for cookie in cookies]
        assert found == [401] * 3 + [200] * 5
        assert (await admin.get("/me")).status_code == 200, "another caller's are left alone"


async def test_many_who_sign_in_at_once_all_do_and_the_number_stays_bounded(
    api: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_PER_CALLER_MAX", 10)

    async def one() -> int:
        async with page(api) as browser:
            return (await browser.post("/console/session", json={"key": api.user_key})).status_code

    # Whose session is pushed out before it is first looked at is told so, and signs in again.
    found = await asyncio.gather(*(one() for _ in range(40)))
    assert found.count(201) >= 10 and set(found) <= {201, 401}
    async with api.parts.db.connection() as connection:
        # The next sign-in removes what simultaneous sign-ins left.
        await one()
        assert await connection.fetchval("SELECT count(*) FROM windlass.console_sessions") <= 10


async def test_a_token_is_no_key_no_cookie_and_no_ticket(api: Rig) -> None:
    token = str(await console_token(api.windlass))
    name = api.parts.sessions.names[0]
    async with page(api) as browser:
        for answer in (
            await browser.get("/me", headers={"X-API-Key": token}),
            await browser.get("/me", headers={"Cookie": f"{name}={token}"}),
            await browser.get(f"/jobs/stream?ticket={token}"),
            await browser.post("/console/session", json={"key": token}),
        ):
            assert answer.status_code == 401
        assert (await browser.get(f"/console/?token={token}")).status_code == 200
        assert (await browser.head(f"/console/?token={token}")).status_code == 200
        # A request that only reads the address does not use it up.
        assert (await browser.post("/console/session", json={"token": token})).status_code == 201


async def test_the_same_session_asked_many_times_at_once_is_one(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser:
        answers = await asyncio.gather(*(browser.get("/console/session") for _ in range(50)))
        assert len({answer.text for answer in answers}) == 1
