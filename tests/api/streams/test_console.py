"""A console's stream: several topics as patches, nothing lost or repeated, whatever is cut."""

from __future__ import annotations

from uuid import UUID

import httpx

from tests.api.rig import Rig
from tests.api.streams.stage import Client, connect


async def console(api: Rig, topics: str, *, key: str | None = None, after: str | None = None) -> Client:
    port = httpx.URL(api.url).port
    assert port is not None
    return await connect(port, f"/console/stream?topics={topics}", after=after, X_API_Key=key or api.user_key)


def lines(client: Client, job: str) -> list[int]:
    return [
        line["seq"] for frame in client.named("patch") for line in frame.data.get("job", {}).get(job, {}).get("events", [])
    ]


async def test_a_job_is_told_to_its_end_and_the_jobs_go_on(api: Rig) -> None:
    job = await api.submit("fan", inputs={"many": 5})
    client = await console(api, f"jobs,job:{job}@0")
    assert client.frames[0].event == "open"
    assert client.frames[0].data["cursor"] == client.frames[0].id
    async with api.working():
        await api.ended(job)
        await client.until(lambda: bool(client.named("gone")))
    assert client.named("gone")[0].data == {"topic": f"job:{job}", "code": "ended"}
    events = (await api.user.get(f"/jobs/{job}/events")).json()["items"]
    assert lines(client, job) == [event["seq"] for event in events]
    graph = (await api.user.get(f"/jobs/{job}/graph?children=states")).json()
    client.hang_up()
    assert UUID(job)
