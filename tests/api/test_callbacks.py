"""Callbacks and events over HTTP: who may report, for which attempt, and how often it counts."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.api.hostile.test_hostile import problem
from tests.api.outside import HAND, ending, handed_over, park, report, step, token
from tests.api.rig import Rig
from windlass.core.outcome import Failure, Fault, Parked
from windlass.core.states import StepState
from windlass.engine.claim import Claimed

NOBODY = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
async def service(api: Rig) -> Any:
    async with api.client(await api.key("scraper", caller_type="service")) as client:
        yield client


async def post(client: httpx.AsyncClient, one: Claimed, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"/jobs/{one.job_id}/complete", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.covers("CIX-12", "CIX-33", "CIX-47", "CIX-61")
async def test_a_step_done_elsewhere_is_completed_once(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    report = {"token": token(api, one), "stage": "scrape", "status": "success", "result": {"pages": 3}}
    first = await post(service, one, **report)
    assert first == {"status": "PROCESSING", "job_status": "PROCESSING", "step": "scrape", "step_status": "COMPLETED"}
    assert (await post(service, one, **report))["status"] == "already_advanced"
    again = await post(service, one, token=token(api, one), status="failed", error_code="http_403")
    assert (again["status"], again["step_status"]) == ("already_advanced", "COMPLETED")
    assert (await step(api, one.job_id)).output == {"pages": 3}
    [event] = (await ending(api, one.job_id))["step.completed"]
    assert event.source == "callback:scraper"


@pytest.mark.covers("CIX-32")
async def test_two_at_once_are_one_effect(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    told = await asyncio.gather(
        *(post(service, one, token=token(api, one), status="success", result=number) for number in range(8))
    )
    assert sorted(one["status"] for one in told) == ["PROCESSING", *["already_advanced"] * 7]
    assert len((await ending(api, one.job_id))["step.completed"]) == 1


@pytest.mark.covers("CIX-34", "CIX-39", "CIX-41")
async def test_a_failure_has_its_code_and_fails_the_job(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    told = await post(
        service, one, token=token(api, one), status="failed", error_code="http_403", error_message="not for us"
    )
    assert (told["status"], told["job_status"], told["step_status"]) == ("job_failed", "FAILED", "FAILED")
    job = (await api.user.get(f"/jobs/{one.job_id}")).json()
    assert (job["failed_step"], job["error"]["code"], job["error"]["message"]) == ("scrape", "http_403", "not for us")


async def test_a_failure_may_ask_for_the_steps_own_retries(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    told = await post(service, one, token=token(api, one), status="failed", is_retryable=True)
    assert (told["status"], told["step_status"]) == ("PROCESSING", "PARKED")
    late = await post(service, one, token=token(api, one), status="success")
    assert (late["status"], late["step_status"]) == ("already_advanced", "PARKED"), "that attempt is over"
    assert (await post(service, one, token=token(api, one), status="progress", progress_pct=1))["status"] == (
        "already_advanced"
    )


async def test_a_callback_before_the_worker_has_spoken_is_not_lost(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    told = await post(service, one, token=token(api, one), status="success", result=7)
    assert (told["status"], told["step_status"]) == ("PROCESSING", "COMPLETED")
    assert not await report(api, one, Parked("scraper", 60.0)), "the worker comes second"
    assert not await report(api, one, Failure(Fault("x", "y")))
    view = await step(api, one.job_id)
    assert (view.state, view.output) == (StepState.COMPLETED, 7)


async def test_a_token_of_an_earlier_attempt_is_late(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    old = one._replace(attempt=one.attempt - 1) if hasattr(one, "_replace") else one
    assert await park(api, one)
    earlier = api.parts.callbacks.sign(one.job_id, one.no, one.attempt - 1, 60)
    later = api.parts.callbacks.sign(one.job_id, one.no, one.attempt + 1, 60)
    for text in (earlier, later):
        assert (await post(service, old, token=text, status="success"))["status"] == "already_advanced"
    assert (await step(api, one.job_id)).state is StepState.PARKED


@pytest.mark.covers("CIX-115")
async def test_progress_and_previews_are_told_while_the_step_waits(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    said = {"progress_pct": 40, "progress_message": "page 2", "preview": {"first": "page"}}
    told = await post(service, one, token=token(api, one), status="progress", **said)
    assert (told["status"], told["job_status"], told["step_status"]) == ("noted", "PREVIEW", "PARKED")
    job = (await api.user.get(f"/jobs/{one.job_id}")).json()
    assert (job["progress_pct"], job["progress_message"]) == (40, "page 2")
    events = (await api.user.get(f"/jobs/{one.job_id}/events")).json()["items"]
    preview = next(event for event in events if event["type"] == "step.preview")
    assert (preview["payload"], preview["source"]) == ({"value": {"first": "page"}}, "callback:scraper")
    nodes = (await api.user.get(f"/jobs/{one.job_id}/graph")).json()["nodes"]
    assert nodes[0]["progress"] == {"pct": 40.0, "message": "page 2"}
    told = await post(service, one, token=token(api, one), status="progress", progress_pct=60)
    assert told["job_status"] == "PROCESSING"


async def test_a_large_result_goes_to_the_artifact_store_and_a_cost_to_the_costs(
    api: Rig, service: httpx.AsyncClient
) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    cost = {"amount": "0.125", "tokens_in": 10, "tokens_out": 20, "seconds": 1.5}
    await post(service, one, token=token(api, one), status="success", result="x" * 300_000, cost=cost)
    assert list((await step(api, one.job_id)).output) == ["$artifact"]
    costs = (await api.user.get(f"/jobs/{one.job_id}/costs")).json()
    assert (costs["total"], costs["tokens_in"], costs["tokens_out"], costs["seconds"]) == ("0.125", 10, 20, 1.5)


@pytest.mark.covers("CIX-32")
async def test_who_may_not_report(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    body = {"token": token(api, one), "status": "success"}
    path = f"/jobs/{one.job_id}/complete"
    problem(await api.stranger.post(path, json=body), 401)
    for client in (api.user, api.other):
        told = problem(await client.post(path, json=body), 403)
        assert "internal" in told["detail"]
        # A caller without the right is refused before its body is read.
        problem(await client.post(path, json={"nonsense": 1}), 403)
        problem(await client.post(f"/jobs/{NOBODY}/complete", json=body), 403)
    problem(await service.post(f"/jobs/{NOBODY}/complete", json=body), 404)
    assert (await step(api, one.job_id)).state is StepState.PARKED
    assert (await api.admin.post(path, json=body)).json()["status"] == "PROCESSING"


@pytest.mark.covers("CIX-61", "CIX-62")
async def test_a_caller_that_the_settings_name_is_internal(dsn: str, tmp_path: Any) -> None:
    from tests.api.rig import rig

    async with rig(dsn, tmp_path, internal_callers=("user",)) as api:
        one = await handed_over(api, HAND)
        assert await park(api, one)
        assert (await post(api.user, one, token=token(api, one), status="success"))["status"] == "PROCESSING"
        problem(await api.other.post(f"/jobs/{one.job_id}/complete", json={"token": "x", "status": "success"}), 403)


async def test_the_end_of_work_is_heard_over_any_limit(dsn: str, tmp_path: Any) -> None:
    from tests.api.rig import rig

    async with rig(dsn, tmp_path, limit_capacity=1, limit_floor=1) as api:
        one = await handed_over(api, HAND)
        assert await park(api, one)
        async with api.client(await api.key("scraper", caller_type="service")) as service:
            path = f"/jobs/{one.job_id}/complete"
            body = {"token": token(api, one), "status": "progress", "progress_pct": 1}
            told = [(await service.post(path, json=body)).status_code for _ in range(40)]
            assert set(told) == {200, 429}
            assert (await post(service, one, token=token(api, one), status="success"))["status"] == "PROCESSING"


async def test_which_tokens_are_not_good(api: Rig, service: httpx.AsyncClient) -> None:
    one, two = await handed_over(api, HAND), await handed_over(api, HAND)
    assert await park(api, one)
    good = token(api, one)
    for text in ("", "x", good[:-1] + ("A" if good[-1] != "A" else "B"), token(api, two), token(api, one, -5.0)):
        answer = await service.post(f"/jobs/{one.job_id}/complete", json={"token": text, "status": "success"})
        assert problem(answer, 401)["code"] == "bad_signature"
    wrong = {"token": good, "status": "success", "stage": "index"}
    problem(await service.post(f"/jobs/{one.job_id}/complete", json=wrong), 422)
    assert (await step(api, one.job_id)).state is StepState.PARKED


NO_REPORTS: list[Any] = [
    None, [], {}, {"token": 1, "status": "success"}, {"status": "success"}, {"token": "{}"},
    {"token": "{}", "status": "done"}, {"token": "x" * 300, "status": "success"},
    {"token": "{}", "status": "success", "error_code": "x"}, {"token": "{}", "status": "failed", "result": 1},
    {"token": "{}", "status": "progress"}, {"token": "{}", "status": "progress", "progress_pct": 101},
    {"token": "{}", "status": "progress", "progress_pct": "1"}, {"token": "{}", "status": "progress", "result": 1},
    {"token": "{}", "status": "success", "cost": {"amount": "-1"}},
    {"token": "{}", "status": "success", "cost": {"amount": "1e9"}},
    {"token": "{}", "status": "success", "cost": {"tokens_in": -1}},
    {"token": "{}", "status": "failed", "error_code": "x\x00"}, {"token": "{}", "status": "success", "extra": 1},
    {"token": "{}", "status": "progress", "preview": "x" * 300_000},
]  # fmt: skip


async def test_what_is_no_report_is_refused(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    for body in NO_REPORTS:
        if isinstance(body, dict) and body.get("token") == "{}":
            body = {**body, "token": token(api, one)}
        problem(await service.post(f"/jobs/{one.job_id}/complete", json=body), 400, 413, 422)
    assert (await step(api, one.job_id)).state is StepState.PARKED


async def test_a_job_that_was_deleted_is_not_there(api: Rig, service: httpx.AsyncClient) -> None:
    one = await handed_over(api, HAND)
    assert await park(api, one)
    body = {"token": token(api, one), "status": "success"}
    await api.user.post(f"/jobs/{one.job_id}/cancel")
    told = await post(service, one, **body)
    assert (told["status"], told["job_status"]) == ("already_advanced", "CANCELLED")
    await api.user.delete(f"/jobs/{one.job_id}")
    problem(await service.post(f"/jobs/{one.job_id}/complete", json=body), 404)
