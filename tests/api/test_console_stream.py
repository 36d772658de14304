"""The console's stream as the service answers it: by key, ticket or cookie, as long as its caller is authorized."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import pytest

from tests.api.rig import Rig
from tests.api.streams.stage import Client, connect
from tests.api.streams.test_console import documents, events
from windlass.core.caller import Scope
from windlass.pure.key import parse_key

OPEN: list[Client] = []


@pytest.fixture(autouse=True)
async def _hung_up(api: Rig) -> AsyncIterator[None]:
    yield
    while OPEN:
        OPEN.pop().hang_up()


async def console(api: Rig, topics: str, *, more: str = "", **headers: str) -> Client:
    port = httpx.URL(api.url).port
    assert port is not None
    client = await connect(port, f"/console/stream?topics={topics}{more}", **headers)
    OPEN.append(client)
    return client


async def test_a_job_is_told_to_its_end_and_the_jobs_go_on(api: Rig) -> None:
    job = await api.submit("fan", inputs={"many": 5})
    client = await console(api, f"jobs,job:{job}@0", X_API_Key=api.user_key)
    assert client.headers["content-type"].startswith("text/event-stream")
    async with api.working():
        await client.until(lambda: bool(client.named("gone")))
    assert client.named("gone")[0].data == {"topic": f"job:{job}", "code": "ended"}
    listed = (await api.user.get(f"/jobs/{job}/events")).json()["items"]
    assert events(client.frames, UUID(job)) == [event["seq"] for event in listed]
    await client.until(lambda: documents(client.frames)[job][-1]["status"] == "COMPLETED")
    [listed_job] = (await api.user.get("/jobs")).json()["items"]
    assert documents(client.frames)[job][-1] == listed_job


async def test_a_ticket_opens_it_once_and_a_jobs_ticket_does_not(api: Rig) -> None:
    job = await api.submit()
    ticket = (await api.user.post("/stream-tickets")).json()["ticket"]
    client = await console(api, "jobs", more=f"&ticket={ticket}")
    assert client.status == 200
    assert (await console(api, "jobs", more=f"&ticket={ticket}")).status == 401
    ticket = (await api.user.post("/stream-tickets", json={"job_id": job})).json()["ticket"]
    assert (await console(api, f"job:{job}", more=f"&ticket={ticket}")).status == 401


async def test_a_browsers_cookie_opens_it_and_signing_out_ends_it(api: Rig) -> None:
    async with api.client(None) as browser:
        assert (await browser.post("/console/session", json={"key": api.user_key})).status_code == 201
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        client = await console(api, "jobs", Cookie=cookie)
        assert client.status == 200
        csrf = (await browser.get("/console/session")).json()["csrf"]
        assert (await browser.delete("/console/session", headers={"X-Windlass-CSRF": csrf})).status_code == 204
        await client.to_the_end()
        assert client.frames[-1].event == "bye"
        assert (await console(api, "jobs", Cookie=cookie)).status == 401


async def test_a_key_that_is_revoked_ends_it(api: Rig) -> None:
    key = await api.key("user")
    client = await console(api, "jobs", X_API_Key=key)
    parsed = parse_key(key)
    assert parsed is not None
    assert (await api.admin.delete(f"/keys/{parsed.id}")).status_code in (200, 204)
    await client.to_the_end()
    assert client.frames[-1].event == "bye"
    assert (await console(api, "jobs", X_API_Key=key)).status == 401


@pytest.mark.parametrize(
    ("topics", "status"),
    [("jobs", 200), ("", 400), ("nothing", 400), ("jobs,jobs", 400), ("x" * 9_000, 422), ("jobs&more=1", 400)],
    ids=lambda value: str(value)[:20],
)
async def test_topics_are_looked_at(api: Rig, topics: str, status: int) -> None:
    client = await console(api, topics, X_API_Key=api.user_key)
    assert client.status == status


async def test_those_who_may_not_read_jobs_may_not_follow_them(api: Rig) -> None:
    assert (await api.stranger.get("/console/stream?topics=jobs")).status_code == 401
    async with api.client(await api.key("auditor", scopes=frozenset({Scope.AUDIT_READ}))) as auditor:
        assert (await auditor.get("/console/stream?topics=jobs")).status_code == 403
    assert (await api.user.get("/console/stream")).status_code == 422
