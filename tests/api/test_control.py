"""What is done to jobs over HTTP, and to whose."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.rig import Rig

NOBODY = "01890000-0000-7000-8000-000000000000"
ACTIONS = ("cancel", "pause", "resume", "retry", "rerun")


@pytest.mark.covers("SCR-86")
async def test_a_job_is_paused_resumed_and_cancelled(api: Rig) -> None:
    job_id = await api.submit()
    paused = (await api.user.post(f"/jobs/{job_id}/pause")).json()
    assert (paused["is_paused"], paused["changed"]) == (True, True)
    assert (await api.user.post(f"/jobs/{job_id}/pause")).json()["changed"] is False
    assert (await api.user.post(f"/jobs/{job_id}/resume")).json()["is_paused"] is False
    cancelled = (await api.user.post(f"/jobs/{job_id}/cancel", json={"reason": "enough"})).json()
    assert (cancelled["status"], cancelled["changed"]) == ("CANCELLED", True)
    again = await api.user.post(f"/jobs/{job_id}/cancel")
    assert (again.status_code, again.json()["changed"]) == (200, False)
    assert (await api.user.post(f"/jobs/{job_id}/pause")).status_code == 409
    events = (await api.user.get(f"/jobs/{job_id}/events")).json()["items"]
    ending = next(event for event in events if event["type"] == "job.cancelled")
    assert ending["source"] == "user" and ending["correlation_id"]


async def test_a_failed_job_is_retried_once_per_key(api: Rig) -> None:
    failed = await api.run("failing")
    headers = {"Idempotency-Key": "again"}
    first = await api.user.post(f"/jobs/{failed}/retry", headers=headers)
    assert first.status_code == 202, first.text
    assert (first.json()["retry_of"], first.json()["is_new"]) == (failed, True)
    second = await api.user.post(f"/jobs/{failed}/retry", headers=headers)
    assert (second.json()["job_id"], second.json()["is_new"]) == (first.json()["job_id"], False)
    assert second.headers["Idempotency-Replayed"] == "true"
    third = await api.user.post(f"/jobs/{failed}/retry")
    assert third.json()["job_id"] != first.json()["job_id"]


async def test_only_what_ended_badly_can_be_retried_and_all_can_be_rerun(api: Rig) -> None:
    done = await api.run()
    answer = await api.user.post(f"/jobs/{done}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    again = await api.user.post(f"/jobs/{done}/rerun")
    assert (again.status_code, again.json()["retry_of"]) == (202, done)
    assert again.headers["Location"] == f"/jobs/{again.json()['job_id']}"


async def test_an_unfinished_job_cannot_be_deleted(api: Rig) -> None:
    job_id = await api.submit()
    answer = await api.user.delete(f"/jobs/{job_id}")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


@pytest.mark.covers("SCR-86")
@pytest.mark.parametrize("action", ACTIONS)
async def test_anothers_job_is_not_there(api: Rig, action: str) -> None:
    job_id = await api.submit()
    theirs = await api.other.post(f"/jobs/{job_id}/{action}")
    nobodys = await api.other.post(f"/jobs/{NOBODY}/{action}")
    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.json()["detail"].replace(job_id, "…") == nobodys.json()["detail"].replace(NOBODY, "…")
    assert (await api.user.get(f"/jobs/{job_id}")).json()["status"] == "QUEUED"


@pytest.mark.parametrize("path", ["", "/input", "/output", "/graph", "/steps", "/steps/0/output", "/events", "/why"])
async def test_anothers_job_cannot_be_looked_at(api: Rig, path: str) -> None:
    job_id = await api.run()
    assert (await api.other.get(f"/jobs/{job_id}{path}")).status_code == 404
    assert (await api.admin.get(f"/jobs/{job_id}{path}")).status_code == 200


async def test_a_body_that_is_not_needed_may_be_left_out_but_not_wrong(api: Rig) -> None:
    job_id = await api.submit()
    assert (await api.user.post(f"/jobs/{job_id}/cancel", json={"why": "typo"})).status_code == 422
    assert (await api.user.post(f"/jobs/{job_id}/cancel", json={"reason": "nul\x00"})).status_code == 422


async def bulk(api: Rig, **body: Any) -> Any:
    return await api.user.post("/jobs/bulk", json=body)


async def test_a_bulk_action_is_shown_before_it_is_done(api: Rig) -> None:
    mine = [await api.submit(labels={"run": "1"}) for _ in range(3)]
    theirs = await api.submit(client=api.other, labels={"run": "1"})
    wanted = {"label": ["run=1"]}
    shown = (await bulk(api, action="cancel", filter=wanted)).json()
    assert (shown["dry_run"], shown["matched"], shown["done"]) == (True, 3, [])
    assert (await bulk(api, action="cancel", filter=wanted, dry_run=False, expect=9)).json()["code"] == "count_changed"
    assert (await api.user.get(f"/jobs/{mine[0]}")).json()["status"] == "QUEUED"
    done = (await bulk(api, action="cancel", filter=wanted, dry_run=False, expect=3)).json()
    assert {item["job_id"] for item in done["done"]} == set(mine)
    assert (await api.other.get(f"/jobs/{theirs}")).json()["status"] == "QUEUED"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"action": "delete", "filter": {"recipe": "hello"}}, 422),
        ({"action": "cancel", "filter": {}}, 422),
        ({"action": "cancel"}, 422),
        ({"action": "cancel", "filter": {"recipe": "hello", "cursor": "x"}}, 422),
        ({"action": "cancel", "filter": {"recipe": "hello"}, "limit": 501}, 422),
        ({"action": "cancel", "filter": {"recipe": "hello"}, "dry_run": "no"}, 422),
        ({"action": "cancel", "filter": {"recipe": "hello", "caller": "other"}}, 403),
        ({"action": "cancel", "filter": {"since": "2026-01-01T00:00:00Z"}}, 200),
        ({"action": "cancel", "filter": {"since": 7}}, 422),
    ],
)
async def test_a_bulk_action_must_say_what_it_is_for(api: Rig, body: Any, status: int) -> None:
    answer = await api.user.post("/jobs/bulk", json=body)
    assert answer.status_code == status, answer.text
