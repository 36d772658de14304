"""The rows of verdicts that follow from drafts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg

from windlass.core.draft import Draft
from windlass.core.effect import RecordVerdict
from windlass.core.verdict import Decision, Verdict
from windlass.store.columns import encode
from windlass.store.statements import sql


class VerdictWriter:
    """Writes verdicts, and which policy a job may go on under (store/writers.py)."""

    def touches(self, draft: Draft) -> bool:
        """Return whether the policy was asked."""
        return bool(draft.effects_of(RecordVerdict))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Write the verdicts in the order in which they were made. A plain yes has no row."""
        for draft in drafts:
            for made in draft.effects_of(RecordVerdict):
                if made.no is None:
                    about = (made.is_good, made.policy, made.verdict.rule, made.ask_at)
                    await connection.execute(sql("verdict_good"), draft.job.id, *about)
                if made.verdict.decision is not Decision.ALLOW:
                    await connection.execute(sql("verdict_put"), draft.job.id, *_row(made))


def _row(made: RecordVerdict) -> tuple[Any, ...]:
    verdict = made.verdict
    where = (made.edge, made.no, made.attempt)
    return (*where, verdict.decision, verdict.rule, made.policy, verdict.reason, constraints_text(verdict))


def constraints_text(verdict: Verdict) -> str | None:
    """Return the verdict's constraints as they are stored, or None if there are none."""
    plain = verdict.constraints.plain()
    return encode(plain) if plain else None
