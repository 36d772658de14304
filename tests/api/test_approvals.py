"""Approvals over HTTP: who sees them, who may decide, and which code a vote that comes too late gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

import windlass as wl
from tests.api.rig import Rig
from windlass.app.service import serving
from windlass.core.caller import USER_SCOPES, Scope
from windlass.engine import publish as publishing

DECIDES = USER_SCOPES | {Scope.APPROVALS_DECIDE}


@wl.step
def write(topic: str) -> str:
    return f"All about {topic}"


@wl.step
def publish(page: str, verdict: dict) -> str:  # type: ignore[type-arg]
    return f"{page} ({', '.join(verdict['by'])})"


@wl.recipe
def article(topic: str = "tides"):  # type: ignore[no-untyped-def]
    page = write(topic)
    return publish(page, wl.approve("Publish?", show={"page": page}))


@wl.recipe
def careful(topic: str = "tides"):  # type: ignore[no-untyped-def]
    page = write(topic)
    return publish(page, wl.approve("Publish?", who=["lead"], need=2, show={"page": page}))


app = wl.App()
app.add([article, careful])


@pytest.fixture
async def people(api: Rig) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """The requester with two keys, three people who may decide, and a person who may not."""
    await api.windlass.register(*app.recipes.values())
    made = {
        "user2": await api.key("user", scopes=DECIDES, roles=["lead"]),
        "grace": await api.key("grace", scopes=DECIDES, roles=["lead"]),
        "alan": await api.key("alan", scopes=DECIDES, roles=["lead"]),
        "kurt": await api.key("kurt", scopes=DECIDES),
        "weak": await api.key("weak", roles=["lead"]),
    }
    clients = {name: api.client(key) for name, key in made.items()}
    yield clients
    for client in clients.values():
        await client.aclose()


@asynccontextmanager
async def waiting(api: Rig, recipe: str = "article") -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """A job of `user` that waits for its approval, with a worker beside it."""
    job_id = await api.submit(recipe)
    async with serving(api.windlass, app):
        async with asyncio.timeout(60):
            while not (found := (await listed(api.admin, state="PENDING"))):
                await asyncio.sleep(0.02)
        yield job_id, found[0]


async def listed(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/approvals", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def decide(client: httpx.AsyncClient, id: str, action: str = "approve", **body: Any) -> httpx.Response:
    return await client.post(f"/approvals/{id}/{action}", json=body)


async def test_a_person_reads_what_will_run_and_approves_it(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    async with waiting(api) as (job_id, one):
        seen = (await people["kurt"].get(f"/approvals/{one['id']}")).json()
        assert (seen["recipe"], seen["question"], seen["show"]) == ("article", "Publish?", {"page": "All about tides"})
        assert (seen["inputs"], seen["requester"], seen["may_decide"]) == ({"topic": "tides"}, "user", True)
        assert 0 < seen["left_s"] <= 86_400
        answer = await decide(people["kurt"], one["id"], reason="fine", subject=seen["subject"])
        assert (answer.status_code, answer.json()["state"]) == (200, "USED"), answer.text
        await api.ended(job_id)
        assert (await api.user.get(f"/jobs/{job_id}/output")).json() == "All about tides (kurt)"
        events = (await api.user.get(f"/jobs/{job_id}/events")).json()["items"]
        assert [e["type"] for e in events if e["type"].startswith("approval.")] == [
            "approval.requested", "approval.voted", "approval.decided",
        ]  # fmt: skip


async def test_the_requester_its_second_key_and_people_without_the_right_get_403(
    api: Rig, people: dict[str, httpx.AsyncClient]
) -> None:
    async with waiting(api, "careful") as (_, one):
        for client in (api.user, people["user2"], people["weak"], people["kurt"], api.admin):
            answer = await decide(client, one["id"])
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert (await decide(api.stranger, one["id"])).status_code == 401


async def test_two_people_are_needed_and_one_counts_once(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    async with waiting(api, "careful") as (job_id, one), api_client(api, "grace") as second:
        for client in (people["grace"], people["grace"], second):
            assert (await decide(client, one["id"])).json()["state"] == "PENDING"
        assert (await decide(people["alan"], one["id"])).json()["state"] == "USED"
        await api.ended(job_id)
        assert (await api.user.get(f"/jobs/{job_id}/output")).json() == "All about tides (grace, alan)"


@asynccontextmanager
async def api_client(api: Rig, caller: str) -> AsyncIterator[httpx.AsyncClient]:
    async with api.client(await api.key(caller, scopes=DECIDES, roles=["lead"])) as client:
        yield client


async def test_an_approval_is_used_once_however_many_approve_at_once(
    api: Rig, people: dict[str, httpx.AsyncClient]
) -> None:
    async with waiting(api) as (job_id, one):
        answers = await asyncio.gather(*(decide(people[name], one["id"]) for name in ("grace", "alan", "kurt")))
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409]
        codes = {answer.json()["code"] for answer in answers if answer.status_code == 409}
        assert codes == {"approval_already_resolved"}
        await api.ended(job_id)
        events = (await api.user.get(f"/jobs/{job_id}/events")).json()["items"]
        assert [event["attempt"] for event in events if event["type"] == "step.running"] == [1, 1]


async def test_a_vote_on_an_ended_job_or_another_subject_is_refused(
    api: Rig, people: dict[str, httpx.AsyncClient]
) -> None:
    async with waiting(api) as (job_id, one):
        stale = await decide(people["kurt"], one["id"], subject="0" * 64)
        assert (stale.status_code, stale.json()["code"]) == (409, "approval_stale_request")
        await api.user.post(f"/jobs/{job_id}/cancel")
        late = await decide(people["kurt"], one["id"])
        assert (late.status_code, late.json()["code"]) == (409, "approval_terminal_run")


async def test_each_caller_lists_what_concerns_it(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    async with waiting(api, "careful") as (_, one):
        for name in ("grace", "alan"):
            assert [found["id"] for found in await listed(people[name], decidable=True)] == [one["id"]]
        assert [found["id"] for found in await listed(api.user, mine=True)] == [one["id"]]
        assert await listed(api.user, decidable=True) == []
        for client in (api.other, people["kurt"], people["weak"]):
            assert await listed(client) == []
            assert (await client.get(f"/approvals/{one['id']}")).status_code == 404
        assert (await listed(api.admin, state="USED")) == []


async def test_a_list_is_read_in_pages(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    jobs = [await api.submit("article") for _ in range(3)]
    async with serving(api.windlass, app):
        async with asyncio.timeout(60):
            while len(await listed(people["kurt"])) < len(jobs):
                await asyncio.sleep(0.02)
        first = (await people["kurt"].get("/approvals", params={"limit": 2})).json()
        rest = (await people["kurt"].get("/approvals", params={"limit": 2, "cursor": first["next"]})).json()
        seen = [one["job_id"] for one in first["items"] + rest["items"]]
        assert (sorted(seen), rest["next"]) == (sorted(jobs), None)


MAIL = """
version: "1"
default_decision: allow
rules:
- id: mail
  match: {topics: [job.hello]}
  decision: require_approval
  reason: mail goes out
  approval: {need: 2, who: {roles: [lead]}}
"""


async def published(api: Rig, text: str, **given: Any) -> None:
    await publishing.publish(api.windlass.db, {"main": text}, by="op", untested="a test", **given)


@pytest.mark.covers("COR-10", "COR-16")
async def test_a_rule_asks_people_about_a_whole_job(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    await published(api, MAIL)
    made = await api.user.post("/jobs", json={"recipe": "hello", "labels": {"approval_granted": "true"}})
    assert (made.status_code, made.json()["status"]) == (202, "APPROVAL_REQUIRED"), made.text
    job_id = made.json()["job_id"]
    [one] = await listed(people["grace"], decidable=True)
    assert (one["job_id"], one["step"], one["rule"], one["reason"]) == (job_id, None, "mail", "mail goes out")
    for client in (api.user, people["user2"], people["kurt"]):
        assert (await decide(client, one["id"])).status_code == 403
    async with api.working():
        assert (await decide(people["grace"], one["id"])).json()["state"] == "PENDING"
        assert (await decide(people["alan"], one["id"])).json()["state"] == "USED"
        await api.ended(job_id)
    assert (await api.user.get(f"/jobs/{job_id}")).json()["status"] == "COMPLETED"
    late = await decide(people["alan"], one["id"], "reject")
    assert (late.status_code, late.json()["code"]) == (409, "approval_already_resolved")


async def test_a_policy_that_changed_meanwhile_is_asked_again(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    await published(api, MAIL.replace("need: 2", "need: 1"))
    job_id = await api.submit("hello")
    [one] = await listed(people["grace"], decidable=True)
    await published(api, MAIL.replace("need: 2", "need: 3"), new_only=True)
    stale = await decide(people["grace"], one["id"])
    assert (stale.status_code, stale.json()["code"]) == (409, "approval_stale_snapshot")
    [new] = await listed(people["grace"], decidable=True)
    assert (new["job_id"], new["need"], new["id"] != one["id"]) == (job_id, 3, True)


async def test_a_rejection_says_why(api: Rig, people: dict[str, httpx.AsyncClient]) -> None:
    async with waiting(api) as (job_id, one):
        assert (await decide(people["kurt"], one["id"], "reject", reason="not yet")).json()["state"] == "REJECTED"
        await api.ended(job_id)
        error = (await api.user.get(f"/jobs/{job_id}")).json()["error"]
        assert (error["code"], error["message"]) == ("approval_rejected", "rejected by kurt: not yet")
