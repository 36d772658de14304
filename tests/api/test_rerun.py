"""Running a job again over HTTP: from a step, with other inputs, and what is told beforehand."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.api.rig import Rig

# The steps of the recipe `fan`, in the order of the plan.
STEPS = ["count", "double", "total", "boast"]


async def ask(api: Rig, job_id: str, action: str = "rerun", **body: Any) -> httpx.Response:
    return await api.user.post(f"/jobs/{job_id}/{action}", json=body)


async def outputs(api: Rig, job_id: str) -> dict[str, Any]:
    async with api.working():
        await api.ended(job_id)
    result: dict[str, Any] = (await api.user.get(f"/jobs/{job_id}/output")).json()
    return result


async def test_what_would_run_is_told_and_then_runs(api: Rig) -> None:
    job = await api.run("fan", inputs={"many": 3})
    dry = await ask(api, job, from_step="total", inputs={"many": 3, "limit": 1}, dry_run=True)
    assert dry.status_code == 200, dry.text
    assert dry.json() == {
        "run_again": ["total", "boast"], "kept": ["count", "double"], "stale": [], "inputs_changed": ["limit"],
        "kept_children": {},
    }  # fmt: skip
    assert len((await api.user.get("/jobs")).json()["items"]) == 1, "nothing was made"
    made = await ask(api, job, from_step="total", inputs={"many": 3, "limit": 1})
    assert (made.status_code, made.json()["retry_of"], made.json()["is_new"]) == (202, job, True)
    new = made.json()["job_id"]
    assert await outputs(api, new) == {"total": 6, "boast": "6!"}
    events = (await api.user.get(f"/jobs/{new}/events")).json()["items"]
    steps = {step["no"]: step["step"] for step in (await api.user.get(f"/jobs/{new}/steps")).json()["items"]}
    assert {steps[event["no"]] for event in events if event["no"] is not None} == {"total", "boast"}
    [kept] = [event for event in events if event["type"] == "job.kept"]
    assert (kept["payload"]["of"], kept["payload"]["from"]) == (job, "total")


async def test_one_child_runs_again_and_the_others_are_kept(api: Rig) -> None:
    job = await api.run("fan", inputs={"many": 3})
    dry = (await ask(api, job, from_step="double[1]", dry_run=True)).json()
    assert (dry["run_again"], dry["kept_children"]) == (["double", "total", "boast"], {"double": 2})
    made = (await ask(api, job, from_step="double[1]")).json()
    assert (await outputs(api, made["job_id"]))["total"] == 6


async def test_a_retry_can_be_looked_at_first(api: Rig) -> None:
    failed = await api.run("failing")
    dry = await ask(api, failed, "retry", dry_run=True)
    assert (dry.status_code, dry.json()["run_again"]) == (200, ["break_down"])
    assert (await ask(api, failed, "retry", dry_run=False)).status_code == 202
    done = await api.run()
    for body in ({"dry_run": True}, {}):
        assert (await ask(api, done, "retry", **body)).json()["code"] == "wrong_state"


async def test_the_same_key_with_another_wish_is_a_conflict(api: Rig) -> None:
    job = await api.run("fan")
    headers = {"Idempotency-Key": "k"}

    async def again(**body: Any) -> httpx.Response:
        return await api.user.post(f"/jobs/{job}/rerun", json=body, headers=headers)

    first = await again(from_step="total")
    second = await again(from_step="total")
    assert (second.json()["job_id"], second.json()["is_new"]) == (first.json()["job_id"], False)
    assert second.headers["Idempotency-Replayed"] == "true"
    for other in ({"from_step": "double"}, {}, {"from_step": "total", "inputs": {"many": 9}}):
        answer = await again(**other)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict"), other


async def test_a_job_that_runs_is_refused_with_what_to_do(api: Rig) -> None:
    job = await api.submit()
    for body in ({"from_step": "greet"}, {"from_step": "greet", "dry_run": True}):
        answer = await ask(api, job, **body)
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
        assert "cancel it first" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"from_step": "totl"}, 422, "/from_step"),
        ({"from_step": "double[9]"}, 422, "/from_step"),
        ({"from_step": ""}, 422, "/from_step"),
        ({"from_step": "total\x00"}, 422, "/from_step"),
        ({"from_step": 7}, 422, "/from_step"),
        ({"from_step": "x" * 256}, 422, "/from_step"),
        ({"from_step": ["total"]}, 422, "/from_step"),
        ({"inputs": {"many": "three"}}, 422, "/inputs/many"),
        ({"inputs": {"mony": 3}}, 422, "/inputs"),
        ({"inputs": [1]}, 422, "/inputs"),
        ({"from": "total"}, 422, "/from"),
        ({"dry_run": "yes"}, 422, "/dry_run"),
        ({"inputs": {"many": 1, "limit": 10**30}}, 422, None),
    ],
)
@pytest.mark.parametrize("is_dry", [True, False])
async def test_what_cannot_be_meant_is_refused_in_a_dry_run_as_in_earnest(
    fan: tuple[Rig, str], body: Any, status: int, pointer: str | None, is_dry: bool
) -> None:
    api, job = fan
    answer = await ask(api, job, **{"dry_run": is_dry, **body})
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert told["hint"] and told["request_id"]
    if pointer:
        assert pointer in [error["pointer"] for error in told["errors"]], told
    if body.get("from_step") == "totl":
        assert "Did you mean total?" in told["hint"]
    assert len((await api.user.get("/jobs")).json()["items"]) == 1, "nothing was made"


@pytest.fixture
async def fan(api: Rig) -> tuple[Rig, str]:
    return api, await api.run("fan")


async def test_inputs_over_the_limit_are_refused(api: Rig) -> None:
    job = await api.run()
    answer = await ask(api, job, inputs={"name": "x" * (1 << 20)})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_it_is_noted_who_did_it_and_how_but_not_a_dry_run(api: Rig) -> None:
    job = await api.run("fan")
    await ask(api, job, from_step="total", dry_run=True)
    await ask(api, job, from_step="total", inputs={"many": 1})
    async with api.parts.db.connection() as connection:
        rows = await connection.fetch(
            "SELECT payload FROM windlass.audit_notes WHERE event = 'job_controlled' UNION ALL "
            "SELECT payload FROM windlass.audit WHERE event = 'job_controlled'"
        )
    [row] = rows
    assert '"from_step":"total"' in row["payload"] and '"inputs":"edited"' in row["payload"]


@pytest.mark.parametrize("action", ["retry", "rerun"])
async def test_anothers_job_is_not_there_in_a_dry_run_either(api: Rig, action: str) -> None:
    job = await api.run("failing")
    answer = await api.other.post(f"/jobs/{job}/{action}", json={"dry_run": True})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert (await api.admin.post(f"/jobs/{job}/{action}", json={"dry_run": True})).status_code == 200
    await api.user.delete(f"/jobs/{job}")
    assert (await api.user.post(f"/jobs/{job}/{action}", json={"dry_run": True})).status_code == 404
