"""Signing in at the console: by link and by key, what the cookie is good for, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.access.membership_service import membership_service
from tests.api.console.page import CSRF, cookie_of, page, signed_in
from tests.api.matrix.expected import ASKERS, ROWS, expected
from tests.api.matrix.test_matrix import ROUTES, Stage, stage
from tests.api.rig import Rig, rig
from windlass.access import sessions
from windlass.access.sessions import Sessions
from windlass.app.console_link import console_token
from windlass.core.caller import Scope

__all__ = ["stage"]


async def test_a_link_signs_in_once(api: Rig) -> None:
    token = await console_token(api.windlass)
    async with page(api) as browser:
        assert (await browser.get("/console/session")).status_code == 401
        made = await browser.post("/console/session", json={"token": token})
        assert made.status_code == 201
        told = made.json()
        assert (told["caller"], told["role"], told["scopes"], told["demo"]) == ("local", "admin", ["admin"], None)
        assert (await browser.get("/console/session")).json() == told
        assert (await browser.get("/me")).json()["caller"] == "local"
    async with page(api) as another:
        again = await another.post("/console/session", json={"token": token})
        assert (again.status_code, again.json()["code"]) == (401, "unauthenticated")
        assert "set-cookie" not in again.headers


async def test_of_many_who_use_a_link_at_once_one_gets_in(api: Rig) -> None:
    token = await console_token(api.windlass)
    async with page(api) as browser:
        tries = [browser.post("/console/session", json={"token": token}) for _ in range(20)]
        found = [answer.status_code for answer in await asyncio.gather(*tries)]
    assert sorted(found) == [201, *[401] * 19]


async def test_a_key_signs_in_as_its_caller(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser:
        told = (await browser.get("/console/session")).json()
        assert (told["caller"], told["role"]) == ("user", "caller")
        assert sorted(told["scopes"]) == ["jobs:read", "jobs:write"]
        assert datetime.fromisoformat(told["expires_at"]) > datetime.now().astimezone() + timedelta(hours=11)


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: Rig) -> None:
    async with page(api) as browser:
        answer = await browser.post("/console/session", json={"key": api.user_key})
        [cookie] = answer.headers.get_list("set-cookie")
        _, value = cookie_of(browser)
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/", "max-age=2592000"} <= parts
        assert "secure" not in parts and not any(part.startswith("domain") for part in parts)
        assert value not in answer.text and answer.json()["csrf"] not in value
        assert answer.headers["cache-control"] == "no-store"


async def test_over_https_the_cookie_is_for_this_host_and_tls_only(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, proxies=("127.0.0.1",), public_url="https://windlass.example") as api:
        cases = {
            "proxy": ({"X-Forwarded-Proto": "https"}, True),
            "proxy over http": ({"X-Forwarded-Proto": "http"}, False),
            "public address": ({"Host": "windlass.example"}, True),
            "this machine": ({}, False),
        }
        for case, (headers, is_secure) in cases.items():
            async with page(api, **headers) as browser:
                made = await browser.post("/console/session", json={"key": api.user_key})
                [cookie] = made.headers.get_list("set-cookie")
                assert ("Secure" in cookie) == is_secure, case
                assert cookie.startswith("__Host-windlass_session_") == is_secure, case
                name, value = cookie.split(";")[0].split("=", 1)
                again = await browser.get("/me", headers={"Cookie": f"{name}={value}"})
                assert again.status_code == 200, case
                if is_secure:
                    # A neighbour can set a cookie of the plain name for the whole domain.
                    plain = name.removeprefix("__Host-")
                    tossed = await browser.get("/me", headers={"Cookie": f"{plain}={value}"})
                    assert tossed.status_code == 401


async def test_a_strangers_word_on_the_protocol_is_not_believed(api: Rig) -> None:
    async with page(api, **{"X-Forwarded-Proto": "https"}) as browser:
        made = await browser.post("/console/session", json={"key": api.user_key})
        assert "Secure" not in made.headers["set-cookie"]


async def test_two_installations_of_one_machine_leave_each_others_cookies_alone(
    api: Rig, fresh_dsn: str, tmp_path: Path
) -> None:
    other = ("the secret of another installation, long enough",)
    async with rig(fresh_dsn, tmp_path / "other") as twin, signed_in(api, api.user_key) as browser:
        # The same secret, and so the same cookie: they are one installation, as far as cookies go.
        assert twin.parts.sessions.names == api.parts.sessions.names
        names = {*api.parts.sessions.names}
        names |= {*Sessions(api.parts.db, type(api.secret).of(other), api.parts.verifier).names}
        assert len(names) == 2
        jar = dict(browser.cookies)
        jar[f"windlass_session_{'0' * 8}"] = "wls_" + "a" * 43
        assert (await browser.get("/me", headers={"Cookie": joined(jar)})).status_code == 200


def joined(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


async def test_every_route_answers_the_cookie_as_it_answers_the_key(stage: Stage) -> None:
    """The whole matrix again by browsers; a request that changes state is refused without the session's csrf token."""
    wrong: list[str] = []
    for person in ASKERS:
        async with signed_in(stage.api, str(stage.keys[person])) as browser:
            for route in ROUTES:
                name, row = str(route.operation_id), ROWS[str(route.operation_id)]
                if row.who == "-":
                    continue
                is_change = bool(set(route.methods or ()) - {"GET", "HEAD"})
                values = await stage.values(row)
                for csrf in ("", "x" * 43, browser.headers[CSRF]) if is_change else ("",):
                    should = expected(row, person) if csrf == browser.headers[CSRF] or not is_change else 403
                    got = await stage.ask_with(browser, route, row, values, {CSRF: csrf})
                    code = got.json()["code"] if got.status_code == 403 else None
                    if got.status_code != should or (
                        csrf != browser.headers[CSRF] and is_change and code != "bad_csrf"
                    ):
                        wrong.append(f"{name} for {person} with csrf {csrf!r}: {got.status_code} {code}, not {should}")
    assert not wrong, "\n".join(wrong)


async def test_a_key_wins_over_the_cookie(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser:
        assert (await browser.get("/me", headers={"X-API-Key": api.admin_key})).json()["caller"] == "admin"
        # With a key no csrf is asked for: no browser sends one by itself. A bad key is not made good by the cookie.
        del browser.headers[CSRF]
        sent = await browser.post("/jobs", json={"recipe": "hello"}, headers={"X-API-Key": api.admin_key})
        assert sent.status_code == 202
        assert (await browser.get("/me", headers={"X-API-Key": "wl_bad"})).status_code == 401


async def test_streams_take_the_cookie_and_end_with_the_session(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser, browser.stream("GET", "/jobs/stream") as stream:
        assert stream.status_code == 200
        assert (await browser.delete("/console/session")).status_code == 204
        async with asyncio.timeout(60):
            assert "event: bye" in (await stream.aread()).decode()
        assert (await browser.get("/console/stream?topics=jobs")).status_code == 401


async def test_a_session_ends_with_its_key_and_so_do_its_streams(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser, browser.stream("GET", "/console/stream?topics=jobs") as stream:
        assert stream.status_code == 200
        assert (await api.admin.delete(f"/keys/{api.user_key.split('_')[1]}")).status_code == 204
        async with asyncio.timeout(60):
            assert "event: bye" in (await stream.aread()).decode()
        for path in ("/me", "/console/session", "/jobs/stream"):
            assert (await browser.get(path)).status_code == 401


async def test_signing_out_ends_it_everywhere_and_clears_the_cookie(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser:
        name, value = cookie_of(browser)
        assert (await browser.delete("/console/session", headers={CSRF: ""})).json()["code"] == "bad_csrf"
        assert (await browser.get("/me")).status_code == 200
        answer = await browser.delete("/console/session")
        assert answer.status_code == 204 and "Max-Age=0" in answer.headers["set-cookie"]
        for _ in range(2):
            assert (await browser.delete("/console/session")).status_code == 204
        assert (await browser.get("/me", headers={"Cookie": f"{name}={value}"})).status_code == 401


async def test_signing_in_again_ends_the_session_before(api: Rig) -> None:
    async with signed_in(api, api.user_key) as browser:
        before = "=".join(cookie_of(browser))
        assert (await browser.post("/console/session", json={"key": api.admin_key})).status_code == 201
        assert (await browser.get("/me")).json()["caller"] == "admin"
        assert (await browser.get("/me", headers={"Cookie": before})).status_code == 401


async def test_an_admins_role_is_that_of_the_key_now(api: Rig) -> None:
    key = await api.key("boss", scopes=frozenset({Scope.ADMIN}))
    async with signed_in(api, key) as browser:
        assert (await browser.get("/console/session")).json()["role"] == "admin"
        async with api.parts.db.connection() as connection:
            await connection.execute("UPDATE windlass.keys SET scopes = '{jobs:read}' WHERE caller = 'boss'")
        assert (await browser.get("/console/session")).json()["role"] == "caller"
        assert (await browser.get("/workers")).status_code == 403


async def test_a_session_sees_what_its_caller_sees(api: Rig) -> None:
    job = await api.submit(client=api.other)
    async with signed_in(api, api.user_key) as browser:
        assert (await browser.get(f"/jobs/{job}")).status_code == 404
        assert (await browser.get("/jobs")).json()["items"] == []


async def test_sign_ins_are_recorded_and_nothing_secret_is_written_down(
    api: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = str(await console_token(api.windlass))
    async with page(api) as browser:
        await browser.get(f"/console/jobs/x?token={token}")
        made = await browser.post("/console/session", json={"token": token})
        _, cookie = cookie_of(browser)
        await browser.get("/me")
        browser.headers[CSRF] = csrf = made.json()["csrf"]
        await browser.delete("/console/session")
        await browser.post("/console/session", json={"key": api.user_key})
        await browser.post("/console/session", json={"key": api.user_key[:-1]})
    await api.parts.audit.flush()
    async with api.parts.db.connection() as connection:
        notes = await connection.fetch("SELECT event, caller, payload::text FROM windlass.audit_notes ORDER BY id")
        rows = await connection.fetch("SELECT s::text FROM windlass.console_sessions s")
        rows += await connection.fetch("SELECT t::text FROM windlass.console_tokens t")
    told = [(row["event"], row["caller"]) for row in notes if row["event"].startswith("console")]
    assert told == [
        ("console_signed_in", "local"), ("console_signed_out", "local"), ("console_signed_in", "user"),
    ]  # fmt: skip
    # The test's own client tells all that it sends.
    logged = [one.getMessage() for one in caplog.records if not one.name.startswith("http")]
    assert any("POST /console/session 201" in line for line in logged)
    lines = str(logged) + str([list(row.values()) for row in (*notes, *rows)])
    for secret in (token, cookie, csrf, api.user_key, token[4:], cookie[4:]):
        assert secret not in lines
        assert secret.encode().hex() not in lines


@pytest.mark.parametrize(
    "body",
    [
        {}, {"token": None}, {"token": "a", "key": "b"}, {"token": 1}, {"key": ["x"]}, {"key": ""}, {"key": "a\x00"},
        {"password": "x"}, [], "x", {"key": "x" * 5_000}, {"token": "wll_x", "more": 1},
    ],
)  # fmt: skip
async def test_what_is_no_sign_in_is_refused(api: Rig, body: object) -> None:
    async with page(api) as browser:
        answer = await browser.post("/console/session", json=body)
        assert answer.status_code == 422, answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "key", ["ünïcode", "wl_" + "a" * 70, "null", "wll_" + "a" * 43, "wls_" + "a" * 43, "two words", "\U0001f600"]
)
async def test_bad_credentials_are_told_alike(api: Rig, key: str) -> None:
    async with page(api) as browser:
        told = []
        for body in ({"key": key}, {"token": key}):
            answer = await browser.post("/console/session", json=body)
            problem = answer.json()
            told.append((answer.status_code, problem["code"], problem["detail"], problem["hint"]))
    assert told[0] == told[1] == (401, "unauthenticated", told[0][2], told[0][3])
    assert key not in str(told)


# Fewer than in truth: hundreds of requests may take longer than the minute in which they are counted.
REFUSALS = 30


async def test_whoever_guesses_is_turned_away_for_the_minute(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.api.admission.REFUSALS_PER_MINUTE_MAX", REFUSALS)
    async with page(api) as browser:
        found = []
        for at in range(REFUSALS + 1):
            kind = at % 3
            if kind == 0:
                answer = await browser.post("/console/session", json={"token": f"wll_{at:043}"})
            elif kind == 1:
                answer = await browser.post("/console/session", json={"key": f"guess {at}"})
            else:
                name = api.parts.sessions.names[0]
                answer = await browser.get("/console/session", headers={"Cookie": f"{name}=wls_{at:043}"})
            found.append(answer.status_code)
        assert found == [401] * REFUSALS + [429]
        token = await console_token(api.windlass)
        assert (await browser.post("/console/session", json={"token": token})).status_code == 429


async def test_opening_the_page_is_no_guess(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.api.admission.REFUSALS_PER_MINUTE_MAX", REFUSALS)
    async with page(api) as browser:
        for _ in range(REFUSALS + 10):
            assert (await browser.get("/console/session")).status_code == 401
    await api.parts.audit.flush()
    async with api.parts.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.audit_notes WHERE event = 'auth_rejected'") == 0


async def test_with_membership_one_signs_in_with_a_key_of_the_service(dsn: str, tmp_path: Path) -> None:
    claims = {"caller_id": "ann", "scopes": ["jobs:read", "jobs:write"]}
    async with membership_service() as remote:
        await remote.order(answers={"anns-key": {"status": 200, "body": claims}})
        async with rig(dsn, tmp_path, membership_url=remote.url) as api:
            assert await console_token(api.windlass) is None
            async with page(api) as browser:
                assert (await browser.post("/console/session", json={"key": "nobodys-key"})).status_code == 401
            async with signed_in(api, "anns-key") as browser:
                assert (await browser.get("/me")).json()["caller"] == "ann"
                assert (await browser.post("/jobs", json={"recipe": "hello"})).status_code == 202
                async with api.parts.db.connection() as connection:
                    row = await connection.fetchrow("SELECT * FROM windlass.console_sessions")
                assert row["key_id"] is None
                assert b"anns-key" not in row["sealed"]
                # The service says that the key is good no more. What it said before is kept for a minute at most.
                await remote.order(answers={"anns-key": {"status": 401}})
                api.parts.verifier._good.clear()  # type: ignore[attr-defined]
                assert (await browser.get("/me")).status_code == 401
                assert (await browser.get("/console/session")).status_code == 401


async def test_an_outage_of_membership_signs_nobody_out(dsn: str, tmp_path: Path) -> None:
    async with membership_service() as remote:
        await remote.order(answers={"anns-key": {"status": 200, "body": {"caller_id": "ann"}}})
        async with rig(dsn, tmp_path, membership_url=remote.url) as api, signed_in(api, "anns-key") as browser:
            await remote.order(answers={"anns-key": {"status": 503}})
            api.parts.verifier._good.clear()  # type: ignore[attr-defined]
            answer = await browser.get("/console/session")
            assert (answer.status_code, answer.json()["code"]) == (503, "membership_unavailable")
            await remote.order(answers={"anns-key": {"status": 200, "body": {"caller_id": "ann"}}})
            assert (await browser.get("/console/session")).status_code == 200


async def test_the_session_outlives_the_process(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path) as api, signed_in(api, api.user_key) as browser:
        cookie, csrf = "=".join(cookie_of(browser)), browser.headers[CSRF]
    async with (
        rig(dsn, tmp_path) as again,
        httpx.AsyncClient(base_url=again.url, trust_env=False, timeout=60) as client,
    ):
        answer = await client.get("/console/session", headers={"Cookie": cookie})
        assert answer.status_code == 200 and answer.json()["csrf"] == csrf


async def test_signing_out_at_one_server_ends_the_streams_of_another(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path) as api, rig(dsn, tmp_path) as twin, signed_in(api, api.user_key) as browser:
        cookie = {"Cookie": "=".join(cookie_of(browser))}
        async with page(twin, **cookie) as elsewhere, elsewhere.stream("GET", "/jobs/stream") as stream:
            assert stream.status_code == 200
            assert (await browser.delete("/console/session")).status_code == 204
            async with asyncio.timeout(60):
                assert "event: bye" in (await stream.aread()).decode()
            assert (await elsewhere.get("/me")).status_code == 401


async def test_a_database_that_hangs_signs_nobody_out(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LOOK_WITHIN_S", 0.2)
    async with signed_in(api, api.user_key) as browser:
        async with api.parts.db.connection() as connection, connection.transaction():
            await connection.execute("LOCK TABLE windlass.console_sessions IN ACCESS EXCLUSIVE MODE")
            for path in ("/me", "/console/session"):
                answer = await browser.get(path)
                assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        monkeypatch.undo()
        assert (await browser.get("/me")).status_code == 200
