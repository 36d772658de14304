"""A webhook from the request that names it to the receiver, and what its owner can see and do."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks

from tests.api.rig import Rig, rig
from tests.outbound.receiver import Receiver
from windlass.engine.loops.herald import Herald
from windlass.outbound.courier import Courier

SECRET = "whsec_" + base64.b64encode(b"the secret of a caller's webhook").decode()


@pytest.fixture
async def api(dsn: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with rig(dsn, tmp_path / "home", webhook_loopback=True) as made:
        yield made


async def carry(api: Rig) -> int:
    """What the herald and the courier of an engine do."""
    parts = api.parts
    herald = Herald(parts.db)
    while (await herald.run_once()).count:
        pass
    courier = Courier(parts.db, parts.secret, parts.sender, chance=random.random, clock_s=time.monotonic)
    return (await courier.run_once()).count


def wish(receiver: Receiver, path: str = "ok") -> dict[str, str]:
    return {"url": receiver.url(path), "secret": SECRET}


async def told(api: Rig, job_id: str) -> dict[str, Any]:
    answer = await api.user.get(f"/jobs/{job_id}/webhook")
    assert answer.status_code == 200, answer.text
    assert SECRET not in answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_webhook_named_over_http_is_told_of_the_end(api: Rig, receiver: Receiver) -> None:
    await carry(api)
    job_id = await api.submit(webhook=wish(receiver))
    waiting = await told(api, job_id)
    assert (waiting["status"], waiting["tries"], waiting["next_try_at"]) == ("WAITING", 0, None)
    async with api.working():
        await api.ended(job_id)
    assert await carry(api) == 1
    [seen] = receiver.seen()
    body = standardwebhooks.Webhook(SECRET).verify(seen["body"], seen["headers"])
    assert (body["type"], body["data"]["job_id"]) == ("job.completed", job_id)
    delivered = await told(api, job_id)
    assert (delivered["status"], delivered["tries"], delivered["last_answer"]) == ("DELIVERED", 1, 204)
    assert delivered["url"] == receiver.url("ok")


async def test_it_is_sent_again_when_its_owner_asks(api: Rig, receiver: Receiver) -> None:
    job_id = await api.run(webhook=wish(receiver, "status/410"))
    await carry(api)
    dead = await told(api, job_id)
    assert (dead["status"], dead["last_error"]) == ("DEAD", "http_410")
    answer = await api.user.post(f"/jobs/{job_id}/webhook/redeliver")
    assert (answer.status_code, answer.json()["status"]) == (202, "DUE")
    assert await carry(api) == 1
    ids = {seen["headers"]["webhook-id"] for seen in receiver.seen()}
    assert ids == {f"{job_id}_COMPLETED"}
    async with api.parts.db.connection() as connection:
        rows = await connection.fetch("SELECT event, caller, payload FROM windlass.audit_notes ORDER BY id")
    notes = [(row["event"], row["caller"], json.loads(row["payload"]).get("job_id")) for row in rows]
    assert ("webhook_redelivered", "user", job_id) in notes
    assert [note for note in notes if note[0] == "webhook_dead"] == [("webhook_dead", "user", job_id)] * 2


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
        await api.ended(answers[0].json()["job_id"])
    assert await carry(api) == 1
    assert len(receiver.seen()) == 1


async def test_a_batch_names_a_webhook_for_each(api: Rig, receiver: Receiver) -> None:
    jobs = [{"recipe": "hello", "webhook": wish(receiver, f"ok?n={n}")} for n in range(3)] + [{"recipe": "hello"}]
    answer = await api.user.post("/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 202, answer.text
    async with api.working():
        await api.ended(*(item["job_id"] for item in answer.json()["items"]))
    assert await carry(api) == 3
    assert sorted(seen["path"] for seen in receiver.seen()) == ["/ok?n=0", "/ok?n=1", "/ok?n=2"]
