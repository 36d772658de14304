"""Questions about jobs that exist, from their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import asyncpg
import msgspec

from windlass.core.verdict import Edge
from windlass.engine.asker import Asker, known_asker, stored_asker
from windlass.policy.question import Question, topic_of


def question_about(row: asyncpg.Record, edge: Edge) -> Question:
    """Return the question about the whole job of a row of `verdict_questions`."""
    asker = asker_in(row)
    return Question(
        edge,
        topic_of(row["recipe"]),
        recipe=row["recipe"],
        job_id=str(row["id"]),
        tenant=asker.tenant,
        caller=asker.facts,
        labels=msgspec.json.decode(row["labels"] or "{}"),
        inputs=msgspec.json.decode(row["input"]),
        priority=row["priority"],
        depth=row["depth"],
    )


def asker_in(row: asyncpg.Record) -> Asker:
    """Return the facts of the submit. For a job that was submitted before any policy, those of its caller now."""
    if row["asker"] is not None:
        return stored_asker(row["caller"], msgspec.json.decode(row["asker"]))
    known: Mapping[str, Any] = msgspec.json.decode(row["known"] or "{}")
    return known_asker(row["caller"], known.get("caller_type") or "", known.get("tier") or "")
