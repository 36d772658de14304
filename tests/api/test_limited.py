"""Answers with 429: each tells how much is left of which limit, and those of a known caller are in the audit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.api.rig import Rig, rig
from tests.api.streams.stage import Client
from tests.api.streams.test_routes import Follower
from tests.engine.rig import undisturbed
from windlass.engine.loops.auditor import Auditor

NAMES = ("Limit", "Remaining", "Reset", "Window")
NARROW = {"limit_capacity": 10, "limit_floor": 10, "limit_burst": 1.0}


def told(headers: Mapping[str, str]) -> tuple[int, ...]:
    """The four headers of a refusal, which also says when to come back."""
    assert int(headers["retry-after"]) >= 1
    return tuple(int(headers[f"x-ratelimit-{name}".lower()]) for name in NAMES)


async def recorded(api: Rig, event: str, **query: Any) -> list[dict[str, Any]]:
    """The audit's records of one event."""
    await api.parts.audit.flush()
    await undisturbed(api.windlass.db)
    while (await Auditor(api.windlass.db).run_once()).count:
        pass
    answer = await api.admin.get("/audit", params={"event": event, **query})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.covers("CIX-75")
async def test_over_the_callers_limit(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, **NARROW) as api:
        while (answer := await api.user.get("/jobs")).status_code == 200:
            pass
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        limit, remaining, reset, window = told(answer.headers)
        assert (limit, remaining, window) == (10, 0, 3600)
        assert 0 < reset <= 3660
        [record] = await recorded(api, "rate_limit_hit")
        assert (record["caller"], record["caller_type"], record["payload"]["reason"]) == (
            "user",
            "user",
            "rate_limited",
        )


@pytest.mark.covers("CIX-64", "CIX-75")
@pytest.mark.parametrize(
    ("path", "body"), [("/jobs", {"recipe": "hello"}), ("/jobs/batch", {"jobs": [{"recipe": "hello"}]})]
)
async def test_a_full_queue(dsn: str, tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    async with rig(dsn, tmp_path, queue_depth_max=1) as api:
        key = await api.key("crowd", caller_type="service", tier="pro")
        async with api.client(key) as crowd:
            for _ in range(3):
                await api.submit(client=crowd)
            api.parts.depth._looked_s = float("-inf")  # the look of this second is over
            answer = await crowd.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (429, "busy")
            limit, remaining, _, window = told(answer.headers)
            assert 0 < remaining < limit and window == 3600, "the caller's own limit has room"
        [record] = await recorded(api, "rate_limit_hit")
        assert (record["caller"], record["caller_type"], record["tier"]) == ("crowd", "service", "pro")
        assert record["payload"] == {"reason": "busy", "count": 1}


@pytest.mark.covers("CIX-75")
async def test_too_many_streams(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, streams_per_caller_max=1) as api:
        made: list[Client] = []
        follow = Follower(api, made)
        opened = [await follow.open("/jobs/stream", key=api.user_key) for _ in range(2)]
        assert [client.status for client in opened] == [200, 429]
        assert told(opened[1].headers)[1] > 0
        for client in made:
            client.hang_up()
        assert [record["payload"]["reason"] for record in await recorded(api, "rate_limit_hit")] == ["too_many_streams"]


async def test_an_address_that_guesses(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.api.admission.REFUSALS_PER_MINUTE_MAX", 3)
    for number in range(4):
        answer = await api.stranger.get("/me", headers={"X-API-Key": f"wl_{number:012}_{number:043}"})
    assert answer.status_code == 429
    limit, remaining, reset, window = told(answer.headers)
    assert (limit, remaining, window) == (3, 0, 60)
    assert 1 <= reset <= 60


async def test_too_many_connections(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, connections_per_address_max=2) as api:
        made: list[Client] = []
        follow = Follower(api, made)
        for _ in range(2):
            assert (await follow.open("/jobs/stream", key=api.user_key)).status == 200
        answer = await api.other.get("/me")
        assert answer.status_code == 429
        assert told(answer.headers)[:2] == (2, 0)
        for client in made:
            client.hang_up()


@pytest.mark.covers("CIX-64")
async def test_a_jobs_records_have_its_callers_type_and_tier(api: Rig) -> None:
    async with api.client(await api.key("indexer", caller_type="service", tier="gold")) as indexer:
        job = await api.submit(client=indexer)
        async with api.working():
            await api.ended(job)
    for event in ("job_submitted", "job_completed"):
        [record] = await recorded(api, event, job_id=job)
        assert (record["caller"], record["caller_type"], record["tier"]) == ("indexer", "service", "gold"), event


async def test_a_delete_is_recorded_if_it_took_effect(api: Rig) -> None:
    job = await api.submit()
    assert (await api.user.delete(f"/jobs/{job}")).status_code == 409
    assert await recorded(api, "job_deleted") == []
    async with api.working():
        await api.ended(job)
    assert (await api.user.delete(f"/jobs/{job}")).status_code == 204
    assert (await api.user.delete(f"/jobs/{job}")).status_code == 404
    [record] = await recorded(api, "job_deleted")
    assert (record["job_id"], record["caller"], record["caller_type"]) == (job, "user", "user")
