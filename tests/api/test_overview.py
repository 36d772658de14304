"""The overview, dead letters, recent inputs, and the steps that workers run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.rig import Rig
from windlass.engine import claim, workers
from windlass.engine.loops.auditor import Auditor

QUEUES = ["main_processing"]

NONE = {"running": 0, "queued": 0, "waiting": 0, "sleeping": 0, "paused": 0}


async def failed(api: Rig, *reasons: str, **given: Any) -> list[str]:
    """Failed jobs, each for its reason."""
    made = [await api.submit("failing", inputs={"reason": reason}, **given) for reason in reasons]
    async with api.working():
        await api.ended(*made)
    return made


async def letters(api: Rig) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.user.get("/dead-letters")).json()["items"]
    return found


async def test_an_empty_installation_has_nothing_to_tell(api: Rig) -> None:
    for client in (api.user, api.admin):
        told = (await client.get("/overview")).json()
        assert (told["attention"], told["recipes"], told["is_capped"]) == ([], [], False)
        assert told["totals"] == {"open": 0, **NONE}
        assert len(told["throughput"]["minutes"]) == len(told["throughput"]["completed"]) == 60
        assert (await client.get("/dead-letters")).json() == {"items": [], "looked_at": 0, "is_capped": False}


async def test_what_was_done_in_the_last_hour_is_told_by_minute_and_recipe(api: Rig) -> None:
    done = [await api.submit() for _ in range(3)]
    async with api.working():
        await api.ended(*done)
    await failed(api, "a", "a", "a", "a")
    while (await Auditor(api.parts.db).run_once()).is_more:
        pass
    for client in (api.user, api.admin):
        told = (await client.get("/overview")).json()
        assert sum(told["throughput"]["completed"]) == 3 and sum(told["throughput"]["failed"]) == 4
        rates = {one["recipe"]: one for one in told["recipes"]}
        assert (rates["hello"]["completed"], rates["hello"]["failed"]) == (3, 0)
        assert 0 < rates["hello"]["p50_s"] <= rates["hello"]["p95_s"]
        assert (rates["failing"]["failed"], rates["failing"]["p95_s"]) == (4, None)
        by_kind = {one["kind"]: one for one in told["attention"]}
        assert by_kind["failing_recipe"]["count"] == 4
        assert by_kind["failing_recipe"]["link"] == "/jobs?status=FAILED%2CTIMEOUT&recipe=failing"
        assert (by_kind["dead_letters"]["count"], by_kind["dead_letters"]["link"]) == (4, "/dead-letters")
    assert sum((await api.other.get("/overview")).json()["throughput"]["failed"]) == 0


async def test_a_job_is_counted_once_however_often_the_auditor_comes(api: Rig) -> None:
    await api.run()
    for _ in range(3):
        while (await Auditor(api.parts.db).run_once()).is_more:
            pass
    assert sum((await api.admin.get("/overview")).json()["throughput"]["completed"]) == 1


async def test_queues_are_for_admins_and_one_that_nobody_serves_is_told(api: Rig) -> None:
    for _ in range(2):
        await api.submit()
    told = (await api.admin.get("/overview")).json()
    [queue] = told["queues"]
    assert (queue["queue"], queue["ready"], queue["running"], queue["workers"]) == ("main_processing", 2, 0, 0)
    assert [one["kind"] for one in told["attention"]] == ["no_workers"]
    assert told["totals"] == {**NONE, "open": 2, "queued": 2}
    mine = (await api.user.get("/overview")).json()
    assert (mine["queues"], mine["attention"], mine["totals"]["open"]) == ([], [], 2)
    assert (await api.other.get("/overview")).json()["totals"]["open"] == 0


@pytest.mark.covers("COR-111")
async def test_a_worker_is_told_with_what_it_has_in_hand(api: Rig) -> None:
    job = await api.submit()
    db, worker = api.parts.db, api.parts.ids.new()
    await workers.enlist(db, worker, host="h", pid=1, queues=QUEUES, concurrency=9)
    await claim.claim(db, worker=worker, queues=QUEUES, limit=10)
    told = (await api.admin.get("/workers")).json()
    [one] = [item for item in told["items"] if item["id"] == str(worker)]
    assert (one["running"], one["is_live"]) == (1, True)
    [step] = one["steps"]
    assert (step["job_id"], step["no"], step["step"]) == (job, 0, "greet") and step["since"] <= told["as_of"]
    totals = (await api.admin.get("/overview")).json()["totals"]
    assert totals == {**NONE, "open": 1, "running": 1}
    async with db.connection() as connection:
        await connection.execute(
            "UPDATE windlass.workers SET lost_at = windlass.clock(), lease_until = windlass.clock()"
        )
    [one] = (await api.admin.get("/workers")).json()["items"]
    assert one["is_live"] is False
    kinds = [item["kind"] for item in (await api.admin.get("/overview")).json()["attention"]]
    assert "lost_worker" in kinds


async def test_who_waits_for_a_person_and_a_provider_that_is_not_asked_are_told(api: Rig) -> None:
    job = await api.submit()
    async with api.parts.db.connection() as connection:
        await connection.execute("INSERT INTO windlass.waits VALUES ($1, 0, 'approved', '{}')", job)
        await connection.execute(
            "INSERT INTO windlass.providers (name, opened_at, error, updated_at) VALUES ('fal', now(), '500', now())"
        )
    told = {one["kind"]: one for one in (await api.admin.get("/overview")).json()["attention"]}
    assert (told["waiting_person"]["count"], told["waiting_person"]["link"]) == (1, f"/jobs/{job}")
    assert told["breaker_open"]["title"] == "Provider fal is not used"
    mine = {one["kind"] for one in (await api.user.get("/overview")).json()["attention"]}
    assert mine == {"waiting_person"}
    assert (await api.other.get("/overview")).json()["attention"] == []


async def test_dead_letters_are_grouped_and_run_again_once(api: Rig) -> None:
    jobs = await failed(api, "no answer in 3 s", "no answer in 44 s", "disk full")
    first, second = await letters(api)
    assert {first["count"], second["count"]} == {1, 2}
    kind = first if first["count"] == 2 else second
    assert (kind["code"], kind["recipe"], kind["step"]) == ("permanent", "failing", "break_down")
    assert kind["example_job"] == kind["job_ids"][0] and set(kind["job_ids"]) == set(jobs[:2])
    path = f"/dead-letters/{kind['fingerprint']}/redrive"
    dry = (await api.user.post(path, json={})).json()
    assert (dry["dry_run"], dry["matched"], dry["done"]) == (True, 2, [])
    wrong = await api.user.post(path, json={"dry_run": False, "expect": 1})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "count_changed")
    wish = {"dry_run": False, "expect": 2, "reason": "the network is back", "start": "first"}
    answers = await asyncio.gather(*(api.user.post(path, json=wish) for _ in range(3)))
    done = [item["job_id"] for answer in answers if answer.status_code == 200 for item in answer.json()["done"]]
    assert sorted(done) == sorted(kind["job_ids"]), "each once, though three pressed"
    assert (await api.user.post(path, json={"dry_run": False})).status_code == 404
    assert [one["count"] for one in await letters(api)] == [1]


async def test_dead_letters_are_discarded_with_a_reason_and_one_record(api: Rig) -> None:
    jobs = await failed(api, "x", "x")
    [kind] = await letters(api)
    path = f"/dead-letters/{kind['fingerprint']}/discard"
    assert (await api.other.post(path, json={"dry_run": True})).status_code == 404
    told = (await api.user.post(path, json={"dry_run": False, "expect": 2, "reason": "test data"})).json()
    assert {item["job_id"] for item in told["done"]} == set(jobs)
    assert await letters(api) == []
    assert (await api.user.get(f"/jobs/{jobs[0]}")).json()["status"] == "FAILED"
    async with api.parts.db.connection() as connection:
        notes = await connection.fetch(
            "SELECT payload FROM windlass.audit_notes WHERE event = 'bulk_applied' UNION ALL "
            "SELECT payload FROM windlass.audit WHERE event = 'bulk_applied'"
        )
    [note] = notes
    assert '"reason":"test data"' in note["payload"] and '"action":"discard"' in note["payload"]


@pytest.mark.parametrize(
    ("fingerprint", "body", "status"),
    [
        ("0" * 16, {"dry_run": False}, 404),
        ("0" * 15, {}, 404),
        ("g" * 16, {}, 404),
        ("%00" * 16, {}, 404),
        ("..%2f..%2fkeys", {}, 404),
        ("0" * 5_000, {}, 404),
        ("0" * 16, {"start": "middle"}, 422),
        ("0" * 16, {"expect": -1}, 422),
        ("0" * 16, {"expect": 2**40}, 422),
        ("0" * 16, {"limit": 501}, 422),
        ("0" * 16, {"reason": "\x00"}, 422),
        ("0" * 16, {"reason": "x" * 2_001}, 422),
        ("0" * 16, {"dry_run": 0}, 422),
        ("0" * 16, {"all": True}, 422),
        ("0" * 16, [], 422),
    ],
)
async def test_hostile_redrives_are_refused(api: Rig, fingerprint: str, body: Any, status: int) -> None:
    answer = await api.user.post(f"/dead-letters/{fingerprint}/redrive", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_message_of_any_kind_is_told_as_it_is(api: Rig) -> None:
    await failed(api, "<script>alert(1)</script>", "\u202e\x7f é 😀", "x" * 100_000)
    messages = {one["message"][:40] for one in await letters(api)}
    assert {"<script>alert(1)</script>", "x" * 40} < messages
    assert all(len(one["message"]) <= 1_000 for one in await letters(api))


async def test_recent_inputs_are_ones_own_each_once_the_newest_first(api: Rig) -> None:
    for name in ("a", "b", "a", "c"):
        await api.submit(inputs={"name": name})
    await api.submit(client=api.other, inputs={"name": "theirs"})
    await api.submit(inputs={"name": "x" * 100_000})
    mine = (await api.user.get("/recipes/hello/inputs")).json()["items"]
    names = [item["inputs"]["name"] for item in mine]
    # What compresses well is small.
    assert [name for name in names if len(name) == 1] == ["c", "a", "b"] and "theirs" not in names
    everybodys = (await api.admin.get("/recipes/hello/inputs")).json()["items"]
    assert "theirs" in [item["inputs"]["name"] for item in everybodys]
    for number in range(15):
        await api.submit(inputs={"name": str(number)})
    assert len((await api.user.get("/recipes/hello/inputs")).json()["items"]) == 10
    assert (await api.user.get("/recipes/nothing/inputs")).status_code == 404
    assert (await api.user.get("/recipes/%00/inputs")).status_code == 404


async def test_a_bulk_cancel_says_how_many_running_steps_it_would_stop(api: Rig) -> None:
    for _ in range(3):
        await api.submit(labels={"run": "1"})
    db, worker = api.parts.db, api.parts.ids.new()
    await workers.enlist(db, worker, host="h", pid=1, queues=QUEUES, concurrency=9)
    await claim.claim(db, worker=worker, queues=QUEUES, limit=2)
    wish = {"action": "cancel", "filter": {"label": ["run=1"]}}
    told = (await api.user.post("/jobs/bulk", json=wish)).json()
    assert (told["matched"], told["running_steps"]) == (3, 2)


async def test_the_audit_is_read_backwards_page_by_page(api: Rig) -> None:
    for _ in range(4):
        await api.submit()
    while (await Auditor(api.parts.db).run_once()).is_more:
        pass
    forwards = [one["no"] for one in (await api.admin.get("/audit?limit=500")).json()["items"]]
    found: list[int] = []
    query = "order=desc&limit=3"
    while True:
        page = (await api.admin.get(f"/audit?{query}")).json()
        found += [one["no"] for one in page["items"]]
        if page["next"] is None:
            break
        query = f"order=desc&limit=3&before={page['next']}"
    assert found == forwards[::-1] and len(found) >= 4
    for wrong in ("before=3", "order=desc&after=3", "order=up", "order=desc&before=0", "before=x"):
        assert (await api.admin.get(f"/audit?{wrong}")).status_code == 422, wrong
    newest = (await api.admin.get("/audit?order=desc&event=job_submitted&limit=1")).json()["items"]
    assert [one["event"] for one in newest] == ["job_submitted"]
