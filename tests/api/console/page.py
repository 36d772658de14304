"""A page of the console, as the server sees it: a client that keeps cookies, has no key, and says where it is from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.api.rig import Rig

CSRF = "X-Windlass-CSRF"


@asynccontextmanager
async def page(api: Rig, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """No caller is signed in yet."""
    given = {"Sec-Fetch-Site": "same-origin", **headers}
    async with httpx.AsyncClient(base_url=api.url, headers=given, timeout=60, trust_env=False) as client:
        yield client


@asynccontextmanager
async def signed_in(api: Rig, key: str, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """A page at which the holder of the key is signed in, and which sends its csrf with everything."""
    async with page(api, **headers) as client:
        answer = await client.post("/console/session", json={"key": key})
        assert answer.status_code == 201, answer.text
        client.headers[CSRF] = answer.json()["csrf"]
        yield client


def cookie_of(client: httpx.AsyncClient) -> tuple[str, str]:
    """The name and the value of the session's cookie."""
    [(name, value)] = [(name, value) for name, value in client.cookies.items() if "windlass_session" in name]
    return name, value
