"""Explains what an approval still needs: how many people, which people, and until when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.approval import voters_from_json
from windlass.core.verdict import Voters
from windlass.store.statements import sql


async def approval_reason(
    connection: asyncpg.Connection, job_id: UUID, no: int | None
) -> tuple[str, dict[str, Any]] | None:
    """Explain what the step, or the whole job, waits for. None if it waits for no approval."""
    row = await connection.fetchrow(sql("approval_why"), job_id, no)
    if row is None:
        return None
    count = f"{row['given']} of {row['need']}"
    asked = f" by {row['rule']}" if row["rule"] else ""
    people = people_text(msgspec.json.decode(row["who"]))
    told = f"waits for an approval{asked}: {count} given, by {people}, until {row['expires_at']:%Y-%m-%d %H:%M:%S} UTC"
    detail = {"approval": str(row["id"]), "question": row["question"], "given": row["given"], "need": row["need"]}
    return told, {name: value for name, value in detail.items() if value != ""}


def people_text(who: Sequence[Mapping[str, Any]]) -> str:
    """Return the people who may decide, as a phrase."""
    groups = [_group_text(voters_from_json(group)) for group in who]
    return ", and of those ".join(groups)


def _group_text(group: Voters) -> str:
    names = [*(f"role {role}" for role in sorted(group.roles)), *sorted(group.callers)]
    return " or ".join(names) if names else "everybody with the scope approvals:decide"
