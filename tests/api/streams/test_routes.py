"""Streams through the whole service: keys, tickets, owners, and what a stranger is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest

from tests.api.rig import Rig, rig
from tests.api.streams.stage import Client, connect
from tests.docs.blocks import ROOT
from tests.docs.page import Page
from windlass import Client as Windlass
from windlass.core.caller import Scope


@pytest.fixture
async def clients() -> AsyncIterator[list[Client]]:
    made: list[Client] = []
    yield made
    for client in made:
        client.hang_up()


class Follower:
    """Opens streams, and hangs up in the end."""

    def __init__(self, api: Rig, clients: list[Client]) -> None:
        self.api = api
        self._clients = clients

    async def open(self, path: str, *, key: str | None = None, after: str | None = None) -> Client:
        headers = {} if key is None else {"X_API_Key": key}
        client = await connect(urlsplit(self.api.url).port or 0, path, after=after, **headers)
        self._clients.append(client)
        return client

    async def ticket(self, **body: Any) -> str:
        answer = await self.api.user.post("/stream-tickets", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["ticket"])


@pytest.fixture
def follow(api: Rig, clients: list[Client]) -> Follower:
    return Follower(api, clients)


@pytest.mark.covers("SCR-01", "SCR-90", "SCR-95")
async def test_a_job_is_followed_over_http_to_its_end(api: Rig, follow: Follower) -> None:
    feed = await follow.open("/jobs/stream", key=api.user_key)
    job = await api.submit("hello", inputs={"name": "Ada"})
    one = await follow.open(f"/jobs/{job}/stream", key=api.user_key)
    async with api.working():
        await one.to_the_end()
        await feed.until(lambda: len(feed.ids) == 3)
    assert one.headers["x-accel-buffering"] == "no"
    assert one.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "x-request-id" in one.headers
    assert one.headers["x-ratelimit-limit"]
    assert one.frames[-1].event == "end"
    assert one.frames[-1].data == (await api.user.get(f"/jobs/{job}")).json()
    assert [frame.data["type"] for frame in feed.named("job")] == ["job.submitted", "job.processing", "job.completed"]
    # The alias is the same.
    again = await follow.open(f"/api/v1/jobs/{job}/stream?after={one.ids[-2]}", key=api.user_key)
    await again.to_the_end()
    assert again.ids == one.ids[-1:]


async def test_anothers_job_is_not_there(api: Rig, follow: Follower) -> None:
    job = await api.submit("hello")
    key = await api.key("eve")
    unknown = [job, str(uuid4()), "no-id", "x" * 500]
    assert [(await follow.open(f"/jobs/{one}/stream", key=key)).status for one in unknown] == [404] * 4
    ticket = await api.other.post("/stream-tickets", json={"job_id": job})
    assert ticket.status_code == 404
    assert (await follow.open(f"/jobs/{job}/stream", key=api.admin_key)).status == 200


@pytest.mark.covers("SCR-91")
async def test_a_bearer_token_opens_the_stream_of_its_caller(api: Rig, clients: list[Client]) -> None:
    port = urlsplit(api.url).port or 0
    clients += [await connect(port, "/jobs/stream", Authorization=f"Bearer {key}") for key in (api.user_key, "junk")]
    assert [client.status for client in clients] == [200, 401]
    await api.submit("hello", client=api.other)
    job = await api.submit("hello")
    await clients[0].until(lambda: bool(clients[0].ids))
    assert [frame.data["job_id"] for frame in clients[0].named("job")] == [job]


@pytest.mark.covers("SCR-91")
async def test_without_a_key_there_is_no_stream(api: Rig, follow: Follower) -> None:
    job = await api.submit("hello")
    for path in ("/jobs/stream", f"/jobs/{job}/stream"):
        assert (await follow.open(path)).status == 401
        assert (await follow.open(path, key="junk")).status == 401
        assert (await follow.open(f"{path}?ticket=junk")).status == 401
        assert (await follow.open(f"{path}?ticket={api.user_key}")).status == 401
        assert (await follow.open(f"{path}?api_key={api.user_key}")).status == 401
    key = await api.key("auditor", scopes=frozenset({Scope.AUDIT_READ}))
    assert (await follow.open("/jobs/stream", key=key)).status == 403


async def test_a_ticket_opens_a_stream_once(api: Rig, follow: Follower) -> None:
    job = await api.submit("hello")
    for path in ("/jobs/stream", f"/jobs/{job}/stream"):
        ticket = await follow.ticket()
        client = await follow.open(f"{path}?ticket={ticket}")
        assert client.status == 200
        assert (await follow.open(f"{path}?ticket={ticket}")).status == 401


async def test_a_ticket_for_a_job_opens_no_other_stream(api: Rig, follow: Follower) -> None:
    job, other = await api.submit("hello"), await api.submit("hello")
    ticket = await follow.ticket(job_id=job)
    assert (await follow.open(f"/jobs/{other}/stream?ticket={ticket}")).status == 401
    assert (await follow.open(f"/jobs/stream?ticket={ticket}")).status == 401
    assert (await api.stranger.get("/jobs", params={"ticket": ticket})).status_code == 401
    assert (await follow.open(f"/jobs/{job}/stream?ticket={ticket}")).status == 200


async def test_a_ticket_reaches_no_log(api: Rig, follow: Follower, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ticket = await follow.ticket()
    assert (await follow.open(f"/jobs/stream?ticket={ticket}")).status == 200
    assert (await follow.open(f"/jobs/stream?ticket={ticket}")).status == 401
    assert "/jobs/stream" in caplog.text
    assert ticket not in caplog.text


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "99", "9999999999999999999999", "%00", "²"])
async def test_an_id_that_was_never_given_is_refused(api: Rig, follow: Follower, after: str) -> None:
    job = await api.submit("hello")
    assert (
        await follow.open(f"/jobs/{job}/stream?after={after.replace('²', '%C2%B2')}", key=api.user_key)
    ).status == 400
    assert (await follow.open(f"/jobs/stream?after={after.replace('²', '%C2%B2')}", key=api.user_key)).status == 400
    assert api.parts.hub.count == 0  # type: ignore[attr-defined]


async def test_the_header_wins_over_the_query(api: Rig, follow: Follower) -> None:
    job = await api.run("hello")
    client = await follow.open(f"/jobs/{job}/stream?after=1", key=api.user_key, after="3")
    await client.to_the_end()
    assert client.ids[0] == "4"
    imitated = await follow.open(f"/jobs/{job}/stream?lastEventId=3", key=api.user_key)
    await imitated.to_the_end()
    assert imitated.ids == client.ids
    assert (await follow.open(f"/jobs/{job}/stream?since=3", key=api.user_key)).status == 400


async def test_only_an_admin_follows_everybody(api: Rig, follow: Follower) -> None:
    assert (await follow.open("/jobs/stream?caller=*", key=api.user_key)).status == 403
    assert (await follow.open("/jobs/stream?caller=other", key=api.user_key)).status == 403
    assert (await follow.open("/jobs/stream?caller=user", key=api.user_key)).status == 200
    everybody = await follow.open("/jobs/stream?caller=*", key=api.admin_key)
    of_other = await follow.open("/jobs/stream?caller=other", key=api.admin_key)
    mine, theirs = await api.submit("hello"), await api.submit("hello", client=api.other)
    await everybody.until(lambda: len(everybody.ids) == 2)
    await of_other.until(lambda: len(of_other.ids) == 1)
    assert {frame.data["job_id"] for frame in everybody.named("job")} == {mine, theirs}
    assert {frame.data["job_id"] for frame in of_other.named("job")} == {theirs}


async def test_a_revoked_key_ends_its_streams(api: Rig, follow: Follower) -> None:
    key = await api.key("eve")
    client = await follow.open("/jobs/stream", key=key)
    view = next(view for view in await api.parts.verifier.listing(caller="eve"))  # type: ignore[attr-defined]
    answer = await api.admin.delete(f"/keys/{view.id}")
    assert answer.status_code == 204, answer.text
    await client.to_the_end()
    assert client.frames[-1].event == "bye"
    assert (await follow.open("/jobs/stream", key=key)).status == 401


async def test_too_many_streams_are_refused_with_when_to_come_back(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, streams_per_caller_max=2) as api:
        made: list[Client] = []
        follow = Follower(api, made)
        opened = [await follow.open("/jobs/stream", key=api.user_key) for _ in range(3)]
        assert [client.status for client in opened] == [200, 200, 429]
        assert int(opened[2].headers["retry-after"]) >= 1
        for client in made:
            client.hang_up()


async def test_a_server_that_stops_sends_its_streams_away_at_once(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path) as api:
        client = await Follower(api, []).open("/jobs/stream", key=api.user_key)
    await client.to_the_end()
    assert client.frames[-1].event == "bye"
    client.hang_up()


async def test_a_job_that_is_deleted_is_not_followed(api: Rig, follow: Follower) -> None:
    job = await api.run("hello")
    assert (await api.user.delete(f"/jobs/{job}")).status_code == 204
    assert (await follow.open(f"/jobs/{UUID(job)}/stream", key=api.user_key)).status == 404


async def test_the_guide_does_what_it_shows(api: Rig, tmp_path: Path) -> None:
    shown = Page(ROOT / "docs/guides/streaming.md", tmp_path)
    shown.run()
    async with api.working():
        with Windlass(api.url, api_key=api.user_key) as client:
            types = await asyncio.to_thread(shown.module.watch, client)
            ending = asyncio.create_task(asyncio.to_thread(shown.module.first_ending, client))
            while not api.parts.hub._feeds:  # type: ignore[attr-defined]
                await asyncio.sleep(0.01)
            job = await api.submit("hello")
            assert (await asyncio.wait_for(ending, 60))[0] == job
    assert (types[0], types[-1]) == ("job.submitted", "job.completed")
