"""What `windlass doctor` finds."""

from __future__ import annotations

import time

import pytest

from windlass.app import doctor
from windlass.app.doctor import Check, Diagnosis, examine
from windlass.pure.promise import Promise
from windlass.store.database import Database
from windlass.store.outage import DISK_FULL
from windlass.testing.postgres import fresh_database


def statuses(found: Diagnosis) -> dict[str, str]:
    return {check.name: check.status for check in found.checks}


async def test_a_database_without_workers_is_well_and_says_so(db: Database) -> None:
    found = await examine(db, now_s=time.time())
    assert found.is_well
    assert found.promise is Promise.TAIL, "the server of the tests syncs nothing"
    told = statuses(found)
    assert [name for name, status in told.items() if status == "warn"] == ["promise", "engines", "workers"]
    assert told["timeline"] == told["writes"] == told["standbys"] == told["clock"] == "ok"
    assert {check.name: check for check in found.checks}["timeline"].found == "1, epoch 1"


async def test_a_clock_that_differs_is_only_a_sign(db: Database) -> None:
    found = await examine(db, now_s=time.time() + 3600)
    assert statuses(found)["clock"] == "warn" and found.is_well


async def test_a_schema_that_is_behind_ends_the_examination() -> None:
    db = await Database.open(await fresh_database(migrated=False))
    try:
        found = await examine(db, now_s=time.time())
    finally:
        await db.close()
    assert statuses(found) == {"database": "ok", "version": "ok", "migrations": "fail"}
    assert not found.is_well and found.promise is None


async def test_a_server_that_accepts_no_writes_fails(fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn, max_size=1)
    try:
        async with db.connection() as connection:
            await connection.execute("SET default_transaction_read_only = on")
        # The session is what is read-only here; a new one would not be.
        db._pool.expire = lambda: None  # type: ignore[method-assign]
        found = await examine(db, now_s=time.time())
    finally:
        await db.close()
    check = next(check for check in found.checks if check.name == "writes")
    assert check.status == "fail" and "read-only" in check.found and check.remedy


async def test_the_outage_that_a_test_write_meets_is_told(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*, is_tested: bool) -> object:
        assert is_tested
        return DISK_FULL

    monkeypatch.setattr(db, "check_writes", full)
    check = next(check for check in (await examine(db, now_s=0.0)).checks if check.name == "writes")
    assert check == Check("writes", "fail", DISK_FULL.reason, DISK_FULL.remedy)


def test_a_synchronous_standby_that_is_not_there_stops_every_commit() -> None:
    assert doctor._standbys("one", 0).status == "fail"
    assert doctor._standbys("one", 1) == Check("standbys", "ok", "1 connected, synchronous: one")
    assert doctor._standbys("", 0) == Check("standbys", "ok", "0 connected")
