"""Keeps what shadow rules would have decided: counts by minute, and the newest examples.

A judge notes them in memory, and the process writes them every few seconds (`engine/policy_watch.py`), so no job waits
for them. A process that is killed loses its last seconds. The tables are bounded: counts of a day, KEPT_MAX examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from windlass.core.verdict import OutputVerdict, Verdict
from windlass.policy.question import Question
from windlass.store.database import Database
from windlass.store.statements import bound, sql

KEPT_MAX = 100
COUNTS_KEPT_S = 86_400.0
# Different counts and examples that a process holds between two writes. Further rules are counted together.
RULES_MAX = 1_000
EXAMPLES_OF_RULE_MAX = 5
OTHERS = "others"
REASON_CHARS_MAX = 300
COUNTS_TOLD_MAX = 2_000


@dataclass(frozen=True, slots=True)
class ShadowExample:
    """A request about which a shadow rule would have decided."""

    policy: int
    rule: str
    decision: str
    reason: str
    edge: str
    topic: str
    tenant: str | None
    job_id: str | None
    caller: str | None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ShadowCount:
    """How often a shadow rule would have decided within a minute."""

    minute: datetime
    policy: int
    rule: str
    decision: str
    count: int


class Shadows:
    """The verdicts of shadow rules that a process has not written yet."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str, str], int] = {}
        self._examples: dict[tuple[int, str, str], list[ShadowExample]] = {}

    def note(self, policy: int, question: Question, would: Sequence[Verdict | OutputVerdict]) -> None:
        """Note what the shadow rules of this version would have decided about a request."""
        for verdict in would:
            key = (policy, verdict.rule, verdict.decision.value)
            if key not in self._counts and len(self._counts) >= RULES_MAX:
                key = (policy, OTHERS, verdict.decision.value)
            self._counts[key] = self._counts.get(key, 0) + 1
            if len(examples := self._examples.setdefault(key, [])) < EXAMPLES_OF_RULE_MAX:
                examples.append(_example(policy, question, verdict))

    async def flush(self, db: Database) -> int:
        """Write what was noted since the last call; return the number of requests. If that fails, it is kept."""
        if not self._counts:
            return 0
        counts, self._counts = self._counts, {}
        noted, self._examples = self._examples, {}
        keys = sorted(counts)
        examples = [example for key in keys for example in noted[key]][-KEPT_MAX:]
        put = bound(
            "policy_shadow_put",
            counted_policies=[policy for policy, _, _ in keys],
            counted_rules=[rule for _, rule, _ in keys],
            counted_decisions=[decision for _, _, decision in keys],
            counts=[counts[key] for key in keys],
            policies=[one.policy for one in examples],
            rules=[one.rule for one in examples],
            decisions=[one.decision for one in examples],
            reasons=[one.reason for one in examples],
            edges=[one.edge for one in examples],
            topics=[one.topic for one in examples],
            tenants=[one.tenant for one in examples],
            jobs=[one.job_id for one in examples],
            callers=[one.caller for one in examples],
        )
        try:
            await db.run(lambda connection: connection.execute(*put))
        except BaseException:
            self._take_back(counts, noted)
            raise
        await db.run(lambda connection: connection.execute(sql("policy_shadow_trim"), KEPT_MAX, COUNTS_KEPT_S))
        return sum(counts.values())

    def _take_back(
        self, counts: dict[tuple[int, str, str], int], noted: dict[tuple[int, str, str], list[ShadowExample]]
    ) -> None:
        for key, count in counts.items():
            self._counts[key] = self._counts.get(key, 0) + count
            self._examples[key] = [*noted[key], *self._examples.get(key, [])][:EXAMPLES_OF_RULE_MAX]


async def counts(db: Database, since_s: float = 3600.0) -> list[ShadowCount]:
    """Return the counts of the last seconds, the newest minute first."""
    values = (min(since_s, COUNTS_KEPT_S), COUNTS_TOLD_MAX)
    rows = await db.run(lambda connection: connection.fetch(sql("policy_shadow_counts"), *values))
    return [ShadowCount(row["minute"], row["policy"], row["rule"], row["decision"], row["count"]) for row in rows]


async def examples(db: Database, limit: int = KEPT_MAX) -> list[ShadowExample]:
    """Return the newest examples, the newest first."""
    rows = await db.run(lambda connection: connection.fetch(sql("policy_shadow_examples"), min(limit, KEPT_MAX)))
    return [ShadowExample(**dict(row)) for row in rows]


def _example(policy: int, question: Question, verdict: Verdict | OutputVerdict) -> ShadowExample:
    return ShadowExample(
        policy,
        verdict.rule,
        verdict.decision.value,
        verdict.reason[:REASON_CHARS_MAX].replace("\x00", " "),
        question.edge.value,
        question.topic,
        question.tenant or None,
        question.job_id or None,
        question.caller.id or None,
    )
