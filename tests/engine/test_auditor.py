from __future__ import annotations

import asyncio
import logging
import random
import sys
from asyncio.subprocess import Process
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.access.audit import Audit, records, verify_chain
from windlass.app.entropy import Ids
from windlass.core.caller import CallerContext
from windlass.core.errors import WindlassError
from windlass.core.outcome import Failure, Fault
from windlass.engine import control
from windlass.engine.loops import auditor as module
from windlass.engine.loops.auditor import Auditor
from windlass.pure.audit import AuditEvent, Record
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock

ROOT = Path(__file__).parents[2]
ADA = CallerContext("ada")
ONE = plan(task("a"))


async def drain(db: Database, **given: Any) -> int:
    count = 0
    await undisturbed(db)
    while (done := await Auditor(db, **given).run_once()).count or done.is_more:
        count += done.count
    return count


async def chain(db: Database, **wanted: Any) -> list[Record]:
    found: list[Record] = []
    while page := await records(db, after_no=found[-1].no if found else 0, limit=500, **wanted):
        found += [record for record, _ in page]
    return found


async def tallies(db: Database) -> dict[tuple[str, str], tuple[int, float]]:
    rows = await db.run(lambda c: c.fetch("SELECT recipe, state, count, seconds FROM windlass.tallies"))
    return {(row["recipe"], row["state"]): (row["count"], row["seconds"]) for row in rows}


@pytest.mark.covers("JN-15", "JN-62")
async def test_a_job_is_recorded_when_it_comes_and_when_it_ends(rig: Rig) -> None:
    job = await rig.submit(ONE, caller="ada", correlation_id="r-1")
    came = rig.clock.now()
    rig.clock.advance(5)
    await rig.run_one()
    assert await drain(rig.db) == 2
    assert await chain(rig.db) == [
        Record(1, came, "job_submitted", "ada", "unknown", None, job, "r-1", '{"recipe":"r"}'),
        Record(2, rig.clock.now(), "job_completed", "ada", "unknown", None, job, "r-1", '{"recipe":"r"}'),
    ]
    assert (await verify_chain(rig.db)).is_whole
    assert await tallies(rig.db) == {("r", "QUEUED"): (1, 0.0), ("r", "COMPLETED"): (1, 5.0)}


@pytest.mark.covers("JN-62")
async def test_endings_have_names_of_their_own(rig: Rig) -> None:
    secret = "what the provider said, with a key in it"
    failed = await rig.submit(ONE, correlation_id="f")
    await rig.run_one(Failure(Fault("provider", secret), is_retryable=False))
    cancelled = await rig.submit(ONE, correlation_id="c")
    await control.cancel(rig.db, cancelled, source="ada", request_id="r-9")
    late = await rig.submit(ONE, correlation_id="t", deadline_s=5)
    old = await rig.submit(ONE, correlation_id="e", ttl_s=7)
    rig.clock.advance(60)
    await rig.loops.run_until_idle()
    await drain(rig.db)
    found = {record.job_id: record for record in await chain(rig.db) if record.event != "job_submitted"}
    assert [found[job].event for job in (failed, cancelled, late, old)] == [
        "job_failed", "job_cancelled", "job_failed", "job_failed"
    ]  # fmt: skip
    assert msgspec.json.decode(found[failed].payload) == {
        "recipe": "r", "state": "FAILED", "code": "provider", "step": "a"
    }  # fmt: skip
    assert [msgspec.json.decode(found[job].payload)["state"] for job in (late, old)] == ["TIMEOUT", "EXPIRED"]
    assert found[cancelled].request_id == "r-9"
    assert secret not in repr(await chain(rig.db))
    assert {state: count for (_, state), (count, _) in (await tallies(rig.db)).items()} == {
        "QUEUED": 4, "FAILED": 1, "CANCELLED": 1, "TIMEOUT": 1, "EXPIRED": 1
    }  # fmt: skip


async def test_a_job_that_nobody_follows_is_not_recorded(rig: Rig) -> None:
    await rig.submit(ONE)
    await rig.run_one()
    assert await drain(rig.db) == 0
    assert await tallies(rig.db) == {}


async def test_without_jobs_only_notes_are_recorded(rig: Rig) -> None:
    await rig.submit(ONE, correlation_id="r")
    await Audit(rig.db).note(None, AuditEvent.JOB_CONTROLLED, ADA)
    assert await drain(rig.db, with_jobs=False) == 1
    assert await drain(rig.db) == 1


async def test_batches_are_bounded_and_join_into_one_chain(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_MAX", 7)
    audit = Audit(rig.db)
    jobs = [await rig.submit(ONE, correlation_id=str(n)) for n in range(20)]
    for n in range(20):
        await audit.note(None, AuditEvent.JOB_CONTROLLED, ADA, n=n)
    await undisturbed(rig.db)
    first = await Auditor(rig.db).run_once()
    assert first.is_more
    assert first.count <= 14
    await rig.run_out()
    await drain(rig.db)
    found = await chain(rig.db)
    assert [record.no for record in found] == list(range(1, 61))
    assert Counter(record.event for record in found) == {
        "job_submitted": 20, "job_completed": 20, "job_controlled": 20
    }  # fmt: skip
    assert {record.job_id for record in found if record.event == "job_completed"} == set(jobs)
    noted = [record for record in found if record.event == "job_controlled"]
    assert [msgspec.json.decode(record.payload)["n"] for record in noted] == list(range(20))
    assert (await verify_chain(rig.db, batch=7)).records == 60


async def test_a_position_that_was_lost_records_nothing_twice(rig: Rig) -> None:
    for n in range(3):
        await rig.submit(ONE, correlation_id=str(n))
    await rig.run_one()
    await drain(rig.db)
    before, counted = await chain(rig.db), await tallies(rig.db)
    await rig.db.run(lambda c: c.execute("DELETE FROM windlass.cursors"))
    await rig.run_one()
    assert await drain(rig.db) == 1
    assert (await chain(rig.db))[:-1] == before
    assert (await tallies(rig.db))["r", "COMPLETED"][0] == counted["r", "COMPLETED"][0] + 1
    assert (await tallies(rig.db))["r", "QUEUED"] == counted["r", "QUEUED"]


async def test_one_auditor_at_a_time(rig: Rig, db: Database) -> None:
    await Audit(rig.db).note(None, AuditEvent.JOB_CONTROLLED, ADA)
    async with db.connection() as other:
        transaction = other.transaction()
        await transaction.start()
        assert await other.fetchval(module.sql("audit_lock"))
        assert (await Auditor(rig.db).run_once()).count == 0
        await transaction.rollback()
    assert (await Auditor(rig.db).run_once()).count == 1


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        ('{"job_id": "no uuid", "x": 1}', '{"job_id":"no uuid","x":1}'),
        ('{"job_id": 7, "tier": 3, "request_id": null}', '{"job_id":7,"request_id":null,"tier":3}'),
        ('{"tier": "a\\u0000b"}', '{"tier":"a\\u0000b"}'),
        ("[1]", '{"value":[1]}'),
        ('"text"', '{"value":"text"}'),
    ],
)
async def test_a_note_of_any_shape_becomes_a_record(rig: Rig, payload: str, kept: str) -> None:
    """A note without a record would stop the chain for ever."""
    await rig.db.run(
        lambda c: c.execute(
            "INSERT INTO windlass.audit_notes (at, event, payload) VALUES (windlass.clock(), 'odd', $1)", payload
        )
    )
    assert await drain(rig.db) == 1
    [record] = await chain(rig.db)
    assert (record.payload, record.job_id, record.tier) == (kept, None, None)
    assert (await verify_chain(rig.db)).is_whole


async def test_the_head_is_told_to_the_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "windlass.audit")
    await Audit(rig.db).note(None, AuditEvent.JOB_CONTROLLED, ADA)
    await drain(rig.db)
    assert (await verify_chain(rig.db)).head.hex() in caplog.text


async def test_the_chain_holds_after_many_acted_and_audited_at_once(fresh_dsn: str, tmp_path: Path) -> None:
    databases = [await Database.open(fresh_dsn, max_size=3) for _ in range(3)]
    acts = Acts(databases[0], tmp_path)
    auditors = [Auditor(db) for db in databases]
    is_over = False

    async def keep_auditing(auditor: Auditor) -> None:
        while not is_over:
            await auditor.run_once()
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(keep_auditing(auditor)) for auditor in auditors]
    await acts.enlist()
    for _ in range(4):
        await acts.some(15)
    is_over = True
    await asyncio.gather(*tasks)
    await acts.check()
    for db in databases:
        await db.close()


@pytest.mark.covers("JN-74")
async def test_the_chain_holds_after_auditors_were_killed(fresh_dsn: str, tmp_path: Path) -> None:
    db = await Database.open(fresh_dsn, max_size=4)
    acts, rng = Acts(db, tmp_path), random.Random(5)
    await acts.enlist()
    lengths = []
    for _ in range(6):
        processes = [await _auditor_process(fresh_dsn) for _ in range(2)]
        acting = asyncio.create_task(acts.some(12))
        for process in processes:
            await asyncio.sleep(rng.random() * 0.15)
            process.kill()
            assert await process.wait() == -9
        await acting
        lengths.append((await verify_chain(db)).records)
        assert (await verify_chain(db)).is_whole
    assert lengths[-1] > lengths[0], "the killed ones never wrote anything: the test shows nothing"
    await acts.check()
    await db.close()


async def _auditor_process(dsn: str) -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.engine.audit_process", dsn, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
    return process


class Acts:
    """Callers who submit, cancel and note, and a worker; it knows what the audit must hold in the end."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.rig = Rig(db, VirtualClock(), Ids(), FolderArtifacts(folder))
        self.audit = Audit(db)
        self.jobs: set[UUID] = set()
        self.noted = 0

    async def enlist(self) -> None:
        await self.rig.enlist()
        await self.rig.submit(ONE)  # registers the plan; no follower reads this job

    async def some(self, count: int) -> None:
        await asyncio.gather(*(self._one(n) for n in range(count)), self._work())

    async def _one(self, n: int) -> None:
        job = await self.rig.submit(ONE, correlation_id=f"r-{n}")
        self.jobs.add(job)
        await self.audit.note(None, AuditEvent.JOB_CONTROLLED, ADA, n=self.noted)
        self.noted += 1
        if n % 5 == 0:
            await control.cancel(self.rig.db, job)
        if n % 4 == 0:
            self.audit.refused(AuditEvent.RATE_LIMIT_HIT, "ada", "rate_limited", None)
            await self.audit.flush()

    async def _work(self) -> None:
        for _ in range(10):
            for one in await self.rig.claim(3):
                try:
                    await self.rig.settle(one)
                except WindlassError:
                    continue
            await asyncio.sleep(0.01)

    async def check(self) -> None:
        await self.rig.run_out()
        await drain(self.rig.db)
        verdict = await verify_chain(self.rig.db, batch=50)
        assert verdict.flaw is None
        found = await chain(self.rig.db)
        assert [record.no for record in found] == list(range(1, verdict.records + 1))
        submitted = [record.job_id for record in found if record.event == "job_submitted"]
        ended = [record.job_id for record in found if record.event in ("job_completed", "job_cancelled")]
        assert sorted(submitted, key=str) == sorted(self.jobs, key=str)
        assert sorted(ended, key=str) == sorted(self.jobs, key=str)
        numbers = {(record.job_id, record.event): record.no for record in found if record.job_id}
        for job in self.jobs:
            assert numbers[job, "job_submitted"] < max(no for (one, _), no in numbers.items() if one == job)
        controlled = [record for record in found if record.event == "job_controlled"]
        assert len(controlled) == self.noted
        counted = await tallies(self.rig.db)
        assert counted["r", "QUEUED"][0] == len(self.jobs)
        assert sum(count for (_, state), (count, _) in counted.items() if state != "QUEUED") == len(self.jobs)
