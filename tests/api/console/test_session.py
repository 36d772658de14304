"""Signing in at the console: by link and by key, what the cookie is good for, and how it ends."""

from __future__ import annotations

import asyncio

import httpx

from tests.api.rig import Rig
from windlass.app.console_link import console_token


def browser(api: Rig, **headers: str) -> httpx.AsyncClient:
    """A client that keeps cookies and has no key, as a page of the console is."""
    return httpx.AsyncClient(
        base_url=api.url, headers={"Sec-Fetch-Site": "same-origin", **headers}, timeout=30, trust_env=False
    )


async def test_first(api: Rig) -> None:
    token = await console_token(api.windlass)
    async with browser(api) as page:
        assert (await page.get("/console/session")).status_code == 401
        made = await page.post("/console/session", json={"token": token})
        assert made.status_code == 201, made.text
        print(made.headers, made.json())
        assert (await page.get("/console/session")).json() == made.json()
        assert (await page.get("/me")).json()["role"] == "admin"
        assert (await page.post("/jobs", json={"recipe": "hello"})).json()["code"] == "bad_csrf"
        page.headers["X-Windlass-CSRF"] = made.json()["csrf"]
        assert (await page.post("/jobs", json={"recipe": "hello"})).status_code == 202
        assert (await page.post("/console/session", json={"token": token})).status_code == 401
        async with page.stream("GET", "/jobs/stream") as s:
            assert s.status_code == 200
            assert (await page.delete("/console/session")).status_code == 204
            text = await asyncio.wait_for(s.aread(), 10)
            print(text)
        assert (await page.get("/me")).status_code == 401
        assert (await page.get("/console/jobs/x")).status_code == 200
        assert (await page.get("/version")).json()["console"]
