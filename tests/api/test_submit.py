"""Submitting over HTTP: one job, many, again, and together."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.rig import Rig, rig
from windlass.engine import submit as engine_submit
from windlass.store.database import Database


async def jobs_stored(db: Database) -> int:
    async with db.connection() as connection:
        return int(await connection.fetchval("SELECT count(*) FROM windlass.jobs"))


async def test_a_job_is_accepted_stored_and_run(api: Rig) -> None:
    answer = await api.user.post("/jobs", json={"recipe": "hello", "inputs": {"name": "Ada"}})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert answer.headers["Location"] == f"/jobs/{job['job_id']}"
    assert (job["status"], job["is_new"], job["caller"]) == ("QUEUED", True, "user")
    assert job["correlation_id"] == answer.headers["X-Request-Id"]
    async with api.working():
        await api.ended(job["job_id"])
    assert (await api.user.get(f"/jobs/{job['job_id']}")).json()["status"] == "COMPLETED"
    assert (await api.user.get(f"/jobs/{job['job_id']}/output")).json() == "Hello, Ada!"


WISHES: tuple[dict[str, Any], ...] = (
    {},
    {"inputs": {"name": "Zoë"}, "labels": {"team": "blå"}, "priority": -3},
    {"deadline": "90s", "ttl": "2h", "version": 1},
    {"budget": "2.50", "idempotency_key": "in the body"},
)


@pytest.mark.parametrize("wish", WISHES)
async def test_the_answer_is_the_job_as_it_was_stored_and_nothing_is_read_back(api: Rig, wish: dict[str, Any]) -> None:
    answer = await api.user.post("/jobs", json={"recipe": "hello", **wish})
    assert answer.status_code == 202, answer.text
    assert api.parts.job_reader.count == 0
    told = answer.json()
    assert told.pop("is_new") is True
    assert told == (await api.user.get(f"/jobs/{told['job_id']}")).json()
    assert list(answer.json()) == [*told, "is_new"]


async def test_the_answer_names_the_newest_version_that_is_the_same_plan(api: Rig) -> None:
    async with api.windlass.db.connection() as connection:
        for version, recipe in ((2, "large"), (3, "hello")):
            await connection.execute(
                "INSERT INTO windlass.recipes (name, version, plan) "
                "SELECT 'hello', $1, plan FROM windlass.recipes WHERE name = $2 AND version = 1",
                version,
                recipe,
            )
    for version in (1, 3):
        answer = await api.user.post("/jobs", json={"recipe": "hello", "version": version})
        assert answer.status_code == 202, answer.text
        assert answer.json()["recipe_version"] == 3
        assert (await api.user.get(f"/jobs/{answer.json()['job_id']}")).json()["recipe_version"] == 3


async def test_submits_that_come_together_share_commits(api: Rig) -> None:
    """All but the very first requests, whose key and limits are looked up one by one, are written in few statements."""
    await api.user.post("/jobs", json={"recipe": "hello"})
    answers = await asyncio.gather(*(api.user.post("/jobs", json={"recipe": "hello"}) for _ in range(40)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 40
    async with api.windlass.db.connection() as connection:
        commits = await connection.fetchval("SELECT count(DISTINCT xmin::text) FROM windlass.jobs")
    assert commits < 40


@pytest.mark.parametrize(("wait", "stored"), [("insert_judged", 0), ("flush", 1)])
async def test_an_accepted_job_is_on_the_disk_before_it_is_answered(
    api: Rig, monkeypatch: pytest.MonkeyPatch, wait: str, stored: int
) -> None:
    """The commit, or the disk, is held up: no answer comes. It is let go: the answer comes, and the job is there."""
    may_commit, true = asyncio.Event(), getattr(engine_submit, wait)

    async def held(*arguments: Any) -> Any:
        await may_commit.wait()
        return await true(*arguments)

    monkeypatch.setattr(engine_submit, wait, held)
    asked = asyncio.create_task(api.user.post("/jobs", json={"recipe": "hello"}))
    done, _ = await asyncio.wait([asked], timeout=0.3)
    assert not done
    assert await jobs_stored(api.windlass.db) == stored
    may_commit.set()
    answer = await asked
    assert answer.status_code == 202
    assert await jobs_stored(api.windlass.db) == 1


@pytest.mark.parametrize(("cuts", "status", "stored"), [(1, 202, 1), (99, 503, 0)])
async def test_a_connection_that_is_killed_before_the_commit_leaves_one_job_or_none(
    api: Rig, monkeypatch: pytest.MonkeyPatch, cuts: int, status: int, stored: int
) -> None:
    """Once: it is done again on another connection, and accepted. Every time: 503, and there is no job."""
    true_insert, left = engine_submit.insert_judged, cuts

    async def cut_off(connection: Any, *arguments: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return await true_insert(connection, *arguments)

    monkeypatch.setattr(engine_submit, "insert_judged", cut_off)
    answer = await api.user.post("/jobs", json={"recipe": "hello"})
    assert answer.status_code == status, answer.text
    if status == 503:
        assert (answer.json()["code"], answer.json()["retryable"]) == ("database_unavailable", True)
        assert answer.headers["Retry-After"] == "2"
    assert await jobs_stored(api.windlass.db) == stored


async def test_concurrent_submits_share_commits(api: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    true_insert = engine_submit.insert_judged

    async def counted(connection: Any, submissions: Any, *arguments: Any) -> Any:
        sizes.append(len(submissions))
        return await true_insert(connection, submissions, *arguments)

    monkeypatch.setattr(engine_submit, "insert_judged", counted)
    answers = await asyncio.gather(*(api.user.post("/jobs", json={"recipe": "hello"}) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["job_id"] for answer in answers}) == 50 == sum(sizes)
    assert len(sizes) < 25


async def test_an_unknown_recipe_is_answered_with_the_closest_name(api: Rig) -> None:
    answer = await api.user.post("/jobs", json={"recipe": "helo"})
    assert (answer.status_code, answer.json()["hint"]) == (404, "Did you mean hello?")


async def test_the_same_key_gives_the_same_job(api: Rig) -> None:
    headers = {"Idempotency-Key": "order 7"}
    first = await api.user.post("/jobs", json={"recipe": "hello"}, headers=headers)
    again = await api.user.post("/jobs", json={"recipe": "hello"}, headers=headers)
    assert again.status_code == 202
    assert again.json()["job_id"] == first.json()["job_id"]
    assert (first.json()["is_new"], again.json()["is_new"]) == (True, False)
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (None, "true")
    by_another = await api.other.post("/jobs", json={"recipe": "hello"}, headers=headers)
    assert by_another.json()["is_new"] is True


async def test_the_same_key_for_another_body_is_a_conflict(api: Rig) -> None:
    headers = {"Idempotency-Key": "order 7"}
    await api.user.post("/jobs", json={"recipe": "hello"}, headers=headers)
    answer = await api.user.post("/jobs", json={"recipe": "hello", "inputs": {"name": "Bo"}}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_a_key_in_header_and_body_must_be_one(api: Rig) -> None:
    body = {"recipe": "hello", "idempotency_key": "a"}
    assert (await api.user.post("/jobs", json=body, headers={"Idempotency-Key": "b"})).status_code == 400
    assert (await api.user.post("/jobs", json=body, headers={"Idempotency-Key": "a"})).status_code == 202


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, "/recipe"),
        ({"recipe": 7}, 422, "/recipe"),
        ({"recipe": "hello", "priority": "high"}, 422, "/priority"),
        ({"recipe": "hello", "priority": 101}, 422, "/priority"),
        ({"recipe": "hello", "colour": "red"}, 422, "/colour"),
        ({"recipe": "hello", "labels": {"a": 1}}, 422, "/labels/a"),
        ({"recipe": "hello", "labels": {"a": "nul \x00"}}, 422, "/labels/a"),
        ({"recipe": "hello", "deadline": "soon"}, 422, "/deadline"),
        ({"recipe": "hello", "deadline": -1}, 422, "/deadline"),
        ({"recipe": "hello", "version": 2**40}, 422, "/version"),
        ({"recipe": "hello", "inputs": []}, 422, "/inputs"),
        ({"recipe": "hello", "inputs": {"name": 7}}, 422, "/inputs/name"),
        ({"recipe": "hello", "inputs": {"nobody": 7}}, 422, "/inputs"),
        ({"recipe": "no such recipe"}, 404, None),
        ({"recipe": "hello", "version": 9}, 404, None),
        ({"recipe": "hello", "webhook": {"url": "http://127.0.0.1/", "secret": "whsec_" + "A" * 32}}, 422, None),
        ({"recipe": "hello", "webhook": {"url": "https://example.com/", "secret": "hush"}}, 422, None),
    ],
)
async def test_a_body_that_does_not_fit_says_where(api: Rig, body: Any, status: int, pointer: str | None) -> None:
    answer = await api.user.post("/jobs", json=body)
    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert await jobs_stored(api.windlass.db) == 0


@pytest.mark.parametrize(
    ("given", "seconds"), [(90, 90), ("90s", 90), ("PT2M", 120), ("P1DT1S", 86401), ("1h30m", 5400)]
)
async def test_lengths_of_time_are_written_in_several_ways(api: Rig, given: Any, seconds: int) -> None:
    from datetime import datetime

    job = (await api.user.post("/jobs", json={"recipe": "hello", "deadline": given})).json()
    made, due = (datetime.fromisoformat(job[name]) for name in ("created_at", "deadline_at"))
    assert abs((due - made).total_seconds() - seconds) < 0.01


async def test_a_batch_is_answered_item_by_item(api: Rig) -> None:
    await api.user.post("/jobs", json={"recipe": "hello"}, headers={"Idempotency-Key": "one"})
    jobs = [
        {"recipe": "hello", "inputs": {"name": "Ada"}},
        {"recipe": "hello", "idempotency_key": "one"},
        {"recipe": "hello", "idempotency_key": "one", "inputs": {"name": "another"}},
        {"recipe": "hello", "idempotency_key": "two"},
    ]
    answer = await api.user.post("/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 202, answer.text
    found = answer.json()
    assert (found["accepted"], found["refused"]) == (3, 1)
    assert [item.get("is_new") for item in found["items"]] == [True, False, None, True]
    assert (found["items"][2]["code"], found["items"][2]["status"]) == ("conflict", 409)
    assert await jobs_stored(api.windlass.db) == 3


async def test_one_bad_item_refuses_the_whole_batch(api: Rig) -> None:
    jobs = [{"recipe": "hello"}, {"recipe": "hello", "inputs": {"name": 7}}]
    answer = await api.user.post("/jobs/batch", json={"jobs": jobs})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/jobs/1/inputs/name"
    assert await jobs_stored(api.windlass.db) == 0


async def test_a_batch_has_no_key_of_its_own_and_a_largest_size(api: Rig) -> None:
    batch: dict[str, Any] = {"jobs": [{"recipe": "hello"}]}
    assert (await api.user.post("/jobs/batch", json=batch, headers={"Idempotency-Key": "x"})).status_code == 400
    assert (await api.user.post("/jobs/batch", json={"jobs": []})).status_code == 422
    answer = await api.user.post("/jobs/batch", json={"jobs": batch["jobs"] * 1001})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_batch_costs_as_much_as_its_jobs(dsn: str, tmp_path: Path) -> None:
    limits = {"limit_capacity": 10, "limit_floor": 10, "limit_burst": 1.0}
    async with rig(dsn, tmp_path, **limits) as api:
        batch: dict[str, Any] = {"jobs": [{"recipe": "hello"}] * 6}
        first = await api.user.post("/jobs/batch", json=batch)
        assert (first.status_code, first.headers["X-RateLimit-Remaining"]) == (202, "4")
        second = await api.user.post("/jobs/batch", json=batch)
        assert (second.status_code, second.json()["code"]) == (429, "rate_limited")
        assert int(second.headers["Retry-After"]) > 0
        assert (await api.user.post("/jobs/batch", json={"jobs": batch["jobs"] * 2})).status_code == 413
        assert await jobs_stored(api.windlass.db) == 6


@pytest.mark.covers("CIX-21", "CIX-62", "CIX-73", "JN-52")
async def test_a_full_queue_refuses_submits_and_nothing_else(dsn: str, tmp_path: Path) -> None:
    async with rig(dsn, tmp_path, queue_depth_max=1) as api:
        for _ in range(2):
            await api.submit()
        api.parts.depth._looked_s = float("-inf")  # the look of this second is over
        answer = await api.user.post("/jobs", json={"recipe": "hello"})
        assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (429, "busy", "30")
        assert (await api.user.get("/jobs")).status_code == 200
