"""Webhook senders and the receiver are killed at random moments while 200 jobs' ends are told.

Every one is delivered at least once, always under the same id and with the same body, or it is DEAD with its schedule
exhausted. The clock is the test's: it moves on when nothing is left to do at this moment, so three days of tries pass
in seconds, and leases of the dead run out.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig
from tests.outbound.carrier import clock_at
from tests.outbound.receiver import Receiver, end, spawn
from tests.outbound.rig import WEBHOOK_SECRET, Hooks
from windlass.app.entropy import Ids
from windlass.pure.webhook import RETRY_AFTER_S, parse_secret, verify
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import START

JOBS = 200
KILLS = 30
WITHIN_S = 150.0
_TAKEN = ("ok", "half-body")


class Stage:
    """The processes, the clock and the rows."""

    def __init__(self, dsn: str, db: Database, receiver: Receiver, clock: Path) -> None:
        self.dsn = dsn
        self.db = db
        self.receiver = receiver
        self.clock = clock
        self.carriers = [self._carrier() for _ in range(2)]

    def _carrier(self) -> Any:
        process = spawn("tests.outbound.carrier", self.dsn, str(self.clock))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def kill_one(self, rng: random.Random) -> None:
        if rng.random() < 0.4:
            self.receiver.kill()
            self.receiver.start()
        else:
            place = rng.randrange(len(self.carriers))
            end(self.carriers[place])
            self.carriers[place] = self._carrier()

    def close(self) -> None:
        for carrier in self.carriers:
            end(carrier)
        self.receiver.kill()

    async def look(self) -> tuple[int, int, datetime | None]:
        """How many have not ended, how often any was tried, and what is due first."""
        async with self.db.connection() as connection:
            row = await connection.fetchrow(
                "SELECT count(*) FILTER (WHERE state IN ('WAITING', 'DUE')) AS open,"
                " coalesce(sum(attempt), 0) AS tries, min(due_at) FILTER (WHERE state = 'DUE') AS due"
                " FROM windlass.webhooks"
            )
        return row["open"], row["tries"], row["due"]

    def reach(self, moment: datetime) -> None:
        """Let the time come, if it has not, and a little more: retries with different jitter come due together."""
        now = clock_at(self.clock)
        if moment <= now:
            return
        moment += (moment - now) / 4
        # A reader must find the old moment or the new moment.
        new = self.clock.with_suffix(".new")
        new.write_text(str(moment.timestamp() + 0.01))
        new.replace(self.clock)


@pytest.fixture
async def stage(fresh_dsn: str, tmp_path: Path) -> AsyncIterator[Stage]:
    clock = tmp_path / "clock"
    clock.write_text(str(START.timestamp()))
    db = await Database.open(fresh_dsn, now=lambda: clock_at(clock))
    made = Stage(fresh_dsn, db, Receiver(tmp_path / "journal"), clock)
    yield made
    made.close()
    await db.close()


async def _submit(stage: Stage, ids: Ids, folder: Path, nobody: int) -> dict[UUID, str]:
    rig = Rig(stage.db, None, ids, FolderArtifacts(folder))  # type: ignore[arg-type]
    await rig.enlist()
    hooks = Hooks(rig)
    kinds = {
        "flaky": stage.receiver.url("flaky"),
        "failing": stage.receiver.url("status/500"),
        "gone": stage.receiver.url("status/410"),
        "nobody": f"http://127.0.0.1:{nobody}/",
        "refused": "http://10.0.0.1/",
    }
    order = ["flaky"] * (JOBS - 40) + ["failing", "gone", "nobody", "refused"] * 10
    jobs = {}
    for number, kind in enumerate(order):
        jobs[await hooks.submit(kinds[kind])] = kind
        if number % 20 == 19:
            await rig.run_out()
    return jobs


@pytest.mark.slow
async def test_kills_at_random_moments_lose_no_word(stage: Stage, ids: Ids, tmp_path: Path) -> None:
    rng = random.Random(11)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        submitting = asyncio.create_task(_submit(stage, ids, tmp_path / "a", taken.getsockname()[1]))
        kills, still, last = 0, 0, await stage.look()
        async with asyncio.timeout(WITHIN_S):
            while not submitting.done() or kills < KILLS or last[0]:
                await asyncio.sleep(rng.uniform(0.02, 0.2))
                if kills < KILLS:
                    await asyncio.to_thread(stage.kill_one, rng)
                    kills += 1
                seen = await stage.look()
                # Time moves on when nothing else does: a try that is under way keeps its lease, unless it was killed.
                still = still + 1 if seen == last else 0
                last = seen
                if still >= 2 and submitting.done() and seen[2] is not None:
                    stage.reach(seen[2])
        jobs = await submitting
    await _check(stage, jobs)


async def _check(stage: Stage, jobs: dict[UUID, str]) -> None:
    async with stage.db.connection() as connection:
        rows = {row["job_id"]: row for row in await connection.fetch("SELECT * FROM windlass.webhooks")}
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for request in stage.receiver.seen():
        seen[request["headers"]["webhook-id"]].append(request)
    secret = parse_secret(WEBHOOK_SECRET)
    assert len(rows) == JOBS
    assert set(seen) <= {f"{job}_COMPLETED" for job in jobs}
    # A check of the test itself: some webhook senders died with a try under way, which counts as no failure.
    assert sum(row["attempt"] - row["failures"] - (row["state"] == "DELIVERED") for row in rows.values()) > 0
    ends: dict[tuple[str, str], int] = defaultdict(int)
    for job, kind in jobs.items():
        row, requests = rows[job], seen[f"{job}_COMPLETED"]
        ends[kind, row["state"]] += 1
        assert len({request["body"] for request in requests}) <= 1
        for request in requests:
            at = int(request["headers"]["webhook-timestamp"])
            assert verify([secret], request["headers"], request["body"].encode(), at)
        # Nothing is sent twice for the same try.
        assert len(requests) <= row["attempt"]
        if row["state"] == "DELIVERED":
            assert any(request["kind"] in _TAKEN for request in requests)
        else:
            assert row["state"] == "DEAD"
            assert row["failures"] == len(RETRY_AFTER_S) + 1 or row["answer"] == 410
    assert ends["flaky", "DELIVERED"] > 0.9 * (JOBS - 40)
    for kind in ("failing", "gone", "nobody", "refused"):
        assert ends[kind, "DEAD"] == 10
