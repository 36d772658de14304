"""Sends events to jobs. A named event completes the step that waits for it, or is kept until a step waits.

    send ──► lock the job ──► the same id again?            already (Conflict, if name or body differ)
                          ──► a waiting step that fits?      delivered: settled in this commit
                          ──► else                           kept: the router gives it to the first step that fits

The router looks for kept events under the same lock before it parks a step. Either the router sees the event, or the
event sees the step, so no event is missed between the two. Only one step takes an event, and the earliest event that
fits is taken first. A job that has ended accepts no event, because no step could ever take it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import route as route_law
from windlass.core import settle as law
from windlass.core.draft import Draft, touched_by
from windlass.core.errors import BadInput, Conflict, NotFound, TooLarge, WrongState
from windlass.core.expression import nearest
from windlass.core.outcome import Report, Success
from windlass.core.plan import NodeKind, Plan
from windlass.core.route import Await
from windlass.core.signal import fits, same
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.engine.submit import check_text
from windlass.store import drafts
from windlass.store.artifact import REFERENCE_KEY, is_reference
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql

BODY_BYTES_MAX = 64 * 1024
ID_CHARS_MAX = 255
# The most kept events of one job that no step has taken.
KEPT_MAX = 1_000

Sent = Literal["delivered", "kept", "already"]


@dataclass(frozen=True, slots=True)
class SignalView:
    """An event that was sent to a job; `taken_no` is the step that it completed."""

    id: str
    name: str
    body: Any
    sender: str
    at: datetime
    taken_no: int | None


async def send(db: Database, job_id: UUID, name: str, body: Any, *, id: str, sender: str) -> Sent:
    """Send the job an event. Repeating the `id` changes nothing; with another name or body it is a Conflict."""
    text = _checked(name, body, id, sender)
    tries = 0

    async def operation(connection: asyncpg.Connection) -> Sent:
        nonlocal tries
        tries += 1
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            job = await connection.fetchrow(sql("signal_job"), job_id)
            if job is None:
                raise NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
            known = await connection.fetchrow(sql("signal_get"), job_id, id)
            if known is not None:
                _check_same(known, id, name, body)
                # Found on a repeated try: an earlier commit whose reply was lost most likely stored it.
                return "already" if tries == 1 else _sent(known["taken_no"])
            if JobState(job["state"]) in JOB_TERMINAL:
                raise WrongState(f"job {job_id} is {job['state']}", remedy="Only a job that has not ended takes events")
            plan = await read_plan(connection, job["plan"])
            _check_name(plan, name)
            no = await _deliver(connection, plan, name, body, Report(job_id, -1, -1, Success(text), sender, id))
            if no is None and await connection.fetchval(sql("signal_kept"), job_id) >= KEPT_MAX:
                raise TooLarge(f"{KEPT_MAX:,} events are already kept for job {job_id}, and no step has taken them")
            await connection.execute(sql("signal_put"), job_id, id, name, text, sender, no)
        return _sent(no)

    return await db.run(operation)


async def sent_to(db: Database, job_id: UUID, limit: int = KEPT_MAX) -> list[SignalView]:
    """List the events that were sent to a job, in order of arrival."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("signal_list"), job_id, limit)
    return [
        SignalView(r["id"], r["name"], msgspec.json.decode(r["body"]), r["sender"], r["at"], r["taken_no"])
        for r in rows
    ]


def _checked(name: str, body: Any, id: str, sender: str) -> str:
    """Encode the body as JSON, after checking that all parts can be stored."""
    for text in (name, id, sender):
        check_text(text)
    if not 0 < len(id) <= ID_CHARS_MAX:
        raise BadInput(f"an event's id has 1 to {ID_CHARS_MAX} characters")
    try:
        text = encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"the event's body is not JSON: {error}") from None
    if is_reference(text):
        # As a step's output it would be read as a reference to a stored artifact, perhaps of another caller.
        raise BadInput(f"an event's body cannot be {REFERENCE_KEY!r} alone", remedy="Put it under another key")
    if len(text.encode()) > BODY_BYTES_MAX:
        raise TooLarge(f"an event of {len(text.encode()):,} bytes; at most {BODY_BYTES_MAX:,} are allowed")
    return text


def _sent(no: int | None) -> Sent:
    return "kept" if no is None else "delivered"


def _check_same(known: asyncpg.Record, id: str, name: str, body: Any) -> None:
    if known["name"] != name or not same(msgspec.json.decode(known["body"]), body):
        raise Conflict(f"the id {id!r} was used for another event", remedy="Use a new id for a new event")


def _check_name(plan: Plan, name: str) -> None:
    names = sorted({node.run for node in plan.nodes if node.kind is NodeKind.EVENT})
    if name not in names:
        hint = nearest(name, names) if names else "its recipe waits for none"
        raise BadInput(f"no step of the job waits for an event {name!r}", remedy=hint[:1].upper() + hint[1:])


async def _deliver(connection: asyncpg.Connection, plan: Plan, name: str, body: Any, report: Report) -> int | None:
    """Settle the first waiting step that fits this event, and return its number."""
    job_id = report.job_id
    for row in await connection.fetch(sql("waits_of"), job_id, name):
        if not fits(msgspec.json.decode(row["match"]), body):
            continue
        touched = touched_by(plan, row["no"], row["node"], is_success=True)
        [draft] = await drafts.load(connection, {job_id: touched}, lambda h: read_plan(connection, h))
        told = report._replace(no=row["no"], attempt=row["attempt"], plan_hash=plan.hash, node=row["node"])
        if law.settle(draft, told, 0.0):
            await drafts.write(connection, [draft])
            return int(row["no"])
    return None


@dataclass(slots=True)
class Early:
    """Events that arrived before a step waited for them, for the steps that begin to wait now."""

    kept: dict[tuple[UUID, str], list[tuple[str, str]]] = field(default_factory=dict)
    taken: list[tuple[UUID, str, int]] = field(default_factory=list)

    @classmethod
    async def load(cls, connection: asyncpg.Connection, awaited: Iterable[tuple[UUID, str]]) -> Early:
        """Load the kept events of these jobs and names. The jobs are locked."""
        pairs = sorted(awaited)
        early = cls()
        if not pairs:
            return early
        jobs, names = sorted({job_id for job_id, _ in pairs}), sorted({name for _, name in pairs})
        for row in await connection.fetch(sql("signal_early"), jobs, names):
            early.kept.setdefault((row["job_id"], row["name"]), []).append((row["id"], row["body"]))
        return early

    def route(self, draft: Draft, no: int, awaited: Await) -> None:
        """Let the step take the first event that fits, or wait."""
        step = draft.steps.get(no)
        if step is None:
            return
        kept = self.kept.get((draft.job.id, draft.plan.nodes[step.node].run), [])
        match = msgspec.json.decode(awaited.match)
        at = next((at for at, (_, body) in enumerate(kept) if fits(match, msgspec.json.decode(body))), None)
        if at is not None:
            awaited = replace(awaited, early=kept[at][1])
        if route_law.route(draft, no, awaited) and at is not None:
            self.taken.append((draft.job.id, kept.pop(at)[0], no))

    async def write(self, connection: asyncpg.Connection) -> None:
        """Record which step took which event, in the commit that moves the steps."""
        if self.taken:
            await connection.execute(sql("signal_take"), *(list(column) for column in zip(*self.taken, strict=True)))
