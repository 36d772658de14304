"""A caller that Membership names one day keeps the jobs that it submitted before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.access.membership_service import Remote, membership_service
from tests.api.rig import Rig, rig
from tests.engine.rig import undisturbed
from windlass.engine.loops import adopter as module
from windlass.engine.loops.adopter import Adopter
from windlass.engine.loops.auditor import Auditor

BARE = {"status": 201}
ADMIN = {"status": 200, "body": {"caller_id": "root", "scopes": ["admin"]}}


def named(caller: str) -> dict[str, Any]:
    return {"status": 200, "body": {"caller_id": caller}}


@pytest.fixture
async def service() -> AsyncIterator[Remote]:
    async with membership_service() as made:
        yield made


async def submit(api: Rig, key: str, idempotency_key: str, **inputs: Any) -> dict[str, Any]:
    async with api.client(key) as client:
        body = {"recipe": "hello", "inputs": inputs, "idempotency_key": idempotency_key}
        answer = await client.post("/jobs", json=body)
        assert answer.status_code == 202, answer.text
        document: dict[str, Any] = answer.json()
        return document


async def listed(api: Rig, key: str) -> list[str]:
    async with api.client(key) as client:
        return [job["job_id"] for job in (await client.get("/jobs")).json()["items"]]


async def records(api: Rig, event: str) -> list[dict[str, Any]]:
    await undisturbed(api.windlass.db)
    while (await Auditor(api.windlass.db).run_once()).count:
        pass
    async with api.client("root") as root:
        items: list[dict[str, Any]] = (await root.get("/audit", params={"event": event})).json()["items"]
        return items


@pytest.mark.covers("CIX-66")
async def test_a_name_adopts_the_jobs_of_its_key(
    dsn: str, tmp_path: Path, service: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_MAX", 2)
    await service.order(answers={"key": BARE, "other": BARE})
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        before = [await submit(api, "key", f"k{n}") for n in range(3)]
        alias = before[0]["caller"]
        theirs = await submit(api, "other", "k0")
    await service.order(answers={"key": named("ann"), "other": BARE, "root": ADMIN})
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        new = await submit(api, "key", "new")
        assert new["caller"] == "ann"
        turns = [(await Adopter(api.windlass.db).run_once()) for _ in range(3)]
        assert [(turn.count, turn.is_more) for turn in turns] == [(2, True), (1, False), (0, False)]
        assert await listed(api, "key") == [job["job_id"] for job in (new, *reversed(before))]
        assert await listed(api, "other") == [theirs["job_id"]]
        again = await submit(api, "key", "k1")
        assert (again["job_id"], again["is_new"], again["caller"]) == (before[1]["job_id"], False, "ann")
        [record] = await records(api, "caller_adopted")
        assert (record["caller"], record["payload"]) == ("ann", {"adopted": alias})
    # Membership gives no name again: the caller keeps its name.
    await service.order(answers={"key": BARE})
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        assert (await submit(api, "key", "last"))["caller"] == "ann"


@pytest.mark.covers("CIX-66")
async def test_two_keys_of_one_name_may_have_used_the_same_idempotency_key(
    dsn: str, tmp_path: Path, service: Remote
) -> None:
    await service.order(answers={"old": BARE, "new": BARE})
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        first, second = await submit(api, "old", "same", name="a"), await submit(api, "new", "same", name="b")
        assert first["caller"] != second["caller"]
    await service.order(answers={"old": named("ann"), "new": named("ann")})
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        for key in ("old", "new"):
            await listed(api, key)
        assert (await Adopter(api.windlass.db).run_once()).count == 2
        async with api.client("new") as client:
            jobs = (await client.get("/jobs")).json()["items"]
        assert sorted(job["job_id"] for job in jobs) == sorted([first["job_id"], second["job_id"]])
        assert sorted(job["idempotency_key"] or "" for job in jobs) == ["", "same"]


async def test_a_job_in_a_line_follows_when_it_has_left_it(dsn: str, tmp_path: Path, service: Remote) -> None:
    await service.order(answers={"key": BARE})
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        job = await submit(api, "key", "k")
    await service.order(answers={"key": named("ann")})
    slot = """
        INSERT INTO windlass.slots (job_id, no, provider, key, most, state, priority, caller, recipe, jobs, since)
        VALUES ($1::text::uuid, 0, 'fal', '', 1, 'HELD', 0, $2, 'hello', '{}', windlass.clock())
    """
    async with rig(dsn, tmp_path, membership_url=service.url) as api:
        db = api.windlass.db
        await db.run(lambda connection: connection.execute(slot, job["job_id"], job["caller"]))
        assert await listed(api, "key") == []
        assert (await Adopter(db).run_once()).count == 0
        await db.run(lambda connection: connection.execute("DELETE FROM windlass.slots"))
        assert (await Adopter(db).run_once()).count == 1
        assert await listed(api, "key") == [job["job_id"]]
