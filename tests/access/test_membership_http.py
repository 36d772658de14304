"""The whole service with a Membership service behind it: who gets in, and what an outage looks like from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.access.membership_service import Remote, membership_service
from tests.api.rig import Rig, rig


@pytest.fixture
async def service() -> AsyncIterator[Remote]:
    async with membership_service() as made:
        yield made


@pytest.fixture
async def api(dsn: str, tmp_path: Path, service: Remote) -> AsyncIterator[Rig]:
    async with rig(dsn, tmp_path, membership_url=service.url) as made:
        yield made


@pytest.mark.covers("CIX-05", "CIX-50", "CIX-62")
async def test_membership_says_who_a_caller_is(api: Rig, service: Remote) -> None:
    await service.order(
        answers={
            "ann": {"status": 200, "body": {"caller_id": "ann", "tier": "pro"}},
            "bare": {"status": 201},
        }
    )
    async with api.client("ann") as ann, api.client("bare") as bare, api.client("bad") as bad:
        job = (await ann.post("/jobs", json={"recipe": "hello"})).json()
        assert job["caller"] == "ann"
        own = (await bare.post("/jobs", json={"recipe": "hello"})).json()
        assert own["caller"].startswith("caller-")
        assert (await bare.get(f"/jobs/{job['job_id']}")).status_code == 404
        assert (await bare.get(f"/jobs/{own['job_id']}")).status_code == 200
        assert (await bad.get("/jobs")).status_code == 401
        # Only callers that the settings name are admins, and our own keys are not valid here.
        assert (await ann.get("/workers")).status_code == 403
        assert (await api.admin.get("/jobs")).status_code == 401


@pytest.mark.covers("CIX-60")
async def test_an_outage_is_503_and_never_401(api: Rig, service: Remote) -> None:
    await service.order(answers={"ann": {"status": 200, "body": {"caller_id": "ann"}}})
    async with api.client("ann") as ann, api.client("new") as new:
        assert (await ann.get("/jobs")).status_code == 200
        await service.die()
        for _ in range(6):
            answer = await new.get("/jobs")
            assert (answer.status_code, answer.json()["code"]) == (503, "membership_unavailable")
            assert answer.headers["retry-after"] == "30"
            assert answer.json()["retryable"] is True
        # Who was known a moment ago goes on.
        assert (await ann.get("/jobs")).status_code == 200
        assert "windlass_breaker_open" in (await ann.get("/metrics")).text


async def test_many_bad_keys_shut_nobody_out(api: Rig, service: Remote) -> None:
    await service.order(answers={"ann": {"status": 200, "body": {"caller_id": "ann"}}})
    for number in range(10):
        async with api.client(f"bad{number}") as bad:
            assert (await bad.get("/jobs")).status_code == 401
    async with api.client("ann") as ann:
        assert (await ann.get("/jobs")).status_code == 200
