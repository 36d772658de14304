"""Deliveries, on the test's clock, to a receiver that is a process of its own."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from uuid import UUID

import asyncpg
import pytest

from tests.outbound.receiver import Receiver
from tests.outbound.rig import FAILED, WEBHOOK_SECRET, Hooks
from windlass.access.secret import Secret
from windlass.core.errors import NotFound, WrongState
from windlass.core.outcome import Failure, Fault
from windlass.outbound import webhook_sender as room
from windlass.outbound.send import Sent
from windlass.outbound.webhook_sender import LEASE_S, redeliver, webhook_of
from windlass.pure.webhook import RETRY_AFTER_S, parse_secret, verify
from windlass.store.statements import sql


class Notes:
    """A double of `Posts` that notes what it is given, and answers what it is told to, when it is told to."""

    def __init__(self, status: int | None = 204) -> None:
        self.status = status
        self.given: list[tuple[str, bytes, dict[str, str]]] = []
        self.callers: list[str] = []
        self.is_held = False
        self.go = asyncio.Event()

    async def post(self, url: str, body: bytes, headers: dict[str, str], *, caller: str = "") -> Sent:
        self.given.append((url, body, headers))
        self.callers.append(caller)
        if self.is_held:
            await self.go.wait()
        return Sent(self.status, None if self.status else "timeout", None, 0.0)

    def ids(self) -> Counter[str]:
        return Counter(headers["webhook-id"] for _, _, headers in self.given)


async def dump(hooks: Hooks) -> str:
    """Everything that is stored, as text."""
    async with hooks.rig.db.connection() as connection:
        tables = ("webhooks", "jobs", "events", "audit_notes", "audit")
        rows = [
            str(row[0])
            for table in tables
            for row in await connection.fetch(f"SELECT to_jsonb(t)::text FROM windlass.{table} t")
        ]
    return "\n".join(rows)


async def notes_of(hooks: Hooks) -> list[tuple[str, str, dict[str, object]]]:
    async with hooks.rig.db.connection() as connection:
        rows = await connection.fetch("SELECT event, caller, payload FROM windlass.audit_notes ORDER BY id")
    return [(row["event"], row["caller"], json.loads(row["payload"])) for row in rows]


async def test_the_end_of_a_job_is_told_and_signed(hooks: Hooks, receiver: Receiver) -> None:
    job = await hooks.ended(receiver.url("ok"), labels={"corpus": "fotos"}, caller="ada")
    assert (await hooks.sender(public_url="https://windlass.example/").run_once()).count == 1
    view = await hooks.view(job)
    assert (view.state, view.attempt, view.answer, view.error) == ("DELIVERED", 1, 204, None)
    assert view.ended_at == hooks.rig.clock.now()
    [seen] = receiver.seen()
    now = int(hooks.rig.clock.now().timestamp())
    assert verify([parse_secret(WEBHOOK_SECRET)], seen["headers"], seen["body"].encode(), now)
    assert seen["headers"]["webhook-id"] == f"{job}_COMPLETED"
    assert seen["headers"]["user-agent"].startswith("Windlass/")
    assert json.loads(seen["body"]) == {
        "type": "job.completed",
        "timestamp": "2030-01-01T00:00:00.000Z",
        "data": {
            "job_id": str(job),
            "recipe": "r",
            "status": "COMPLETED",
            "labels": {"corpus": "fotos"},
            "error": None,
            "failed_step": None,
            "created_at": "2030-01-01T00:00:00.000Z",
            "finished_at": "2030-01-01T00:00:00.000Z",
            "links": {
                "self": f"https://windlass.example/jobs/{job}",
                "output": f"https://windlass.example/jobs/{job}/output",
                "events": f"https://windlass.example/jobs/{job}/events",
            },
        },
    }
    assert (await hooks.sender().run_once()).count == 0


async def test_a_failed_job_says_why(hooks: Hooks) -> None:
    posts = Notes()
    await hooks.ended("https://hook.example/", FAILED)
    await hooks.sender(posts).run_once()
    [(_, body, headers)] = posts.given
    told = json.loads(body)
    assert (told["type"], told["data"]["status"], told["data"]["error"]["code"]) == ("job.failed", "FAILED", "broke")
    assert headers["webhook-id"].endswith("_FAILED")


async def test_the_schedule_is_gone_through_and_then_the_webhook_is_dead(hooks: Hooks) -> None:
    posts = Notes(500)
    job = await hooks.ended("https://hook.example/", caller="ada")
    sender = hooks.sender(posts)
    for number, wait_s in enumerate(RETRY_AFTER_S, 1):
        assert (await sender.run_once()).count == 1
        view = await hooks.view(job)
        assert (view.state, view.attempt, view.failures, view.answer, view.error) == (
            "DUE", number, number, 500, "http_500",
        )  # fmt: skip
        hooks.rig.clock.advance(wait_s * 0.89)
        assert (await sender.run_once()).count == 0
        hooks.rig.clock.advance(wait_s * 0.22)
    assert (await sender.run_once()).count == 1
    view = await hooks.view(job)
    assert (view.state, view.attempt, view.ended_at) == ("DEAD", 9, hooks.rig.clock.now())
    hooks.rig.clock.advance("30d")
    assert (await sender.run_once()).count == 0
    assert posts.ids() == {f"{job}_COMPLETED": 9}
    assert len({body for _, body, _ in posts.given}) == 1
    assert len({headers["webhook-timestamp"] for _, _, headers in posts.given}) == 9
    assert await notes_of(hooks) == [("webhook_dead", "ada", {"job_id": str(job), "error": "http_500", "tries": 9})]


async def test_gone_is_dead_at_once(hooks: Hooks, receiver: Receiver) -> None:
    job = await hooks.ended(receiver.url("status/410"))
    await hooks.sender().run_once()
    view = await hooks.view(job)
    assert (view.state, view.attempt, view.error) == ("DEAD", 1, "http_410")


async def test_a_url_that_has_become_private_is_not_called(hooks: Hooks, receiver: Receiver) -> None:
    from windlass.outbound.send import Sender

    job = await hooks.ended(receiver.url("ok"))
    await hooks.sender(Sender()).run_once()
    view = await hooks.view(job)
    assert (view.state, view.answer, view.error) == ("DUE", None, "bad_url")
    assert receiver.seen() == []


async def test_a_dead_one_is_sent_again_with_the_whole_schedule_ahead(hooks: Hooks) -> None:
    posts = Notes(410)
    job = await hooks.ended("https://hook.example/")
    sender = hooks.sender(posts)
    await sender.run_once()
    posts.status = 500
    await hooks.rig.db.run(lambda connection: redeliver(connection, job))
    assert (await hooks.view(job)).ended_at is None
    await sender.run_once()
    view = await hooks.view(job)
    assert (view.state, view.attempt, view.failures) == ("DUE", 2, 1)
    posts.status = 200
    await hooks.rig.db.run(lambda connection: redeliver(connection, job))
    await sender.run_once()
    assert await hooks.state(job) == "DELIVERED"
    await hooks.rig.db.run(lambda connection: redeliver(connection, job))
    await sender.run_once()
    assert posts.ids() == {f"{job}_COMPLETED": 4}
    assert await hooks.state(job) == "DELIVERED"


async def test_what_has_not_ended_is_not_sent_again(hooks: Hooks) -> None:
    job = await hooks.submit("https://hook.example/")
    with pytest.raises(WrongState):
        await hooks.rig.db.run(lambda connection: redeliver(connection, job))
    with pytest.raises(NotFound):
        await webhook_of(hooks.rig.db, UUID(int=1))


async def test_of_many_senders_one_sends_each(hooks: Hooks) -> None:
    posts = Notes()
    jobs = await hooks.many([f"https://hook{n % 9}.example/" for n in range(60)])
    senders = [hooks.sender(posts) for _ in range(4)]
    while sum(done.count for done in await asyncio.gather(*(sender.run_once() for sender in senders))):
        pass
    assert posts.ids() == {f"{job}_COMPLETED": 1 for job in jobs}
    assert {(await hooks.view(job)).attempt for job in jobs} == {1}


async def test_what_another_sender_is_about_to_take_is_neither_waited_for_nor_taken(hooks: Hooks) -> None:
    job = await hooks.ended("https://hook.example/")
    posts = Notes()
    sender = hooks.sender(posts)
    async with hooks.rig.db.connection() as connection, connection.transaction():
        assert len(await connection.fetch(sql("webhook_claim"), 50, LEASE_S, [], [], 4, [], [], 20)) == 1
        async with asyncio.timeout(60):
            assert (await sender.run_once()).count == 0
    assert (await sender.run_once()).count == 0
    assert ((await hooks.view(job)).attempt, posts.given) == (1, [])


async def test_a_lost_try_is_made_again_after_its_lease_and_counts_as_no_failure(hooks: Hooks) -> None:
    job = await hooks.ended("https://hook.example/")
    dying, other = Notes(), Notes()
    dying.is_held = True
    lost = asyncio.create_task(hooks.sender(dying).run_once())
    while not dying.given:
        await asyncio.sleep(0)
    hooks.rig.clock.advance(LEASE_S - 1)
    assert (await hooks.sender(other).run_once()).count == 0
    hooks.rig.clock.advance(2)
    other.status = 500
    assert (await hooks.sender(other).run_once()).count == 1
    view = await hooks.view(job)
    assert (view.attempt, view.failures) == (2, 1)
    # The first webhook sender was not dead after all: what it has to say is late, and changes nothing.
    dying.go.set()
    await lost
    assert await hooks.view(job) == view
    assert dying.ids() == other.ids() == {f"{job}_COMPLETED": 1}


async def test_a_late_report_does_not_undo_a_redelivery(hooks: Hooks) -> None:
    job = await hooks.ended("https://hook.example/")
    slow = Notes(410)
    slow.is_held = True
    first = asyncio.create_task(hooks.sender(slow).run_once())
    while not slow.given:
        await asyncio.sleep(0)
    await hooks.rig.db.run(lambda connection: redeliver(connection, job))
    await hooks.sender(Notes()).run_once()
    slow.go.set()
    await first
    assert await hooks.state(job) == "DELIVERED"
    assert await notes_of(hooks) == []


async def test_a_sender_that_was_stopped_in_its_tracks_does_not_begin_what_is_no_longer_its_own(
    hooks: Hooks, caplog: pytest.LogCaptureFixture
) -> None:
    posts = Notes()
    job = await hooks.ended("https://hook.example/")
    sender = hooks.sender(posts)
    taken = await sender._take()
    hooks.seconds += LEASE_S
    await asyncio.gather(*taken)
    assert posts.given == []
    assert "too late" in caplog.text
    hooks.rig.clock.advance(LEASE_S)
    await sender.run_once()
    assert await hooks.state(job) == "DELIVERED"


async def test_a_host_that_hangs_takes_its_own_places_only(hooks: Hooks) -> None:
    slow = ["https://slow.example/hook"] * 30
    jobs = await hooks.many([*slow, *(f"https://quick{n}.example/" for n in range(6))])
    posts = Notes()
    posts.is_held = True
    sender = hooks.sender(posts, batch=20)
    taken = await sender._take()
    assert len(taken) == 10
    while len(posts.given) < 10:
        await asyncio.sleep(0)
    hosts = Counter(url for url, _, _ in posts.given)
    assert hosts["https://slow.example/hook"] == 4
    assert len(hosts) == 7
    assert await sender._take() == []
    posts.go.set()
    await asyncio.gather(*taken)
    while (await sender.run_once()).count:
        pass
    assert {await hooks.state(job) for job in jobs} == {"DELIVERED"}


async def test_a_caller_with_silent_hosts_takes_its_own_places_only(hooks: Hooks) -> None:
    """Another caller's webhook goes out although a thousand earlier ones are due, and none of those is answered."""
    silent = [f"https://silent{number}.example/" for number in range(600)]
    await hooks.many(silent, caller="crowd")
    (job,) = await hooks.many(["https://good.example/"], caller="ada")
    posts = Notes()
    posts.is_held = True
    sender = hooks.sender(posts)
    taken = [*await sender._take(), *await sender._take()]
    while len(posts.given) < len(taken):
        await asyncio.sleep(0)
    callers = Counter(posts.callers)
    assert callers == {"crowd": 20, "ada": 1}
    assert await sender._take() == []
    posts.go.set()
    await asyncio.gather(*taken)
    assert await hooks.state(job) == "DELIVERED"


async def test_callers_take_turns(hooks: Hooks) -> None:
    for caller in ("crowd", "ada", "bob"):
        await hooks.many([f"https://{caller}{number}.example/" for number in range(6)], caller=caller)
    posts = Notes()
    sender = hooks.sender(posts, batch=6)
    await sender.run_once()
    assert Counter(posts.callers) == {"crowd": 2, "ada": 2, "bob": 2}


async def test_rows_are_found_by_what_is_due(hooks: Hooks) -> None:
    async with hooks.rig.db.connection() as connection:
        await connection.execute(
            "PREPARE claim (int, float8, text[], int[], int, text[], int[], int) AS " + sql("webhook_claim")
        )
        rows = await connection.fetch("EXPLAIN EXECUTE claim (50, 60, '{a}', '{4}', 4, '{b}', '{20}', 20)")
        await connection.execute("DEALLOCATE claim")
    text = "\n".join(row[0] for row in rows)
    assert "webhooks_due" in text
    assert "Seq Scan on webhooks" not in text


async def test_no_secret_is_stored_in_the_open_nor_logged_nor_told(
    hooks: Hooks, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    good = await hooks.ended(receiver.url("ok"))
    await hooks.sender().run_once()
    bad = await hooks.ended(receiver.url("status/410"))
    await hooks.sender().run_once()
    plain = parse_secret(WEBHOOK_SECRET)
    spellings = [WEBHOOK_SECRET, WEBHOOK_SECRET.removeprefix("whsec_"), plain.decode(), plain.hex()]
    everything = await dump(hooks) + caplog.text + str(await hooks.view(good)) + str(receiver.seen())
    assert str(good) in everything
    assert str(bad) in everything
    assert [text for text in spellings if text in everything] == []


async def test_a_secret_of_another_installation_is_a_failure_that_can_be_mended(hooks: Hooks) -> None:
    posts = Notes()
    job = await hooks.ended("https://hook.example/")
    await hooks.sender(posts, secret=Secret.of(["another-secret-of-32-characters-at-least"])).run_once()
    view = await hooks.view(job)
    assert (view.state, view.error, posts.given) == ("DUE", "sealed", [])
    hooks.rig.clock.advance(10)
    await hooks.sender(posts).run_once()
    assert await hooks.state(job) == "DELIVERED"


async def test_a_sender_wakes_by_the_bell_and_ends_when_told(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LOOK_EVERY_S", 3600.0)
    monkeypatch.setattr(room, "STOP_WITHIN_S", 0.01)
    posts, told = Notes(), []
    sender = hooks.sender(posts, on_result=told.append)
    await sender.start()
    try:
        job = await hooks.ended("https://hook.example/")
        while await hooks.state(job) != "DELIVERED":
            await asyncio.sleep(0.005)
        posts.is_held = True
        held = await hooks.ended("https://hook.example/")
        while len(posts.given) < 2:
            await asyncio.sleep(0.005)
    finally:
        await sender.stop()
    assert told == ["DELIVERED"]
    # What was under way is left to its lease.
    view = await hooks.view(held)
    assert (view.state, view.attempt, view.failures) == ("DUE", 1, 0)


async def test_a_sender_goes_on_when_the_database_was_away(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PAUSE_S", 0.01)
    posts = Notes()
    sender = hooks.sender(posts)
    await sender.start()
    try:
        async with hooks.rig.db.connection() as connection:
            await connection.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        job = await hooks.ended("https://hook.example/")
        async with asyncio.timeout(60):
            while await hooks.state(job) != "DELIVERED":
                await asyncio.sleep(0.01)
    finally:
        await sender.stop()


async def test_a_fault_of_ours_leaves_the_row_to_its_lease(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Notes):
        async def post(self, url: str, body: bytes, headers: dict[str, str], *, caller: str = "") -> Sent:
            raise RuntimeError("planted")

    job = await hooks.ended("https://hook.example/?token=hidden")
    await hooks.sender(Faulty()).run_once()
    view = await hooks.view(job)
    assert (view.state, view.failures) == ("DUE", 0)
    assert "planted" in caplog.text
    assert "hidden" not in caplog.text


async def test_a_pruned_jobs_webhook_is_not_sent(hooks: Hooks) -> None:
    await hooks.ended("https://hook.example/")

    async def forget(connection: asyncpg.Connection) -> None:
        await connection.execute("DELETE FROM windlass.events; DELETE FROM windlass.steps; DELETE FROM windlass.jobs")

    await hooks.rig.db.run(forget)
    posts = Notes()
    assert (await hooks.sender(posts).run_once()).count == 0
    assert posts.given == []


async def test_a_webhook_tells_that_a_job_is_quarantined_and_not_what_its_steps_said(hooks: Hooks) -> None:
    mark = "xyzzy-4711"
    job = await hooks.ended("http://127.0.0.1:9/", Failure(Fault(mark, mark, detail=mark), is_retryable=False))
    async with hooks.rig.db.connection() as connection:
        await connection.execute("UPDATE windlass.jobs SET state = 'OUTPUT_QUARANTINED' WHERE id = $1", job)
    notes = Notes()
    await hooks.sender(notes).run_once()
    [(_, body, _)] = notes.given
    assert mark not in body.decode()
    assert json.loads(body)["data"]["error"]["code"] == "output_quarantined"
