"""The policy at the edge to providers: judges a request before it goes out, in the commit that records it.

The job's own verdict may limit destinations, whatever rule is asked here. Nothing is allowed to wait at this edge: a
throttle makes the step try again later without using up an attempt, and a rule that asks for an approval refuses,
because only a whole job and `wl.approve()` can wait for people.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.effect import RecordVerdict
from windlass.core.gatekeeping import at_destination
from windlass.core.verdict import NO_RULE, Decision, Edge, Verdict
from windlass.engine.asking import question_about
from windlass.engine.door import judge_one
from windlass.engine.policies import Current
from windlass.policy.question import topic_of
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.store.verdicts import put


class ProviderRequest(NamedTuple):
    """A request that an attempt of a step is about to send."""

    job_id: UUID
    no: int
    attempt: int
    step: str
    provider: str
    model: str
    host: str


async def judge_request(connection: asyncpg.Connection, gate: Current, request: ProviderRequest) -> Verdict | None:
    """Return the verdict that keeps the request from going out, or None. The transaction has entered the gate."""
    await drafts.lock(connection, [request.job_id])
    rows = await connection.fetch(sql("verdict_questions"), [request.job_id])
    if not rows:
        # The job has ended, so the attempt is over too.
        return None
    limits = await _limits(connection, request.job_id)
    verdict = at_destination(_verdict(gate, rows[0], request), limits, request.provider, request.host)
    if verdict.decision.admits:
        return None
    if verdict.decision is Decision.REQUIRE_APPROVAL:
        reason = f"{verdict.reason}; a request to a provider cannot wait for an approval"
        verdict = replace(verdict, decision=Decision.DENY, reason=reason, approval=None)
    made = RecordVerdict(verdict, gate.no, Edge.PROVIDER, request.no, request.attempt)
    await put(connection, request.job_id, made)
    return verdict


def _verdict(gate: Current, row: asyncpg.Record, request: ProviderRequest) -> Verdict:
    topic = topic_of(row["recipe"], request.step)
    if gate.policy is not None and not gate.policy.is_asked(Edge.PROVIDER, topic):
        return Verdict(Decision.ALLOW, NO_RULE)
    asked = replace(
        question_about(row, Edge.PROVIDER),
        topic=topic,
        step=request.step,
        provider=request.provider,
        model=request.model,
        host=request.host,
    )
    return judge_one(gate, asked).verdict


async def constraints_of(db: Database, job_id: UUID) -> dict[str, Any]:
    """Return the constraints of the verdict under which the job goes on, as a document has them."""
    text = await db.run(lambda connection: connection.fetchval(sql("verdict_limits"), job_id))
    found: dict[str, Any] = msgspec.json.decode(text or "{}")
    return found


async def _limits(connection: asyncpg.Connection, job_id: UUID) -> Constraints:
    """Return the part of the job's constraints that concerns requests."""
    text = await connection.fetchval(sql("verdict_limits"), job_id)
    plain = msgspec.json.decode(text or "{}")
    if "allowed_destinations" not in plain:
        return NO_CONSTRAINTS
    return Constraints(allowed_destinations=frozenset(plain["allowed_destinations"]))
