"""Judges past jobs again by another policy, to show what a publish would have changed. Nothing is written.

A job is judged by what its rows say: recipe, inputs, labels, priority, and the facts about its caller that its first
event kept. Velocity limits count as not exceeded, because the counts of that time are gone. If the rows of a job are
gone, only the audit knows of it: it is counted as unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import asyncpg

from windlass.core.verdict import Decision, Edge, Verdict
from windlass.engine.asking import question_about
from windlass.engine.policies import Aside, here
from windlass.policy.judge import judge
from windlass.policy.rules import Policy
from windlass.store.database import Database
from windlass.store.statements import sql

DAYS_MAX = 7
JOBS_MAX = 1_000
CHANGED_MAX = 100
# The decision about a job that was submitted before the first policy.
NOT_JUDGED = "not_judged"
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ReplayedJob:
    """A job about which the other policy decides differently."""

    job_id: UUID
    recipe: str
    created_at: datetime
    before: str
    rule_before: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ReplayCell:
    """How many jobs had one decision and would get another one, or the same."""

    before: str
    after: Decision
    count: int

    @property
    def loosening(self) -> int:
        """How much more lenient the other policy is about these jobs; negative if it is stricter."""
        return _rank(self.before) - self.after.rank


@dataclass(frozen=True, slots=True)
class PolicyReplay:
    """What another policy would have decided about past jobs.

    `changed` has some of the jobs with another decision: first the refused jobs that would pass.
    """

    policy: str
    jobs: int
    # Jobs of this time whose rows are gone.
    unknown: int
    matrix: tuple[ReplayCell, ...]
    changed: tuple[ReplayedJob, ...]


async def replay(
    db: Database, policy: Policy, *, days: float = DAYS_MAX, limit: int = JOBS_MAX, aside: Aside = here
) -> PolicyReplay:
    """Judge the newest jobs of the last days by this policy."""
    span_s = min(days, DAYS_MAX) * _DAY_S
    most = min(limit, JOBS_MAX)
    rows = await db.run(lambda connection: connection.fetch(sql("policy_past_jobs"), span_s, most))
    unknown = await db.run(lambda connection: connection.fetchval(sql("policy_past_gone"), span_s, most))
    judged: list[ReplayedJob] = await aside(partial(_judged, policy, rows))
    return _told(policy, judged, unknown)


def _judged(policy: Policy, rows: Sequence[asyncpg.Record]) -> list[ReplayedJob]:
    return [
        ReplayedJob(
            row["id"],
            row["recipe"],
            row["created_at"],
            row["decision"] or (NOT_JUDGED if row["policy"] is None else Decision.ALLOW.value),
            row["decided_by"] or row["rule"] or "",
            judge(policy, question_about(row, Edge.SUBMIT)).verdict,
        )
        for row in rows
    ]


def _told(policy: Policy, judged: Sequence[ReplayedJob], unknown: int) -> PolicyReplay:
    counts = Counter((one.before, one.verdict.decision) for one in judged)
    cells = [ReplayCell(before, after, count) for (before, after), count in counts.items()]
    matrix = sorted(cells, key=lambda cell: (-cell.loosening if cell.loosening > 0 else 1, cell.before, cell.after))
    places = {(cell.before, cell.after): at for at, cell in enumerate(matrix)}
    changed = [one for one in judged if _rank(one.before) != one.verdict.decision.rank]
    # Sorting is stable, so the newest job of each cell comes first.
    changed.sort(key=lambda one: places[one.before, one.verdict.decision])
    return PolicyReplay(policy.hash, len(judged), unknown, tuple(matrix), tuple(changed[:CHANGED_MAX]))


def _rank(decision: str) -> int:
    """Return the strictness of a decision. A job that was not judged was let pass."""
    return Decision.ALLOW.rank if decision == NOT_JUDGED else Decision(decision).rank
