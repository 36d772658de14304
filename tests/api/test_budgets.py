"""Budgets, costs, providers and events for jobs, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.hostile.test_hostile import problem
from tests.api.outside import RENDER, SECRETS, VARIABLE, parked, providers_file
from tests.api.rig import Rig, rig
from windlass.core.plan import Node, NodeKind, Plan
from windlass.engine import providers, recipes
from windlass.engine.submit import Submission, submit

NOBODY = "01890000-0000-7000-8000-000000000000"
ASK = Plan("ask", (Node("asked", kind=NodeKind.EVENT, run="approved", with_={"by": "ada"}),))


@pytest.fixture
async def api(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv(VARIABLE, SECRETS)
    async with rig(dsn, tmp_path, providers=providers_file(tmp_path)) as made:
        yield made


async def test_a_budget_is_set_read_and_removed(api: Rig) -> None:
    made = await api.admin.put("/budgets/caller/ada%2Fbob", json={"most": "12.50"})
    assert made.status_code == 200, made.text
    assert made.json() == {
        "scope": "caller", "name": "ada/bob", "most": "12.5", "spent": "0", "reserved": "0", "left": "12.5",
    }  # fmt: skip
    assert (await api.admin.get("/budgets/caller/ada%2Fbob")).json() == made.json()
    assert (await api.admin.put("/budgets/caller/ada%2Fbob", json={"most": 3})).json()["most"] == "3"
    assert [one["name"] for one in (await api.admin.get("/budgets")).json()["items"]] == ["ada/bob"]
    assert (await api.admin.delete("/budgets/caller/ada%2Fbob")).status_code == 204
    problem(await api.admin.delete("/budgets/caller/ada%2Fbob"), 404)
    problem(await api.admin.get("/budgets/caller/ada%2Fbob"), 404)


NO_AMOUNTS: list[Any] = [
    None, [], {}, {"most": None}, {"most": -1}, {"most": "-1"}, {"most": "1e9"}, {"most": "NaN"}, {"most": "٣"},
    {"most": True}, {"most": 1e300}, {"most": "1."}, {"most": ""}, {"most": 10**400}, {"most": "0." + "1" * 99},
    {"most": 1, "spent": 0}, {"most": "1\n"},
]  # fmt: skip


async def test_what_is_no_amount_is_refused(api: Rig) -> None:
    for body in NO_AMOUNTS:
        problem(await api.admin.put("/budgets/recipe/hello", json=body), 400, 422)
    assert (await api.admin.get("/budgets")).json()["items"] == []
    answer = await api.admin.put("/budgets/recipe/hello", json={"most": 1e-300})
    assert answer.json()["most"] == "0", "less than there are digits for is nothing"


async def test_a_budget_is_of_something_that_can_be_named(api: Rig) -> None:
    for path in ("thing/x", "job/x", "job/" + NOBODY, "caller/%00", "caller/" + "x" * 300, "caller/"):
        problem(await api.admin.put(f"/budgets/{path}", json={"most": 1}), 404, 422)
        problem(await api.admin.get(f"/budgets/{path}"), 404, 422)
        problem(await api.admin.delete(f"/budgets/{path}"), 404, 422)


async def test_a_job_is_submitted_with_a_budget_of_its_own(api: Rig) -> None:
    job = await api.submit(budget="2.75")
    costs = (await api.user.get(f"/jobs/{job}/costs")).json()
    assert (costs["total"], costs["items"]) == ("0", [])
    assert (costs["budget"]["most"], costs["budget"]["left"]) == ("2.75", "2.75")
    spelled = (await api.admin.get(f"/budgets/job/{job.replace('-', '').upper()}")).json()
    assert spelled["name"] == job
    problem(await api.user.post("/jobs", json={"recipe": "hello", "budget": "-1"}), 422)
    problem(await api.user.post("/jobs", json={"recipe": "hello", "budget": 0}), 422)
    problem(await api.other.get(f"/jobs/{job}/costs"), 404)
    # The same key with another budget is another request.
    headers = {"Idempotency-Key": "k"}
    assert (await api.user.post("/jobs", json={"recipe": "hello", "budget": 1}, headers=headers)).status_code == 202
    assert (await api.user.post("/jobs", json={"recipe": "hello", "budget": 1.0}, headers=headers)).status_code == 202
    problem(await api.user.post("/jobs", json={"recipe": "hello", "budget": 2}, headers=headers), 409)


async def test_a_provider_shows_who_has_its_places_and_who_waits(api: Rig) -> None:
    one = await parked(api, "ext-1")
    shown = (await api.admin.get("/providers/hooks")).json()
    assert (shown["concurrency"], shown["held"], shown["waiting"], shown["breaker"]) == (1000, 1, 0, "closed")
    [holder] = shown["holders"]
    assert (holder["job_id"], holder["step"], holder["attempt"]) == (str(one.job_id), "render", 1)
    await providers.busy(api.parts.db, "hooks", 60.0)
    await submit(api.parts.db, [Submission(RENDER, {}, waiting := api.parts.ids.new(), "user", correlation_id="c")])
    await api.windlass.loops().run_until_idle()
    shown = (await api.admin.get("/providers/hooks")).json()
    assert (shown["waiting"], shown["first"]["job_id"]) == (1, str(waiting))
    assert shown["paused_until"] is not None
    assert [item["name"] for item in (await api.admin.get("/providers")).json()["items"]] == ["hooks", "mute"]
    for name in ("nobody", "%00", "x" * 300):
        problem(await api.admin.get(f"/providers/{name}"), 404)
    text = (await api.admin.get("/metrics")).text
    for line in (
        'windlass_provider_slots{provider="hooks",state="held"} 1.0',
        'windlass_provider_slots{provider="hooks",state="waiting"} 1.0',
        'windlass_breaker_open{name="provider hooks"} 0.0',
    ):
        assert line in text


@pytest.mark.covers("SCR-31")
async def test_a_graph_names_the_work_that_is_waited_for(api: Rig) -> None:
    one = await parked(api, "ext-1")
    [wait] = (await api.user.get(f"/jobs/{one.job_id}/graph")).json()["waiting_for"]
    assert (wait["step"], wait["provider"], wait["external_id"]) == ("render", "hooks", "ext-1")


async def asking(api: Rig) -> str:
    await recipes.register(api.parts.db, ASK)
    job_id = api.parts.ids.new()
    await submit(api.parts.db, [Submission(ASK, {}, job_id, "user", correlation_id="c")])
    return str(job_id)


async def send(api: Rig, job: str, body: Any, key: str | None = None) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await api.user.post(f"/jobs/{job}/events", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("is_early", [True, False])
async def test_an_event_reaches_the_step_that_waits_for_it(api: Rig, is_early: bool) -> None:
    job = await asking(api)
    loops = api.windlass.loops()
    if not is_early:
        await loops.run_until_idle()
    assert (await send(api, job, {"name": "approved", "body": {"by": "bob"}}))["status"] == "kept"
    yes = {"name": "approved", "body": {"by": "ada", "why": "good"}}
    assert await send(api, job, yes, "e1") == {"status": "kept" if is_early else "delivered", "id": "e1"}
    assert (await send(api, job, yes, "e1"))["status"] == "already"
    await loops.run_until_idle()
    assert (await api.user.get(f"/jobs/{job}")).json()["status"] == "COMPLETED"
    assert (await api.user.get(f"/jobs/{job}/steps/0/output")).json() == {"by": "ada", "why": "good"}
    problem(await api.user.post(f"/jobs/{job}/events", json=yes), 409)
    assert (await send(api, job, yes, "e1"))["status"] == "already", "its sender may never have heard the first answer"


async def test_an_event_that_nobody_can_wait_for_is_refused(api: Rig) -> None:
    job = await asking(api)
    path = f"/jobs/{job}/events"
    bodies: list[Any] = [
        None, [], {}, {"name": ""}, {"name": 1}, {"name": "x" * 300}, {"name": "a\x00"}, {"name": "approoved"},
        {"name": "approved", "extra": 1}, {"name": "approved", "id": ""},
    ]  # fmt: skip
    for body in bodies:
        problem(await api.user.post(path, json=body), 400, 422)
    problem(await api.user.post(path, json={"name": "approved", "body": "x" * 100_000}), 413)
    problem(await api.other.post(path, json={"name": "approved"}), 404)
    problem(await api.user.post(f"/jobs/{NOBODY}/events", json={"name": "approved"}), 404)
    both = {"name": "approved", "id": "a"}
    problem(await api.user.post(path, json=both, headers={"Idempotency-Key": "b"}), 400)
    assert (await send(api, job, both))["status"] == "kept"
    problem(await api.user.post(path, json={**both, "body": {"by": "eve"}}), 409)
