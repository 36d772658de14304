from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.engine.rig import undisturbed
from windlass.access import audit as module
from windlass.access.audit import Audit, records, verify_chain, write_note
from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.core.caller import CallerContext, Scope
from windlass.core.errors import DatabaseUnavailable
from windlass.engine.loops.auditor import Auditor
from windlass.pure.audit import GENESIS, AuditEvent, Record, chain_hash
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.testing.clock import VirtualClock

ADA = CallerContext("ada", "user", "pro", frozenset({Scope.ADMIN}), {}, "k1")
MAKE_ROOM = "UPDATE windlass.audit SET no = -no WHERE no > 4; UPDATE windlass.audit SET no = 1 - no WHERE no < 0;"
SLIP_IN = (
    "INSERT INTO windlass.audit SELECT {no}, at, event, 'eve', caller_type, tier, job_id, request_id, payload, hash"
    " FROM windlass.audit WHERE no = {before}"
)
JOB = UUID("0199aaaa-0000-7000-8000-000000000001")


@pytest.fixture
async def audit(timed_db: Database) -> AsyncIterator[Audit]:
    made = Audit(timed_db)
    yield made
    await made.stop()


async def chained(db: Database, **wanted: Any) -> list[Record]:
    await undisturbed(db)
    while (await Auditor(db).run_once()).count:
        pass
    return [record for record, _ in await records(db, **wanted)]


async def change(db: Database, statement: str, *values: Any) -> None:
    await db.run(lambda connection: connection.execute(statement, *values))


async def notes(audit: Audit, count: int) -> None:
    for n in range(count):
        await audit.note(None, AuditEvent.JOB_CONTROLLED, ADA, n=n)


async def test_a_note_becomes_a_record(audit: Audit, timed_db: Database, clock: VirtualClock) -> None:
    await audit.note(None, AuditEvent.JOB_DELETED, ADA, job_id=JOB, request_id="r-1", why="old")
    [record] = await chained(timed_db)
    assert record == Record(1, clock.now(), "job_deleted", "ada", "user", "pro", JOB, "r-1", '{"key":"k1","why":"old"}')
    assert await timed_db.run(lambda c: c.fetchval("SELECT count(*) FROM windlass.audit_notes")) == 0


async def test_a_note_shares_the_fate_of_its_transaction(audit: Audit, timed_db: Database) -> None:
    async def operation(connection: Any, is_kept: bool) -> None:
        async with connection.transaction():
            await audit.note(connection, AuditEvent.JOB_CONTROLLED, ADA, is_kept=is_kept)
            await write_note(connection, AuditEvent.KEY_CREATED, "root", is_kept=is_kept)
            if not is_kept:
                raise RuntimeError("undone")

    await timed_db.run(lambda connection: operation(connection, True))
    with pytest.raises(RuntimeError):
        await timed_db.run(lambda connection: operation(connection, False))
    found = await chained(timed_db)
    assert [record.event for record in found] == ["job_controlled", "key_created"]


async def test_a_flood_of_refusals_becomes_one_note_a_kind(audit: Audit, timed_db: Database) -> None:
    for n in range(1_000):
        audit.refused(AuditEvent.RATE_LIMIT_HIT, "ada", "rate_limited", f"r-{n}")
        audit.refused(AuditEvent.AUTH_REJECTED, "unreadable", "bad_credential", f"s-{n}")
    audit.refused(AuditEvent.RATE_LIMIT_HIT, "bob", "busy", None)
    assert await audit.flush() == 3
    assert await audit.flush() == 0
    found = {(r.event, r.caller): (r.request_id, msgspec.json.decode(r.payload)) for r in await chained(timed_db)}
    assert found == {
        ("auth_rejected", None): ("s-0", {"reason": "bad_credential", "count": 1_000, "key": "unreadable"}),
        ("rate_limit_hit", "ada"): ("r-0", {"reason": "rate_limited", "count": 1_000}),
        ("rate_limit_hit", "bob"): (None, {"reason": "busy", "count": 1}),
    }


async def test_refusals_of_ever_new_keys_take_a_bounded_space(
    audit: Audit, timed_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KINDS_MAX", 10)
    for n in range(100):
        audit.refused(AuditEvent.AUTH_REJECTED, f"k{n}", "bad_credential", None)
    assert await audit.flush() == 11
    counts = [msgspec.json.decode(record.payload)["count"] for record in await chained(timed_db)]
    assert sum(counts) == 100


async def test_refusals_are_written_once_a_second_and_at_the_end(
    timed_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NOTE_EVERY_S", 0.01)
    audit = Audit(timed_db)
    await audit.start()
    audit.refused(AuditEvent.RATE_LIMIT_HIT, "ada", "rate_limited", None)
    while not await timed_db.run(lambda c: c.fetchval("SELECT count(*) FROM windlass.audit_notes")):
        await asyncio.sleep(0.01)
    monkeypatch.setattr(module, "NOTE_EVERY_S", 3600.0)
    await asyncio.sleep(0.02)
    audit.refused(AuditEvent.RATE_LIMIT_HIT, "bob", "rate_limited", None)
    await audit.stop()
    assert [record.caller for record in await chained(timed_db)] == ["ada", "bob"]


async def test_the_end_loses_no_refusal_that_is_being_written(
    timed_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NOTE_EVERY_S", 0.0)
    audit, real, is_writing, may_write = Audit(timed_db), timed_db.run, asyncio.Event(), asyncio.Event()

    async def slow(operation: Any) -> Any:
        is_writing.set()
        await may_write.wait()
        return await real(operation)

    timed_db.run = slow  # type: ignore[method-assign]
    await audit.start()
    audit.refused(AuditEvent.RATE_LIMIT_HIT, "ada", "rate_limited", None)
    await is_writing.wait()
    stopping = asyncio.create_task(audit.stop())
    await asyncio.sleep(0)
    may_write.set()
    await stopping
    timed_db.run = real  # type: ignore[method-assign]
    assert [record.caller for record in await chained(timed_db)] == ["ada"]


async def test_a_database_that_is_away_ends_no_audit(audit: Audit, timed_db: Database) -> None:
    async def away(_: Any) -> Any:
        raise DatabaseUnavailable("away")

    audit.refused(AuditEvent.RATE_LIMIT_HIT, "ada", "rate_limited", None)
    real, timed_db.run = timed_db.run, away  # type: ignore[method-assign]
    assert await audit.flush() == 0
    timed_db.run = real  # type: ignore[method-assign]
    assert await chained(timed_db) == []


async def test_records_can_be_narrowed(audit: Audit, timed_db: Database, clock: VirtualClock) -> None:
    for n in range(12):
        ctx = CallerContext("ada" if n % 2 else "bob")
        event = AuditEvent.JOB_DELETED if n % 3 else AuditEvent.JOB_CONTROLLED
        await audit.note(None, event, ctx, job_id=JOB if n % 4 == 0 else None)
        clock.advance(1)
    everything = await chained(timed_db)
    assert [record.no for record in everything] == list(range(1, 13))

    async def numbers(**wanted: Any) -> list[int]:
        return [record.no for record, _ in await records(timed_db, **wanted)]

    fifth = everything[4].at
    wishes: list[tuple[dict[str, Any], Any]] = [
        ({"caller": "ada"}, lambda r: r.caller == "ada"),
        ({"event": "job_deleted"}, lambda r: r.event == "job_deleted"),
        ({"job_id": JOB}, lambda r: r.job_id == JOB),
        ({"since": fifth}, lambda r: r.at >= fifth),
        ({"until": fifth}, lambda r: r.at < fifth),
        ({"after_no": 7}, lambda r: r.no > 7),
        ({"caller": "bob", "event": "job_deleted", "job_id": JOB}, lambda r: r.no in (5, 9)),
        ({"caller": "ada", "event": "job_deleted", "after_no": 3}, lambda r: r.no in (6, 8, 12)),
        ({"caller": "eve"}, lambda r: False),
    ]
    for wanted, fits in wishes:
        assert await numbers(**wanted) == [r.no for r in everything if fits(r)], wanted
        if "after_no" not in wanted:
            backwards = [r.no for r in reversed(everything) if fits(r)]
            assert await numbers(**wanted, before_no=100) == backwards, wanted
            assert await numbers(**wanted, before_no=6, limit=2) == [no for no in backwards if no < 6][:2], wanted
    assert await numbers(limit=3, after_no=2) == [3, 4, 5]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("audit_page", "audit_pkey"),
        ("audit_page_caller", "audit_caller"),
        ("audit_page_event", "audit_event"),
        ("audit_page_job", "audit_job"),
        ("audit_newest", "audit_pkey"),
        ("audit_newest_caller", "audit_caller"),
        ("audit_newest_event", "audit_event"),
        ("audit_newest_job", "audit_job"),
    ],
)
async def test_every_list_goes_by_its_index(db: Database, statement: str, index: str) -> None:
    async with db.connection() as connection:
        await connection.execute(
            "INSERT INTO windlass.audit SELECT n, windlass.clock(), 'e' || n % 7, 'c' || n % 50, NULL, NULL, NULL,"
            " NULL, '{}', '' FROM generate_series(1, 20000) AS n; ANALYZE windlass.audit"
        )
        await connection.execute(f"PREPARE it (bigint, int, text, text, uuid) AS {sql(statement)}")
        plan = await connection.fetch("EXPLAIN EXECUTE it (5, 10, NULL, NULL, NULL, NULL, NULL)")
        await connection.execute("DEALLOCATE it")
    text = "\n".join(row[0] for row in plan)
    assert f"using {index}" in text, text
    assert "Seq Scan" not in text
    assert ("no <" if "newest" in statement else "no >") in text


async def test_a_whole_chain_verifies_in_batches_and_in_parts(audit: Audit, timed_db: Database) -> None:
    await notes(audit, 23)
    await chained(timed_db)
    stored = await records(timed_db)
    whole = await verify_chain(timed_db, batch=5)
    assert (whole.records, whole.head, whole.flaw, whole.next) == (23, stored[-1][1], None, None)
    assert whole.is_whole
    first = await verify_chain(timed_db, batch=4, limit=10)
    assert (first.records, first.head, first.next) == (10, stored[9][1], 10)
    second = await verify_chain(timed_db, batch=4, limit=10, after_no=10)
    assert (second.records, second.next) == (10, 20)
    last = await verify_chain(timed_db, limit=10, after_no=20)
    assert (last.records, last.head, last.next, last.is_whole) == (3, stored[-1][1], None, True)


async def test_a_head_is_found_whichever_part_it_is_in(audit: Audit, timed_db: Database) -> None:
    await notes(audit, 9)
    await chained(timed_db)
    for _, head in await records(timed_db):
        after_no: int | None = 0
        while after_no is not None:
            part = await verify_chain(timed_db, head=head, limit=4, after_no=after_no)
            assert part.is_whole
            after_no = part.next
    verdicts = [await verify_chain(timed_db, head=b"x" * 32, limit=4, after_no=after_no) for after_no in (0, 4, 8)]
    assert [verdict.is_whole for verdict in verdicts] == [True, True, False]


async def test_no_chain_is_whole(timed_db: Database) -> None:
    assert await verify_chain(timed_db) == module.ChainVerdict(0, GENESIS, None)
    assert (await verify_chain(timed_db, after_no=3)).flaw is not None
    assert (await verify_chain(timed_db, head=b"x" * 32)).flaw is not None


@pytest.mark.parametrize(
    ("statement", "no"),
    [
        ("UPDATE windlass.audit SET caller = 'eve' WHERE no = 4", 4),
        ("UPDATE windlass.audit SET at = at + interval '1 microsecond' WHERE no = 9", 9),
        ("UPDATE windlass.audit SET payload = '{\"n\": 3}' WHERE no = 4", 4),
        ("UPDATE windlass.audit SET hash = sha256(hash) WHERE no = 4", 4),
        ("UPDATE windlass.audit SET job_id = gen_random_uuid() WHERE no = 1", 1),
        ("DELETE FROM windlass.audit WHERE no = 1", 1),
        ("DELETE FROM windlass.audit WHERE no = 4", 4),
        ("DELETE FROM windlass.audit WHERE no = 4; UPDATE windlass.audit SET no = no - 1 WHERE no > 4", 4),
        (SLIP_IN.format(no=10, before=9), 10),
        (MAKE_ROOM + SLIP_IN.format(no=5, before=4), 5),
    ],
)
async def test_whatever_is_done_to_the_chain_is_found(
    audit: Audit, timed_db: Database, statement: str, no: int
) -> None:
    await notes(audit, 9)
    await chained(timed_db)
    assert (await verify_chain(timed_db)).is_whole
    await change(timed_db, statement)
    for batch in (2, 5_000):
        verdict = await verify_chain(timed_db, batch=batch)
        assert verdict.flaw is not None
        assert verdict.flaw.no == no
        assert not verdict.is_whole


async def test_records_that_were_cut_off_are_missed_when_the_head_was_noted(audit: Audit, timed_db: Database) -> None:
    await notes(audit, 6)
    await chained(timed_db)
    head = (await verify_chain(timed_db)).head
    assert (await verify_chain(timed_db, head=head)).is_whole
    await notes(audit, 2)
    await chained(timed_db)
    assert (await verify_chain(timed_db, head=head)).is_whole
    await change(timed_db, "DELETE FROM windlass.audit WHERE no > 5")
    assert (await verify_chain(timed_db)).is_whole
    verdict = await verify_chain(timed_db, head=head)
    assert verdict.flaw is not None
    assert "noted" in verdict.flaw.reason
    await notes(audit, 3)
    await chained(timed_db)
    assert not (await verify_chain(timed_db, head=head)).is_whole


async def test_a_chain_that_was_written_anew_is_found_by_the_head(audit: Audit, timed_db: Database) -> None:
    await notes(audit, 4)
    await chained(timed_db)
    head = (await verify_chain(timed_db)).head
    before = GENESIS
    await change(timed_db, "UPDATE windlass.audit SET caller = 'eve'")
    for record, _ in await records(timed_db):
        before = chain_hash(before, record)
        await change(timed_db, "UPDATE windlass.audit SET hash = $2 WHERE no = $1", record.no, before)
    assert (await verify_chain(timed_db)).is_whole
    assert not (await verify_chain(timed_db, head=head)).is_whole


async def test_keys_leave_their_ids_in_the_chain_and_nothing_else(timed_db: Database) -> None:
    keys = Keys(timed_db, Secret.of(["one-secret-of-thirty-two-letters"]), entropy=os.urandom)
    made = await keys.create("ada", name="laptop", by="root", request_id="r-9")
    await keys.revoke(made.view.id, by="root")
    created, revoked = await chained(timed_db)
    assert (created.event, created.caller, created.request_id) == ("key_created", "root", "r-9")
    assert msgspec.json.decode(created.payload) == {
        "key": made.view.id, "name": "laptop", "of": "ada", "scopes": ["jobs:read", "jobs:write"]
    }  # fmt: skip
    assert msgspec.json.decode(revoked.payload) == {"key": made.view.id, "of": "ada"}
    assert made.text not in repr([created, revoked])
