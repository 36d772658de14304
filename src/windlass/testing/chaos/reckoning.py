"""The rules for provider work: compares the provider's journal with the tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from windlass.core.external import WorkKey
from windlass.providers.poller import GAVE_UP, NEVER_TOLD
from windlass.testing.chaos import lines
from windlass.testing.chaos.lines import Row
from windlass.testing.chaos.outside import PROVIDERS
from windlass.testing.fake_provider import Entry

# This provider cannot look up work by key. When the request that started the work was cut off, Windlass never learned
# its id and cannot cancel it. Its row says so, and stays open.
_CANNOT_FIND = "singer"
_NAMELESS = f"{GAVE_UP}: {NEVER_TOLD}"
_OPEN = (
    "SELECT (SELECT count(*) FROM windlass.provider_jobs WHERE state <> 'ENDED'"
    f" AND NOT coalesce(provider = '{_CANNOT_FIND}' AND external_id IS NULL AND status = '{_NAMELESS}', false))"
    " + (SELECT count(*) FROM windlass.provider_events WHERE state = 'DUE')"
)


@dataclass(frozen=True, slots=True)
class OutsideEvidence:
    """The provider's journal, and the rows of the database about it."""

    entries: Sequence[Entry] = ()
    work: Sequence[Row] = ()
    events: Sequence[Row] = ()
    signals: Sequence[Row] = ()
    lines: Sequence[Row] = ()
    slots: int = 0
    waits: int = 0


async def gather_outside(connection: asyncpg.Connection, entries: Sequence[Entry]) -> OutsideEvidence:
    """Read all evidence about provider work."""
    return OutsideEvidence(
        entries,
        await connection.fetch("SELECT * FROM windlass.provider_jobs ORDER BY job_id, no, round"),
        await connection.fetch(
            "SELECT provider, id, external_id, state, job_id, no, round FROM windlass.provider_events"
        ),
        await connection.fetch("SELECT job_id, id, taken_no FROM windlass.signals ORDER BY seq"),
        await lines.read(connection),
        await connection.fetchval("SELECT count(*) FROM windlass.slots"),
        await connection.fetchval("SELECT count(*) FROM windlass.waits"),
    )


async def count_open(connection: asyncpg.Connection) -> int:
    """Count the provider work and provider events that are still open."""
    return int(await connection.fetchval(_OPEN))


def complaints(found: OutsideEvidence, signals: Mapping[tuple[UUID, str], str]) -> Iterator[tuple[str, str]]:
    """Yield each broken rule, and how it was broken."""
    yield from _work(found)
    yield from _events(found)
    yield from _signals(found, signals)
    limits = lines.limits(found.lines, {name: places for name, (_, _, places, _) in PROVIDERS.items()})
    for line, most in lines.held_at_most(found.lines).items():
        if most > limits[line]:
            yield "over the limit", f"{line} has {limits[line]} places, and {most} were held at one commit"
    if found.slots:
        yield "held", f"{found.slots} slots are left after the end"
    if found.waits:
        yield "held", f"{found.waits} waits are left after the end"


def _work(found: OutsideEvidence) -> Iterator[tuple[str, str]]:
    rows = {_key(row): row for row in found.work}
    taken = [entry for entry in found.entries if entry.kind == "accepted"]
    for key, count in Counter(entry.key for entry in taken).items():
        if count > 1:
            yield "done twice", f"the provider has {count} pieces of work for {key}"
    for entry in taken:
        row = rows.get(entry.key)
        if row is None:
            yield "unrecorded", f"the provider was given {entry.key}, which has no row"
        elif row["external_id"] is not None and row["external_id"] != entry.id:
            yield "misnamed", f"{entry.key} is {entry.id} at the provider, and {row['external_id']} here"
    for key, row in rows.items():
        place = (row["provider"], row["external_id"], row["status"])
        if row["state"] != "ENDED" and place != (_CANNOT_FIND, None, _NAMELESS):
            yield "still open", f"work {key} at {row['provider']} is {row['state']}: {row['status']}"


def _events(found: OutsideEvidence) -> Iterator[tuple[str, str]]:
    """Check that no webhook answered with success is lost, and that at most one webhook settles a step."""
    kept = {row["id"] for row in found.events}
    for entry in found.entries:
        if entry.kind == "webhook" and 200 <= entry.answer < 300 and entry.event not in kept:
            yield "webhook lost", f"{entry.event} of {entry.id} was answered {entry.answer}, and is not kept"
    applied: dict[Any, list[str]] = defaultdict(list)
    names = {(row["provider"], row["external_id"]) for row in found.work}
    for row in found.events:
        if row["state"] == "APPLIED":
            applied[row["job_id"], row["no"], row["round"]].append(row["id"])
        if row["state"] in ("WAITING", "DUE") and (row["provider"], row["external_id"]) in names:
            yield "webhook waits", f"{row['id']} of {row['external_id']} is still {row['state']}"
    for place, ids in applied.items():
        if len(ids) > 1:
            yield "applied twice", f"{ids} all settled {place}"


def _signals(found: OutsideEvidence, heard: Mapping[tuple[UUID, str], str]) -> Iterator[tuple[str, str]]:
    kept = {(row["job_id"], row["id"]): row for row in found.signals}
    for place, said in heard.items():
        if place not in kept:
            yield "event lost", f"{place} was {said}, and is not kept"
    taken = Counter((row["job_id"], row["taken_no"]) for row in found.signals if row["taken_no"] is not None)
    for place, count in taken.items():
        if count > 1:
            yield "taken twice", f"{count} events completed step {place}"


def _key(row: Row) -> str:
    return str(WorkKey(row["job_id"], row["no"], row["round"]))


def account(found: OutsideEvidence) -> list[str]:
    """Summarise the provider work for the report."""
    kinds = Counter(entry.kind for entry in found.entries)
    faults = Counter(entry.way for entry in found.entries if entry.kind == "fault")
    states = Counter(row["state"] for row in found.events)
    most = lines.held_at_most(found.lines)
    work = (
        f"{kinds['accepted']} pieces of work, asked for again {kinds['repeated']} times, {kinds['cancelled']} cancelled"
    )
    told = f"{kinds['webhook']} webhooks, {sum(faults.values())} faults of its own"
    return [
        f"provider: {work}; {told}",
        f"webhooks kept: {', '.join(f'{count} {state}' for state, count in sorted(states.items())) or 'none'}",
        f"held at once: {', '.join(f'{count} of {line}' for line, count in sorted(most.items())) or 'nothing'}",
    ]
