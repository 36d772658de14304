"""One caller cannot shut out another: its own depth, its fan-outs and its priorities, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import windlass as wl
import windlass.engine.loops.router as router
from tests.api.recipes import double
from tests.api.rig import Rig, rig
from windlass.access import depth
from windlass.core import route
from windlass.core.caller import USER_SCOPES, Scope
from windlass.engine import backlog


@wl.recipe
def spread(numbers: list):  # type: ignore[type-arg,no-untyped-def]
    return double.map(numbers)


@pytest.fixture
async def small(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """Every limit is so small that a few jobs pass it, and depths are counted for every request."""
    monkeypatch.setattr(depth, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(route, "FAN_BATCH_MAX", 3)
    monkeypatch.setattr(router, "FREE_MAX", 2)
    async with rig(dsn, tmp_path, queue_depth_max=20, caller_depth_max=5) as made:
        yield made


async def submit(client: httpx.AsyncClient, recipe: str = "hello", **more: Any) -> tuple[int, str | None]:
    answer = await client.post("/jobs", json={"recipe": recipe, **more})
    return answer.status_code, answer.json().get("code")


async def test_a_caller_is_refused_for_its_own_depth_and_the_others_are_not(small: Rig) -> None:
    for _ in range(6):
        assert await submit(small.other) == (202, None)
    refused = await small.other.post("/jobs", json={"recipe": "hello"})
    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (429, "busy", "30")
    assert "of this caller" in refused.json()["detail"]
    assert (await small.other.post("/jobs/batch", json={"jobs": [{"recipe": "hello"}]})).status_code == 429
    assert await submit(small.user) == (202, None)
    service = small.client(await small.key("indexer", caller_type="service"))
    async with service:
        for _ in range(6):
            assert await submit(service) == (202, None), "an internal caller has no depth of its own"


async def test_a_fan_out_of_one_caller_does_not_fill_the_queues(small: Rig) -> None:
    await small.windlass.register(spread)
    job = await small.submit("spread", client=small.other, inputs={"numbers": list(range(40))})
    # The engine alone, without a worker that would empty the queue.
    loops = small.windlass.loops()
    loops.router.patience_s = 60.0
    await loops.run_until_idle()
    waiting = await backlog.callers(small.windlass.db, 1_000)
    assert 5 <= waiting["other"] <= 5 + 3 + 1
    assert await submit(small.other) == (429, "busy")
    assert await submit(small.user) == (202, None)
    why = (await small.other.get(f"/jobs/{job}/why")).json()["items"]
    assert any("as there is room" in one["because"] for one in why)


async def test_a_fan_out_above_the_limit_fails_with_its_code(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, fan_out_max=50) as api:
        job = await api.run("fan", inputs={"many": 51})
        document = (await api.user.get(f"/jobs/{job}")).json()
        assert (document["status"], document["error"]["code"]) == ("FAILED", "fan_out_too_large")
        assert "51 items" in document["error"]["message"]
        job = await api.run("fan", inputs={"many": 50})
        assert (await api.user.get(f"/jobs/{job}")).json()["status"] == "COMPLETED"


async def test_a_high_priority_takes_its_scope(api: Rig) -> None:
    for priority in (-100, 0, 10):
        assert await submit(api.user, priority=priority) == (202, None)
    for priority in (11, 100):
        refused = await api.user.post("/jobs", json={"recipe": "hello", "priority": priority})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert "priority:high" in refused.json()["detail"]
        assert "10 or less" in refused.json()["hint"]
        batch = {"jobs": [{"recipe": "hello"}, {"recipe": "hello", "priority": priority}]}
        assert (await api.user.post("/jobs/batch", json=batch)).status_code == 403
    assert await submit(api.user, priority=101) == (422, "bad_input")
    assert len((await api.user.get("/jobs")).json()["items"]) == 3, "of a refused batch nothing is made"
    assert await submit(api.admin, priority=100) == (202, None)
    async with api.client(await api.key("vip", scopes=USER_SCOPES | {Scope.PRIORITY_HIGH})) as vip:
        assert await submit(vip, priority=100) == (202, None)


async def test_a_job_that_is_run_again_has_no_more_priority_than_its_caller_may_give(api: Rig) -> None:
    async with api.client(await api.key("user", scopes=USER_SCOPES | {Scope.PRIORITY_HIGH})) as vip:
        job = await api.run("failing", client=vip, priority=100)
        dead = (await api.user.get("/dead-letters")).json()["items"][0]["fingerprint"]
        asked = {"start": "failed", "dry_run": False, "expect": 1, "limit": 1, "reason": "again"}
        redriven = await api.user.post(f"/dead-letters/{dead}/redrive", json=asked)
        made = [redriven.json()["done"][0]["new_job_id"]]
        for action in ("retry", "rerun"):
            made.append((await api.user.post(f"/jobs/{job}/{action}", json={})).json()["job_id"])
        priorities = [(await api.user.get(f"/jobs/{one}")).json()["priority"] for one in made]
        assert priorities == [10] * len(made)
        again = (await vip.post(f"/jobs/{job}/rerun", json={})).json()["job_id"]
        assert (await vip.get(f"/jobs/{again}")).json()["priority"] == 100


@pytest.mark.parametrize("most", [-5, 50])
async def test_the_ceiling_is_a_setting(dsn: str, tmp_path: Path, most: int) -> None:
    async with rig(dsn, tmp_path, priority_max=most) as api:
        assert await submit(api.user, priority=most) == (202, None)
        assert await submit(api.user, priority=most + 1) == (403, "forbidden")
