"""Applies one action to many jobs: the jobs that match a filter and that the action applies to.

The ids are collected first. Each job then has its own commit, so an interrupted bulk action has done a part of its work
and may be repeated: a cancelled job no longer matches, and neither does a job that was run again or discarded
(`redriven`). Two concurrent bulk retries make one new job of an old job: the new job's idempotency key contains the
old job's id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from windlass.core.caller import PRIORITY_MAX
from windlass.core.control import BulkAction, Targets
from windlass.core.errors import BadInput, CountChanged, Refused, WrongState
from windlass.engine import control, rerun
from windlass.store.database import Database
from windlass.store.statements import sql

BULK_MAX = 500
RUNNING_MAX = 10_000
# The idempotency key of jobs that bulk retries create (`rerun.retry`).
_WORD = "bulk"


@dataclass(frozen=True, slots=True)
class Bulk:
    """The result of a bulk action.

    `matched` counts the jobs found; with `is_more` there are at least so many. `running_steps` counts the running steps
    that a cancel would stop. `done` has each job acted on, with its new job after a retry. `refused` has the other
    jobs, with the error code.
    """

    matched: int
    is_more: bool
    done: tuple[tuple[UUID, UUID | None], ...] = ()
    refused: tuple[tuple[UUID, str], ...] = ()
    running_steps: int = 0


async def bulk(
    db: Database,
    found: Targets,
    action: BulkAction,
    *,
    new_id: Callable[[], UUID],
    limit: int,
    dry_run: bool,
    expect: int | None,
    reason: str,
    source: str,
    request_id: str | None,
    priority_max: int = PRIORITY_MAX,
) -> Bulk:
    """Cancel or retry the newest `limit` of the jobs found; CountChanged if their number differs from `expect`."""
    if not 1 <= limit <= BULK_MAX:
        raise BadInput(f"a bulk action takes 1 to {BULK_MAX} jobs at a time, not {limit}")
    ids, is_more = found
    if dry_run:
        return Bulk(len(ids), is_more, running_steps=await _running(db, ids) if action == "cancel" else 0)
    if expect is not None and expect != len(ids):
        raise CountChanged(
            f"{len(ids)} jobs match, not {expect}", remedy="Ask for a dry run again and look at what it would touch"
        )
    done: list[tuple[UUID, UUID | None]] = []
    refused: list[tuple[UUID, str]] = []
    for job_id in ids[:limit]:
        try:
            if action == "retry":
                made = await rerun.retry(
                    db, job_id, new_id(), source=source, key=_WORD, request_id=request_id, priority_max=priority_max
                )
                done.append((job_id, made))
            elif await control.cancel(db, job_id, reason=reason, source=source, request_id=request_id):
                done.append((job_id, None))
            else:
                refused.append((job_id, WrongState.code))
        except Refused as error:
            refused.append((job_id, error.code))
    return Bulk(len(ids), is_more, tuple(done), tuple(refused))


async def _running(db: Database, ids: Sequence[UUID]) -> int:
    """Count the running attempts of these jobs, at most RUNNING_MAX."""
    async with db.connection() as connection:
        return await connection.fetchval(sql("list_running"), list(ids), RUNNING_MAX)  # type: ignore[no-any-return]
