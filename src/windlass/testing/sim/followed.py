"""The process of a simulation that follows the feed, and the rules for its records."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any
from uuid import UUID

import asyncpg

from windlass.engine import feed
from windlass.engine.loops.auditor import Auditor
from windlass.engine.loops.webhook_scheduler import WebhookScheduler
from windlass.engine.submit import Submission, Webhook
from windlass.pure.audit import GENESIS, Record, verify
from windlass.store.database import Database
from windlass.testing.checker import Tables
from windlass.testing.sim.cast import Stage
from windlass.worker.resolve import is_away

# Transactions of other simulations on the same server hold the horizon back for a moment.
_LOOKS_MAX = 500
_RECORDS = {"job.submitted": "job_submitted", "job.completed": "job_completed", "job.cancelled": "job_cancelled"}


def with_webhook(wish: Submission) -> Submission:
    """Give a followed submission a webhook too."""
    webhook = None if wish.correlation_id is None else Webhook("https://example.org/told", b"sealed")
    return wish._replace(webhook=webhook)


async def run_clerk(stage: Stage, rng: random.Random) -> None:
    """Run the auditor and the webhook scheduler, each a batch at a time."""
    duties = (Auditor(stage.db), WebhookScheduler(stage.db))
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 3.0))
        try:
            await rng.choice(duties).run_once()
        except Exception as error:
            if not is_away(error):
                raise


async def check_followed(db: Database, connection: asyncpg.Connection, tables: Tables) -> list[str]:
    """Let the followers reach the end of the feed; then return every complaint."""
    duties = (Auditor(db), WebhookScheduler(db))
    for _ in range(_LOOKS_MAX):
        for duty in duties:
            await duty.run_once()
        if not await _behind(connection):
            break
        await asyncio.sleep(0.01)
    else:
        return ["the followers do not come to the end of the feed"]
    return [*await _chain(connection), *await _records(connection, tables), *await _webhooks(connection)]


async def _behind(connection: asyncpg.Connection) -> int:
    """Count the events of the feed that a follower has not read, below the horizon or not."""
    count = 0
    for duty in ("auditor", "webhook_scheduler"):
        at = await feed.cursor(connection, duty)
        count += await connection.fetchval(
            "SELECT count(*) FROM windlass.events WHERE (txid, job_id, seq) > ($1::text::xid8, $2, $3)"
            " AND correlation_id IS NOT NULL AND (no IS NULL OR type = 'step.progress')",
            *(str(at.txid), at.job_id, at.seq),
        )
    return count


async def _chain(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch("SELECT * FROM windlass.audit ORDER BY no")
    flaw = verify([(_record(row), row["hash"]) for row in rows], GENESIS, 1)
    return [] if flaw is None else [f"the audit's chain: {flaw}"]


def _record(row: asyncpg.Record) -> Record:
    names = ("no", "at", "event", "caller", "caller_type", "tier", "job_id", "request_id", "payload")
    values: list[Any] = [row[name] for name in names]
    return Record(*values)


async def _records(connection: asyncpg.Connection, tables: Tables) -> list[str]:
    """Check that each followed job has exactly one record of its beginning and one of its end."""
    wanted: Counter[tuple[UUID, str]] = Counter()
    for job_id, events in tables.events.items():
        for event in events:
            is_end = event["type"] == f"job.{tables.jobs[job_id]['state'].lower()}"
            if event["correlation_id"] is not None and (is_end or event["type"] == "job.submitted"):
                wanted[job_id, _RECORDS.get(event["type"], "job_failed")] += 1
    # The records of votes do not follow the feed (`asking.py` checks them).
    rows = await connection.fetch(
        "SELECT job_id, event FROM windlass.audit WHERE job_id IS NOT NULL AND event NOT LIKE 'approval%'"
    )
    found = Counter((row["job_id"], row["event"]) for row in rows)
    wrong = [
        f"job {job_id} has {found[job_id, event]} records {event}, and should have {count}"
        for (job_id, event), count in wanted.items()
        if found[job_id, event] != count
    ]
    wrong += [f"job {job_id} has a record {event} of nothing" for job_id, event in found.keys() - wanted.keys()]
    tallied = await connection.fetchval("SELECT sum(count) FROM windlass.tallies") or 0
    if tallied != sum(wanted.values()):
        wrong.append(f"the tallies count {tallied} of {sum(wanted.values())} beginnings and ends")
    return sorted(wrong)


async def _webhooks(connection: asyncpg.Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT w.job_id, w.state, j.state AS job_state, j.finished_at IS NOT NULL AS has_ended"
        " FROM windlass.webhooks w LEFT JOIN windlass.jobs j ON j.id = w.job_id ORDER BY w.job_id"
    )
    return [
        f"the webhook of job {row['job_id']}, which is {row['job_state']}, is {row['state']}"
        for row in rows
        if row["state"] != ("DUE" if row["has_ended"] else "WAITING")
    ]
