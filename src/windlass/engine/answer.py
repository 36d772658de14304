"""Applies the answers of providers, from webhooks and polls, to steps. No other code path does this.

An answer finds its provider job by the provider's id, or by our key while the id is not known. The answer is decided
under the job's lock. The first answer that ends the work settles the step through `core/settle.py`; later answers are
late. A webhook's event is stored in the same commit, and its id refuses a replay.

An event stays WAITING while its provider job is unknown, or while its step cannot take it (the step is about to be
retried). The commit that makes the provider job known also makes the event DUE, and the webhook applier applies it.
Both sides hold the id's lock while they look for each other, so neither misses the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import note as note_law
from windlass.core import settle as law
from windlass.core.bell import AnswerDue
from windlass.core.draft import Draft, touched_by
from windlass.core.errors import NotFound, Unavailable
from windlass.core.external import ProviderStatus, Said, WorkKey, is_id, outcome_of, sound
from windlass.core.note import Note
from windlass.core.outcome import Cost, Failure, Report, Success
from windlass.core.plan import Plan
from windlass.core.states import STEP_TERMINAL
from windlass.engine.note import write_columns
from windlass.store import drafts
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.provider_jobs import CANCELLING, ENDED, RUNNING, SUBMITTING, id_locks, release_events
from windlass.store.statements import bound, sql

BATCH_MAX = 500
# The most steps that one answer may settle. A provider that merged equal requests answers several steps at once.
PLACES_MAX = 20
EVENTS_MAX = 500
_RACES_MAX = 5
DUE = "DUE"


class InEvent(NamedTuple):
    """A webhook as the provider sent it."""

    id: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """One statement of a provider about one provider job. `source` says how it arrived (`webhook`, `poller`)."""

    provider: str
    external_id: str | None
    said: Said
    source: str
    key: WorkKey | None = None
    event: InEvent | None = None


class Applied(StrEnum):
    """The effect of an answer."""

    APPLIED = "APPLIED"  # the answer settled the step
    NOTED = "NOTED"  # the answer reported progress, or nothing that ends the work
    LATE = "LATE"  # the work had ended, or no step needs it any more
    WAITING = "WAITING"  # no step waits for the answer yet; an event is kept
    REPLAYED = "REPLAYED"  # the event was stored before


class EventRow(NamedTuple):
    """A stored event."""

    id: str
    at: datetime
    external_id: str | None
    state: str
    job_id: UUID | None


Parse = Callable[[dict[str, str], bytes], tuple[str | None, Said, WorkKey | None]]

# An answer for several steps reports its strongest effect. A stored event only moves up in rank, too.
_RANK = {Applied.LATE: 0, Applied.NOTED: 1, Applied.WAITING: 2, Applied.APPLIED: 3}
_EVENT_RANK = {"WAITING": 0, DUE: 0, "LATE": 1, "NOTED": 2, "APPLIED": 3}


@dataclass(slots=True)
class _Work:
    """A row of provider_jobs with the changes decided so far."""

    key: WorkKey
    attempt: int
    state: str
    status: str | None
    external_id: str | None
    provider: str
    is_changed: bool = False
    is_learned: bool = False  # the provider's id was unknown before

    def change(self, state: str, status: str | None = None, external_id: str | None = None) -> None:
        before = (self.state, self.status, self.external_id)
        self.state = state
        self.status = status or self.status
        self.is_learned |= self.external_id is None and external_id is not None
        self.external_id = self.external_id or external_id
        self.is_changed |= (self.state, self.status, self.external_id) != before


@dataclass(slots=True)
class _Item:
    """An answer being applied. `was` is the state of an event that is stored already."""

    answer: Answer
    spread: float
    was: str | None = None
    external_id: str | None = None
    event_id: str = ""
    places: list[WorkKey] = field(default_factory=list)
    result: Applied = Applied.WAITING
    of: WorkKey | None = None
    is_due: bool = False

    def __post_init__(self) -> None:
        external_id, event = self.answer.external_id, self.answer.event
        self.external_id = external_id if external_id is not None and is_id(external_id) else None
        if event is not None:
            raw = event.id.encode(errors="replace")
            self.event_id = event.id if is_id(event.id) else f"sha256:{hashlib.sha256(raw).hexdigest()}"


class _Raced(Exception):
    """Another commit stored one of these events first."""


async def answer(db: Database, answers: Sequence[Answer], *, spread: Callable[[], float]) -> list[Applied]:
    """Apply up to BATCH_MAX answers in one commit."""
    if len(answers) > BATCH_MAX:
        raise ValueError(f"at most {BATCH_MAX} answers at once")
    if not answers:
        return []
    sane = [one._replace(said=sound(one.said)) for one in answers]
    spreads = [spread() for _ in answers]

    async def operation(connection: asyncpg.Connection) -> list[Applied]:
        for _ in range(_RACES_MAX):
            items = [_Item(one, each) for one, each in zip(sane, spreads, strict=True)]
            try:
                await _apply(connection, items)
            except _Raced:
                continue
            return [item.result for item in items]
        raise Unavailable("concurrent requests keep storing the same events", remedy="Send them again")

    return await db.run(operation)


async def apply_due(db: Database, *, spread: Callable[[], float], limit: int = BATCH_MAX) -> int:
    """Apply stored events whose provider job is known now. Returns the number of events read."""
    spreads = [spread() for _ in range(limit)]

    async def operation(connection: asyncpg.Connection) -> int:
        rows = await connection.fetch(sql("event_due"), limit)
        items = [_Item(_kept(row), each, was=DUE) for row, each in zip(rows, spreads, strict=False)]
        if items:
            await _apply(connection, items)
        return len(items)

    return await db.run(operation)


async def reapply(
    db: Database, provider: str, event_id: str, parse: Parse, *, spread: Callable[[], float] = lambda: 0.5
) -> Applied:
    """Parse a stored event again and apply it. An event whose work has ended is late."""
    row = await db.run(lambda connection: connection.fetchrow(sql("event_get"), provider, event_id))
    if row is None:
        raise NotFound(f"provider {provider} sent no event {event_id}", remedy="Events are kept for some time only")
    external_id, said, key = parse(msgspec.json.decode(row["headers"], type=dict[str, str]), row["body"])
    event = InEvent(event_id, {}, b"")
    again = Answer(provider, external_id, sound(said), "webhook", key, event)
    drawn = spread()

    async def operation(connection: asyncpg.Connection) -> Applied:
        item = _Item(again, drawn, was=row["state"])
        await _apply(connection, [item])
        return item.result

    return await db.run(operation)


async def events(db: Database, provider: str, *, state: str | None = None, limit: int = EVENTS_MAX) -> list[EventRow]:
    """List the provider's latest events, newest first."""
    rows = await db.run(lambda connection: connection.fetch(sql("event_list"), provider, state, limit))
    return [EventRow(*row) for row in rows]


def _kept(row: asyncpg.Record) -> Answer:
    said = msgspec.json.decode(row["said"], type=Said)
    key = None if row["job_id"] is None else WorkKey(row["job_id"], row["no"], row["round"])
    return Answer(row["provider"], row["external_id"], said, "webhook", key, InEvent(row["id"], {}, b""))


async def _apply(connection: asyncpg.Connection, items: Sequence[_Item]) -> None:
    plans = await _find(connection, items)
    async with connection.transaction():
        if plans:
            await drafts.lock(connection, {key.job_id for key in plans})
        works = await _read(connection, plans)
        found = await _load(connection, items, plans)
        await _refuse(connection, items)
        notes = _decide(items, works, {draft.job.id: draft for draft in found})
        await _write_works(connection, works.values())
        await _look_again(connection, items, works.values())
        await _write_events(connection, [item for item in items if item.answer.event is not None], works)
        await _release_events(connection, works.values())
        await drafts.write(connection, found)
        if notes:
            await write_columns(connection, notes)


async def _find(connection: asyncpg.Connection, items: Sequence[_Item]) -> dict[WorkKey, tuple[Plan, int]]:
    """Find the steps that each item speaks of. Returns the plan and node of each step."""
    asked = [item for item in items if item.external_id is not None or item.answer.key is not None]
    if not asked:
        return {}
    keys = [item.answer.key for item in asked]
    rows = await connection.fetch(
        sql("work_find"),
        [item.answer.provider for item in asked],
        [item.external_id for item in asked],
        [key and key.job_id for key in keys],
        [key and key.no for key in keys],
        [key and key.round for key in keys],
        PLACES_MAX,
    )
    plans: dict[WorkKey, tuple[Plan, int]] = {}
    for row in rows:
        key = WorkKey(row["job_id"], row["no"], row["round"])
        plans[key] = (await read_plan(connection, row["plan"]), row["node"])
        places = asked[row["place"] - 1].places
        if key not in places:
            places.append(key)
    return plans


async def _read(connection: asyncpg.Connection, keys: Mapping[WorkKey, Any]) -> dict[WorkKey, _Work]:
    if not keys:
        return {}
    # Every commit sorts the rows the same way: writing locks them, and two orders would deadlock.
    order = sorted(keys, key=lambda key: (key.job_id, key.no, key.round))
    columns = [[key.job_id for key in order], [key.no for key in order], [key.round for key in order]]
    rows = {WorkKey(*row[:3]): row for row in await connection.fetch(sql("work_read"), *columns)}
    return {key: _Work(key, *rows[key][3:]) for key in order if key in rows}


async def _load(
    connection: asyncpg.Connection, items: Sequence[_Item], plans: Mapping[WorkKey, tuple[Plan, int]]
) -> list[Draft]:
    wanted: dict[UUID, set[int]] = {}
    for item in items:
        status = item.answer.said.status
        for key in item.places:
            touched = {key.no}
            if status.is_terminal:
                plan, node = plans[key]
                touched = touched_by(plan, key.no, node, is_success=status is ProviderStatus.SUCCEEDED)
            wanted.setdefault(key.job_id, set()).update(touched)
    if not wanted:
        return []
    return await drafts.load(connection, wanted, lambda plan_hash: read_plan(connection, plan_hash))


async def _refuse(connection: asyncpg.Connection, items: Sequence[_Item]) -> None:
    """Mark replayed events. The jobs are locked, so an event of the same work is either stored or still to come."""
    told = [item for item in items if item.answer.event is not None]
    if not told:
        return
    ids = [(item.answer.provider, item.event_id) for item in told]
    rows = await connection.fetch(sql("event_seen"), [provider for provider, _ in ids], [id for _, id in ids])
    seen = {(row["provider"], row["id"]): row["state"] for row in rows}
    for item, id in zip(told, ids, strict=True):
        # A stored event whose state has changed was applied by a faster commit.
        if seen.get(id) != item.was:
            item.result = Applied.REPLAYED
        elif item.was is None:
            seen[id] = ""


def _decide(items: Sequence[_Item], works: Mapping[WorkKey, _Work], by_job: Mapping[UUID, Draft]) -> list[Note]:
    """Decide the answers in their order. Returns the accepted notes."""
    notes: list[Note] = []
    for item in items:
        if item.result is Applied.REPLAYED:
            continue
        for key in item.places:
            work, draft = works.get(key), by_job.get(key.job_id)
            if work is None or draft is None:
                continue
            result = _judge(item, work, draft, notes)
            if item.of is None or _RANK[result] > _RANK[item.result]:
                item.of, item.result = key, result
    return notes


def _judge(item: _Item, work: _Work, draft: Draft, notes: list[Note]) -> Applied:
    said = item.answer.said
    outcome = outcome_of(said)
    if work.state == ENDED:
        return Applied.LATE
    if work.state == CANCELLING:
        # Work that has ended needs no cancel and has a price. Other work must still be cancelled.
        work.change(CANCELLING if outcome is None else ENDED, said.status, item.external_id)
        if outcome is not None:
            _charge(item.answer, work, draft)
        return Applied.LATE
    if work.state == SUBMITTING and (item.external_id or work.external_id) is None:
        work.change(SUBMITTING, said.status)
    else:
        work.change(RUNNING, said.status, item.external_id)
    if outcome is None:
        return _note(item.answer, work, draft, notes)
    if law.settle(draft, _report(item.answer, work, outcome), item.spread):
        work.change(ENDED)
        return Applied.APPLIED
    step = draft.steps.get(work.key.no)
    if step is not None and not draft.is_finished and step.state not in STEP_TERMINAL:
        return Applied.WAITING
    work.change(ENDED)
    return Applied.LATE


def _report(answer: Answer, work: _Work, outcome: Success | Failure) -> Report:
    cost = _cost(answer)
    return Report(work.key.job_id, work.key.no, work.attempt, outcome, source=answer.source, cost=cost)


def _cost(answer: Answer) -> Cost | None:
    cost = answer.said.cost
    return replace(cost, provider=answer.provider) if cost is not None and not cost.provider else cost


def _charge(answer: Answer, work: _Work, draft: Draft) -> None:
    """Charge the cost of work whose attempt is over: the provider bills it although its result is not used."""
    cost, step = _cost(answer), draft.steps.get(work.key.no)
    if cost is not None and step is not None:
        draft.effects.append(law.charge(draft, step, cost, work.attempt))


def _note(answer: Answer, work: _Work, draft: Draft, notes: list[Note]) -> Applied:
    said = answer.said
    if said.progress_pct is None and said.message is None and said.preview is None:
        return Applied.NOTED
    note = Note(
        work.key.job_id, work.key.no, work.attempt, said.progress_pct, said.message, said.preview, source=answer.source
    )
    if not note_law.note(draft, note, None if said.preview is None else msgspec.json.decode(said.preview)):
        return Applied.LATE
    notes.append(note)
    return Applied.NOTED


async def _look_again(connection: asyncpg.Connection, items: Sequence[_Item], works: Iterable[_Work]) -> None:
    """Match events of unknown work with work whose id was just learned; the ids' locks prevent a miss.

    The webhook applier applies an event whose work is known by now. This transaction cannot: the job's lock comes
    before the locks of ids that it holds.
    """
    learned = [(work.provider, work.external_id or "") for work in works if work.is_learned]
    unknown = [
        item
        for item in items
        if item.answer.event is not None
        and item.was is None
        and item.of is None
        and item.result is Applied.WAITING
        and item.external_id is not None
    ]
    ids = [(item.answer.provider, item.external_id or "") for item in unknown]
    if learned or ids:
        await connection.execute(sql("work_id_lock"), id_locks([*learned, *ids]))
    if learned:
        await release_events(connection, learned)
    if ids:
        for row in await connection.fetch(sql("work_known"), *_columns(ids)):
            unknown[row["place"] - 1].is_due = True


async def _write_works(connection: asyncpg.Connection, works: Iterable[_Work]) -> None:
    changed = [work for work in works if work.is_changed]
    if changed:
        rows = [(w.key.job_id, w.key.no, w.key.round, w.state, w.status, w.external_id) for w in changed]
        await connection.execute(sql("work_answered"), *_columns(rows))


_EVENT = ("provider", "id", "external_id", "state", "headers", "body", "said", "job_id", "no", "round")


async def _write_events(connection: asyncpg.Connection, items: Sequence[_Item], works: Mapping[WorkKey, _Work]) -> None:
    new: list[tuple[Any, ...]] = []
    moved: list[tuple[Any, ...]] = []
    for item in items:
        event = item.answer.event
        if item.result is Applied.REPLAYED or event is None:
            continue
        state = DUE if item.is_due else str(item.result)
        place = (None, None, None) if item.of is None else (item.of.job_id, item.of.no, item.of.round)
        name = (item.answer.provider, item.event_id)
        if item.was is None:
            external_id = item.external_id or (works[item.of].external_id if item.of is not None else None)
            said = encode(item.answer.said) if item.result is Applied.WAITING else None
            new.append((*name, external_id, state, encode(event.headers), event.body, said, *place))
        elif item.was == DUE or _EVENT_RANK[state] > _EVENT_RANK[item.was]:
            moved.append((*name, item.was, state, *place))
    if new:
        # Every commit inserts in the same order: an insert waits for an uncommitted event with the same id.
        new.sort(key=lambda row: row[:2])
        has_due = any(row[3] == DUE for row in new)
        columns = dict(zip(_EVENT, _columns(new), strict=True))
        if await connection.fetchval(*bound("event_put", **columns)) < len(new):
            raise _Raced
        if has_due:
            connection.ring(AnswerDue())
    if moved:
        await connection.execute(sql("event_moved"), *_columns(moved))


async def _release_events(connection: asyncpg.Connection, works: Iterable[_Work]) -> None:
    """Make events DUE whose work has ended. No step will take them, so the webhook applier marks them late."""
    ended = sorted((w.provider, w.external_id) for w in works if w.is_changed and w.state == ENDED and w.external_id)
    if ended:
        await release_events(connection, ended)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
