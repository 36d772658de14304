"""A worker's heartbeat tells how the services of its process are."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

import pytest

from tests.worker.yard import PATIENCE_S, Yard
from windlass.engine import workers as leases
from windlass.pure.service import OK, STUCK_AFTER_S
from windlass.views import workers
from windlass.views.workers import WorkerView
from windlass.worker import heartbeat
from windlass.worker import worker as worker_module
from windlass.worker.heartbeat import Config, Word

LEASE_S = 0.9


async def told(yard: Yard, worker: UUID) -> WorkerView:
    """The worker, once it has told something."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = {one.id: one for one in await workers.listing(yard.db)}
            if worker in found and found[worker].services is not None:
                return found[worker]
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", ["loop", "process"])
async def test_a_worker_tells_how_its_services_are(yard: Yard, kind: str) -> None:
    async with yard.working(lease_s=LEASE_S, heartbeat=kind, dsn=yard.dsn) as worker:
        found = (await told(yard, worker.id)).services
        assert found is not None and found["heartbeat"] == OK
        assert {"executor", "notes", "runner", "settler", "apart"} <= found.keys()
        assert set(found.values()) == {OK}


async def test_a_change_is_told_with_a_later_heartbeat(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "CHECK_S", 0.1)
    async with yard.working(lease_s=LEASE_S, heartbeat="process", dsn=yard.dsn) as worker:
        await told(yard, worker.id)
        worker.report = lambda: {"loops": "has not run for 42 s"}
        async with asyncio.timeout(PATIENCE_S):
            while (await told(yard, worker.id)).services != {"loops": "has not run for 42 s"}:
                await asyncio.sleep(0.05)


async def test_a_renewal_that_tells_nothing_keeps_what_was_told(yard: Yard) -> None:
    worker = yard.ids.new()
    await leases.enlist(yard.db, worker, host="h", pid=1, queues=[yard.queue], concurrency=1)
    listed = {one.id: one.services for one in await workers.listing(yard.db)}
    assert listed[worker] is None, "nothing was told yet"
    assert await leases.renew(yard.db, worker, states={"loops": OK})
    assert await leases.renew(yard.db, worker)
    assert (await told(yard, worker)).services == {"loops": OK}
    await leases.dismiss(yard.db, worker)


def test_a_process_that_tells_nothing_for_long_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.monotonic()
    heart = heartbeat._Heart(Config("", UUID(int=1), 15.0, 1))
    assert heart.states() is None
    heart.take(heartbeat.msgspec.json.encode(Word(states={"worker": OK, "loops": OK})))
    assert heart.states() == {"worker": OK, "loops": OK}
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now_s + STUCK_AFTER_S + 12.4)
    assert heart.states() == {"worker": "has not run for 42 s", "loops": OK}


def test_a_report_neither_changes_the_lease_nor_wakes_the_heart() -> None:
    heart = heartbeat._Heart(Config("", UUID(int=1), 15.0, 1))
    heart.take(heartbeat.msgspec.json.encode(Word(states={"worker": OK})))
    assert heart._worker == UUID(int=1) and not heart._changed.is_set()
    heart.take(heartbeat.msgspec.json.encode(Word(worker=UUID(int=2))))
    assert heart._worker == UUID(int=2) and heart._changed.is_set()
