"""Explains what a step waits for in line or at a provider, from the rows that the granter itself uses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from windlass.store.provider_gate import gate_of
from windlass.store.statements import sql
from windlass.views.providers import Holder, breaker_state, holder_of

Told = tuple[str, dict[str, Any]]

HOLDERS_MAX = 100
# The most holders that a sentence names.
_NAMED_MAX = 3
_COUNTED_MAX = 1000


async def line_reason(connection: asyncpg.Connection, job_id: UUID, no: int) -> Told | None:
    """Explain what the step waits for in its line; None if it is not in a line."""
    row = await connection.fetchrow(sql("why_slot"), job_id, no)
    if row is None:
        return None
    if row["behind"] == "key":
        return await _behind_key(connection, row)
    if row["behind"] is not None:
        return await _short(connection, row)
    if row["provider"] and row["concurrency"] is not None:
        return await _at_provider(connection, row)
    return "the engine is about to start it", {}


async def work_reason(connection: asyncpg.Connection, job_id: UUID, no: int, until: str) -> Told | None:
    """Describe the provider job that the step waits for and its polls; None if there is none."""
    row = await connection.fetchrow(sql("why_work"), job_id, no)
    if row is None:
        return None
    named = f" ({row['external_id']})" if row["external_id"] else ""
    said = f", last status {row['status']}" if row["status"] else ""
    polls = "once" if row["polls"] == 1 else f"{row['polls']} times"
    asked = f"; polled {polls}, " if row["polls"] else "; "
    due = f"{asked}{'next' if row['polls'] else 'first'} poll at {_time(row['due_at'])}" if row["due_at"] else ""
    detail = {name: row[name] for name in ("provider", "external_id", "state", "status", "polls", "round")}
    return f"waits for {row['provider']}{named}{until}{said}{due}", {**detail, "next_poll": row["due_at"]}


async def _behind_key(connection: asyncpg.Connection, row: Any) -> Told:
    holders = await _holders(connection, "why_key_holders", row["key"])
    ahead = await connection.fetchval(
        sql("why_key_ahead"), row["key"], row["provider"], row["priority"], row["job_id"], row["no"]
    )
    taken = (await connection.fetchrow(sql("grant_keys"), [row["key"]]))["held"]
    detail = {
        "key": row["key"],
        "limit": row["most"],
        "takes": row["takes"],
        "taken": taken,
        "holders": _as_json(holders),
        "ahead": ahead,
    }
    amounts = _amounts(row["takes"], taken, row["most"], "")
    return f"waits for key {row['key']}: {amounts}{_named(holders)}; {_many(ahead)} ahead of it", detail


async def _short(connection: asyncpg.Connection, row: Any) -> Told:
    scope, _, name = row["behind"].partition(":")
    found = await connection.fetchrow(sql("budget_get"), scope, name)
    if found is None:
        return "the engine is about to start it", {}
    detail = {
        "budget": {key: found[key] for key in ("scope", "name", "most", "spent", "reserved")},
        "cost": row["cost"],
    }
    needs = f"it needs {row['cost']}" if row["cost"] is not None else "its cost is unknown"
    because = (
        f"waits for money: the budget of {scope} {name} is {found['most']}, of which {found['spent']} is spent and"
        f" {found['reserved']} reserved; {needs}"
    )
    return because, detail


async def _at_provider(connection: asyncpg.Connection, row: Any) -> Told:
    name = row["provider"]
    gate, now = gate_of(row), row["now"]
    holders = await _holders(connection, "provider_holders", name)
    ahead = await connection.fetchval(sql("why_ahead"), name, row["priority"], row["turn"], row["job_id"], row["no"])
    detail = {
        "provider": name,
        "concurrency": row["concurrency"],
        "places": row["places"],
        "taken": row["held"],
        "holders": _as_json(holders),
        "ahead": ahead,
        "rate": row["rate"],
        "breaker": breaker_state(gate.breaker, now),
        "paused_until": row["paused_until"],
    }
    line = f"{_many(ahead)} ahead of it"
    left = row["concurrency"] - row["held"]
    if min(row["places"], row["concurrency"]) > left:
        amounts = _amounts(row["places"], row["held"], row["concurrency"], " places")
        return f"waits for {name}: {amounts}{_named(holders)}; {line}", detail
    first = await connection.fetchrow(sql("provider_first"), name)
    if ahead and first is not None and min(first["places"], row["concurrency"]) > left:
        held = f"{row['held']} of {row['concurrency']} places held{_named(holders)}"
        return f"waits for {name}: {held}, and the first in line needs {first['places']}; {line}", detail
    opens_at = gate.opens_at(now)
    if row["paused_until"] is not None and row["paused_until"] > now:
        return f"{name} is busy and asked for a pause until {_time(row['paused_until'])}; {line}", detail
    if gate.breaker.is_open:
        error = f" ({row['error']})" if row["error"] else ""
        return f"{name} does not answer{error}; one step tries it at {_time(opens_at)}; {line}", detail
    # Right between two starts the rate limit has room for one request. A step behind others waits for the limit all the
    # same.
    if opens_at > now or ahead:
        return f"{name} takes at most {row['rate']:g} requests a second; {line}", detail
    return "the engine is about to start it", detail


async def _holders(connection: asyncpg.Connection, statement: str, name: str) -> list[Holder]:
    return [await holder_of(connection, row) for row in await connection.fetch(sql(statement), name, HOLDERS_MAX)]


def _amounts(needs: int, taken: int, most: int, what: str) -> str:
    return f"{taken} of {most}{what} held" if needs == 1 else f"needs {needs} of {most}{what}, {taken} are taken"


def _named(holders: Sequence[Holder]) -> str:
    if not holders:
        return ""
    named = ", ".join(f"{holder.step} of job {holder.job_id}" for holder in holders[:_NAMED_MAX])
    more = len(holders) - _NAMED_MAX
    return f" by {named}{f' and {more} more' if more > 0 else ''}"


def _as_json(holders: Sequence[Holder]) -> list[dict[str, Any]]:
    return [
        {"job": str(holder.job_id), "step": holder.step, "attempt": holder.attempt, "since": holder.since}
        for holder in holders
    ]


def _many(ahead: int) -> str:
    return "1,000 or more" if ahead >= _COUNTED_MAX else str(ahead)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
