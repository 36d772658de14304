"""A webhook from the request that names it to the receiver, and what its owner can see and do."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks

from tests.api.rig import Rig, rig
from tests.outbound.receiver import Receiver

SECRET = "whsec_" + base64.b64encode(b"the secret of a caller's webhook").decode()


@pytest.fixture
async def api(dsn: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(dsn, tmp_path / "home", webhook_loopback=True) as made:
        yield made


def wish(receiver: Receiver, path: str = "ok") -> dict[str, str]:
    return {"url": receiver.url(path), "secret": SECRET}


async def told(api: Rig, job_id: str) -> dict[str, Any]:
    answer = await api.user.get(f"/jobs/{job_id}/webhook")
    assert answer.status_code == 200, answer.text
    assert SECRET not in answer.text
    found: dict[str, Any] = answer.json()
    return found


async def until(api: Rig, job_id: str, status: str, tries: int = 1) -> dict[str, Any]:
    """The webhook, once it is in this state; the `working` sender sends it."""
    async with asyncio.timeout(60):
        while (found := await told(api, job_id))["status"] != status or found["tries"] < tries:
            await asyncio.sleep(0.02)
    return found


async def test_a_webhook_named_over_http_is_told_of_the_end(api: Rig, receiver: Receiver) -> None:
    job_id = await api.submit(webhook=wish(receiver))
    waiting = await told(api, job_id)
    assert (waiting["status"], waiting["tries"], waiting["next_try_at"]) == ("WAITING", 0, None)
    async with api.working():
        delivered = await until(api, job_id, "DELIVERED")
    [seen] = receiver.seen()
    body = standardwebhooks.Webhook(SECRET).verify(seen["body"], seen["headers"])
    assert (body["type"], body["data"]["job_id"]) == ("job.completed", job_id)
    assert (delivered["tries"], delivered["last_answer"], delivered["url"]) == (1, 204, receiver.url("ok"))


async def test_it_is_sent_again_when_its_owner_asks(api: Rig, receiver: Receiver) -> None:
    job_id = await api.submit(webhook=wish(receiver, "status/410"))
    async with api.working():
        dead = await until(api, job_id, "DEAD")
        assert dead["last_error"] == "http_410"
        answer = await api.user.post(f"/jobs/{job_id}/webhook/redeliver")
        assert (answer.status_code, answer.json()["failures"]) == (202, 0)
        await until(api, job_id, "DEAD", tries=2)
    assert [seen["headers"]["webhook-id"] for seen in receiver.seen()] == [f"{job_id}_COMPLETED"] * 2
    # The auditor may have taken the notes into the chain already.
    async with api.parts.db.connection() as connection:
        rows = await connection.fetch(
            "SELECT event, caller, payload ->> 'job_id' AS job_id FROM windlass.audit_notes WHERE event LIKE 'webhook%'"
            " UNION ALL SELECT event, caller, job_id::text FROM windlass.audit WHERE event LIKE 'webhook%' ORDER BY 1"
        )
    assert [tuple(row) for row in rows] == [
        ("webhook_dead", "user", job_id),
        ("webhook_dead", "user", job_id),
        ("webhook_redelivered", "user", job_id),
    ]


async def test_what_has_not_ended_is_not_sent(api: Rig, receiver: Receiver) -> None:
    job_id = await api.submit(webhook=wish(receiver))
    answer = await api.user.post(f"/jobs/{job_id}/webhook/redeliver")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


async def test_anothers_webhook_and_none_at_all_are_not_there(api: Rig, receiver: Receiver) -> None:
    job_id = await api.submit(webhook=wish(receiver))
    plain = await api.submit()
    for client, job in ((api.other, job_id), (api.user, plain), (api.user, "x")):
        for answer in (await client.get(f"/jobs/{job}/webhook"), await client.post(f"/jobs/{job}/webhook/redeliver")):
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert (await api.admin.get(f"/jobs/{job_id}/webhook")).status_code == 200


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://169.254.169.254/", "ftp://x/", "http://u:p@example.com/"])
async def test_a_url_that_may_not_be_called_makes_no_job(api: Rig, url: str) -> None:
    answer = await api.user.post("/jobs", json={"recipe": "hello", "webhook": {"url": url, "secret": SECRET}})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_url")
    assert SECRET not in answer.text
    assert (await api.user.get("/jobs")).json()["items"] == []


async def test_the_same_key_makes_one_webhook(api: Rig, receiver: Receiver) -> None:
    headers = {"Idempotency-Key": "one"}
    asked = {"recipe": "hello", "webhook": wish(receiver)}
    answers = [await api.user.post("/jobs", json=asked, headers=headers) for _ in range(2)]
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    other = {"recipe": "hello", "webhook": {"url": receiver.url("other"), "secret": SECRET}}
    assert (await api.user.post("/jobs", json=other, headers=headers)).status_code == 409
    async with api.working():
        await until(api, answers[0].json()["job_id"], "DELIVERED")
    assert len(receiver.seen()) == 1


async def test_a_batch_names_a_webhook_for_each(api: Rig, receiver: Receiver) -> None:
    jobs = [{"recipe": "hello", "webhook": wish(receiver, f"ok?n={n}")} for n in range(3)] + [{"recipe": "hello"}]
    answer = await api.user.post("/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 202, answer.text
    async with api.working():
        for item in answer.json()["items"][:3]:
            await until(api, item["job_id"], "DELIVERED")
    assert sorted(seen["path"] for seen in receiver.seen()) == ["/ok?n=0", "/ok?n=1", "/ok?n=2"]
