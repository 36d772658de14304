"""One step in full, the attempts of a job, and events from their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

import windlass as wl
from tests.api.rig import Rig
from windlass.app.service import serving
from windlass.core.outcome import Lost, Report
from windlass.engine import settle, workers
from windlass.engine.claim import claim
from windlass.views import read
from windlass.views.attempts import attempts


@wl.step(retry=wl.Retry(max_attempts=3, base_s=0.01))
def stumble(times: int, ctx: wl.Context) -> int:
    ctx.cost("0.25", tokens_in=3)
    if ctx.attempt <= times:
        raise ValueError(f"attempt {ctx.attempt} of {times}")
    return ctx.attempt


@wl.step
def number(size: int) -> str:
    return "7" * size


@wl.step
def say(text: str, word: str) -> str:
    return f"{word} {len(text)}"


@wl.recipe
def stumbling(times: int = 1, size: int = 3):  # type: ignore[no-untyped-def]
    ready = wl.wait_for("approved")
    stumbled = stumble(times)
    return say(number(size), "seven").after(stumbled, ready)


@wl.step
def publish(page: str, verdict: dict) -> str:  # type: ignore[type-arg]
    return f"{page} by {verdict['by']}"


@wl.recipe
def article(topic: str = "tides"):  # type: ignore[no-untyped-def]
    page = number(3)
    verdict = wl.wait_for("approved", match={"topic": topic}).after(page)
    return publish(page, verdict).when(verdict["by"] != "")


app = wl.App()
app.add([stumbling, article])


@asynccontextmanager
async def working(api: Rig) -> AsyncIterator[None]:
    await api.windlass.register(*app.recipes.values())
    async with serving(api.windlass, app):
        yield


async def until(api: Rig, job: str, is_so: Any) -> None:
    async with asyncio.timeout(60):
        while True:
            found = await read.steps(api.windlass.db, UUID(job))
            if is_so({(one.no): one for one in found}):
                return
            await asyncio.sleep(0.02)


async def get(api: Rig, path: str) -> Any:
    answer = await api.user.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def waiting(api: Rig, job: str) -> None:
    """Until everything is done but what waits for a person."""
    await until(
        api, job, lambda steps: steps[0].state == "PARKED" and {steps[1].state, steps[2].state} == {"COMPLETED"}
    )


async def test_a_step_tells_its_attempts_inputs_cost_and_what_it_waits_for(api: Rig) -> None:
    async with working(api):
        job = await api.submit("stumbling", inputs={"times": 2})
        await waiting(api, job)
        stumbled = await get(api, f"/jobs/{job}/steps/2")
        assert (stumbled["step"], stumbled["status"], stumbled["attempt"]) == ("stumble", "COMPLETED", 3)
        assert [(one["attempt"], one["outcome"]) for one in stumbled["attempts"]] == [
            (1, "failed"),
            (2, "failed"),
            (3, "succeeded"),
        ]
        assert stumbled["attempts"][1]["error"]["message"] == "attempt 2 of 2"
        assert all(one["worker"] and one["finished_at"] for one in stumbled["attempts"])
        assert stumbled["cost"] == {"amount": "0.75", "tokens_in": 9, "tokens_out": 0, "seconds": 0.0}
        assert (stumbled["inputs"], stumbled["inputs_state"]) == ({"times": 2}, "resolved")
        assert stumbled["idempotency_key"] == f"{job}/stumble"
        assert stumbled["why"] is None

        approved = await get(api, f"/jobs/{job}/steps/0")
        assert [(one["outcome"], one["finished_at"]) for one in approved["attempts"]] == [("waiting", None)]
        assert approved["why"]["because"] == "waits for the event approved"

        last = await get(api, f"/jobs/{job}/steps/3")
        assert (last["needs"], last["attempts"]) == (["approved", "number", "stumble"], [])
        assert last["why"]["detail"] == {"needs": ["approved"]}
        assert (last["inputs"], last["inputs_state"]) == ({"text": "777", "word": "seven"}, "resolved")

        assert (await api.user.post(f"/jobs/{job}/events", json={"name": "approved"})).status_code == 200
        await api.ended(job)
        approved = await get(api, f"/jobs/{job}/steps/0")
        assert [one["outcome"] for one in approved["attempts"]] == ["succeeded"]


async def test_a_step_that_waits_for_an_event_says_what_the_event_should_hold(api: Rig) -> None:
    async with working(api):
        job = await api.submit("article")
        await until(api, job, lambda steps: steps[1].state == "PARKED")
        told = (await api.user.get(f"/jobs/{job}/steps/1")).json()
        assert told["awaited"] == {
            "event": "approved",
            "match": {"topic": "tides"},
            "keys": ["by"],
            "given_to": ["publish"],
            "is_condition": False,
        }
        assert (await api.user.get(f"/jobs/{job}/steps/0")).json()["awaited"] is None
        body = {"name": "approved", "body": {"topic": "tides", "by": "ada"}}
        assert (await api.user.post(f"/jobs/{job}/events", json=body)).json()["status"] == "delivered"
        await api.ended(job)
    assert (await api.user.get(f"/jobs/{job}/output")).json() == "777 by ada"
    assert (await api.user.get(f"/jobs/{job}/steps/1")).json()["awaited"] is None


async def test_inputs_that_are_not_there_yet_or_are_large_are_said_to_be(api: Rig) -> None:
    await api.windlass.register(*app.recipes.values())
    job = await api.submit("stumbling")
    template = await get(api, f"/jobs/{job}/steps/3")
    assert template["inputs_state"] == "template"
    assert "${" in template["inputs"]["text"]
    async with working(api):
        await waiting(api, job)
        inline = await api.submit("stumbling", inputs={"times": 0, "size": 100_000})
        stored = await api.submit("stumbling", inputs={"times": 0, "size": 300_000})
        await waiting(api, inline)
        await waiting(api, stored)
    large = await get(api, f"/jobs/{inline}/steps/3")
    assert (large["inputs"], large["inputs_state"]) == (None, "large")
    # What is kept as an artifact is not fetched to be shown.
    assert (await get(api, f"/jobs/{stored}/steps/3"))["inputs_state"] == "template"


async def test_attempts_come_in_pages_in_the_order_in_which_they_began(api: Rig) -> None:
    async with working(api):
        job = await api.submit("stumbling", inputs={"times": 2})
        await waiting(api, job)
    whole = (await get(api, f"/jobs/{job}/attempts"))["items"]
    assert sorted((one["step"], one["attempt"]) for one in whole) == [
        ("approved", 1),
        ("number", 1),
        ("stumble", 1),
        ("stumble", 2),
        ("stumble", 3),
    ]
    assert [one["attempt"] for one in whole if one["step"] == "stumble"] == [1, 2, 3]
    found, after = [], 0
    while after is not None:
        page = await get(api, f"/jobs/{job}/attempts?limit=2&after={after}")
        found += page["items"]
        after = page["next"]
    assert found == whole


async def test_an_attempt_whose_worker_died_is_lost_and_one_that_was_cancelled_says_so(api: Rig) -> None:
    db = api.windlass.db
    job = UUID(await api.submit("hello"))
    for number in (1, 2):
        worker = UUID(int=number)
        await workers.enlist(db, worker, host="h", pid=1, queues=["main_processing"], concurrency=1, lease_s=60)
        [taken] = await claim(db, worker=worker, queues=["main_processing"], limit=1)
        if number == 1:
            report = Report(taken.job_id, taken.no, taken.attempt, Lost(), source="rescuer")
            await settle.settle(db, [report], spread=lambda: 0.0)
    [lost, running] = await attempts(db, job)
    assert (lost.outcome, lost.error["code"], lost.worker) == ("lost", "worker_lost", UUID(int=1))
    assert (running.outcome, running.finished_at, running.worker) == ("running", None, UUID(int=2))
    assert (await api.user.post(f"/jobs/{job}/cancel")).status_code == 200
    assert [one.outcome for one in await attempts(db, job)] == ["lost", "cancelled"]


async def test_the_children_of_a_fan_out_have_attempts_inputs_and_a_parent(api: Rig) -> None:
    job = await api.run("fan", inputs={"many": 3})
    steps = (await get(api, f"/jobs/{job}/steps"))["items"]
    fan = next(one for one in steps if one["step"] == "double" and one["index"] is None)
    children = [one for one in steps if one["parent"] == fan["no"]]
    assert [one["index"] for one in children] == [0, 1, 2]
    last = await get(api, f"/jobs/{job}/steps/{children[2]['no']}")
    assert (last["inputs"], last["idempotency_key"]) == ({"number": 2}, f"{job}/double[2]")
    assert [(one["step"], one["index"]) for one in last["attempts"]] == [("double", 2)]
    # What the fan-out says is for its children.
    assert (await get(api, f"/jobs/{job}/steps/{fan['no']}"))["inputs_state"] == "template"


async def test_where_children_stand_is_told_in_a_compact_form(api: Rig) -> None:
    job = await api.submit("fan", inputs={"many": 4})
    before = await get(api, f"/jobs/{job}/graph?children=states")
    assert (before["statuses"], before["children"]) == ([], {})
    async with api.working():
        await api.ended(job)
    graph = await get(api, f"/jobs/{job}/graph?children=states")
    steps = (await get(api, f"/jobs/{job}/steps"))["items"]
    [(fan, children)] = graph["children"].items()
    assert children["no"] == [one["no"] for one in steps if one["parent"] == int(fan)]
    assert [graph["statuses"][code] for code in children["status"]] == ["COMPLETED"] * 4
    assert graph["seq"] == (await get(api, f"/jobs/{job}"))["seq"]
    plain = await get(api, f"/jobs/{job}/graph")
    assert (plain["statuses"], plain["children"]) == (None, None)
    assert (await api.user.get(f"/jobs/{job}/graph?children=all")).status_code == 422


async def test_events_are_told_from_their_end_too(api: Rig) -> None:
    job = await api.run("fan", inputs={"many": 5})
    whole = (await get(api, f"/jobs/{job}/events"))["items"]
    newest = (await get(api, f"/jobs/{job}/events?order=desc"))["items"]
    assert newest == whole[::-1]
    found, before = [], None
    while True:
        page = await get(api, f"/jobs/{job}/events?order=desc&limit=4" + (f"&before={before}" if before else ""))
        found += page["items"]
        before = page["next"]
        if before is None:
            break
    assert found == whole[::-1]
    between = (await get(api, f"/jobs/{job}/events?after=3&before=6"))["items"]
    assert [one["seq"] for one in between] == [4, 5]


@pytest.mark.parametrize("no", ["99", "-1", "x", "2147483648", "1.0", "%00", "٣"])
async def test_a_step_that_is_not_there_is_not_found(api: Rig, no: str) -> None:
    job = await api.submit("hello")
    assert (await api.user.get(f"/jobs/{job}/steps/{no}")).status_code == 404


async def test_anothers_step_is_not_there(api: Rig) -> None:
    job = await api.submit("hello")
    for path in (f"/jobs/{job}/steps/0", f"/jobs/{job}/attempts"):
        assert (await api.other.get(path)).status_code == 404
        assert (await api.admin.get(path)).status_code == 200
