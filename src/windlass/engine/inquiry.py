"""Asks a policy about requests and about past jobs, as people do before they publish. Nothing is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import asyncpg

from windlass.core.errors import BadInput
from windlass.core.verdict import Edge, OutputVerdict, Verdict
from windlass.engine import policies, velocity
from windlass.engine.policies import Policies
from windlass.engine.replay import DAYS_MAX, JOBS_MAX, PolicyReplay, replay
from windlass.policy.explain import Explanation, explain
from windlass.policy.judge import Judgement, judge
from windlass.policy.output import judge_output
from windlass.policy.question import Question
from windlass.policy.rules import Policy
from windlass.policy.texts import replaced
from windlass.store.database import Database


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The verdict of a version about a request, and the shadow rules that would have decided."""

    no: int
    verdict: Verdict | OutputVerdict
    would: tuple[Verdict | OutputVerdict, ...]


async def evaluate(db: Database, process: Policies, question: Question, no: int | None = None) -> Inquiry:
    """Judge a request as if no velocity limit were exceeded. `no` is another version than the one in force."""
    version, policy = await _policy(db, process, no)
    if question.edge is Edge.OUTPUT:
        output = judge_output(policy, question)
        return Inquiry(version, output.verdict, output.would)
    judgement = judge(policy, question)
    return Inquiry(version, judgement.verdict, judgement.would)


async def simulate(db: Database, process: Policies, question: Question, no: int | None = None) -> Inquiry:
    """Judge a request as if it were submitted now: the requests of the last windows are counted."""
    version, policy = await _policy(db, process, no)
    if question.edge is Edge.OUTPUT:
        return await evaluate(db, process, question, no)
    judgement = judge(policy, question)
    return Inquiry(version, judgement.given(await _exceeded(db, judgement)), judgement.would)


async def explained(
    db: Database, process: Policies, question: Question, no: int | None = None
) -> tuple[int, Explanation]:
    """Explain the verdict that `simulate` would give: for each rule, what came of it."""
    version, policy = await _policy(db, process, no)
    exceeded = () if question.edge is Edge.OUTPUT else await _exceeded(db, judge(policy, question))
    return version, explain(policy, question, exceeded)


async def replayed(
    db: Database,
    process: Policies,
    *,
    documents: Mapping[str, str] | None = None,
    is_whole: bool = False,
    no: int | None = None,
    days: float = DAYS_MAX,
    limit: int = JOBS_MAX,
) -> tuple[int | None, PolicyReplay]:
    """Judge past jobs by a version, or by documents as a publish would put them in force. Returns the version too."""
    if documents is None:
        version = (await policies.read(db, no)) if no is not None else await policies.read(db)
        texts = version.texts
        no = version.head.no
    elif no is not None:
        raise BadInput("documents and a version cannot be replayed together")
    else:
        in_force = (await policies.read_now(db)).no
        known = () if is_whole or not in_force else (await policies.read(db, in_force)).texts
        texts = replaced(known, documents)
    loaded = await policies.loaded(texts, process.aside)
    return no, await replay(db, loaded.policy, days=days, limit=limit, aside=process.aside)


async def _policy(db: Database, process: Policies, no: int | None) -> tuple[int, Policy | None]:
    if no is None:
        current = await process.current(db)
        return current.no, current.policy
    version = await policies.read(db, no)
    return no, (await policies.loaded(version.texts, process.aside)).policy


async def _exceeded(db: Database, judgement: Judgement) -> set[str]:
    """Return the counters whose limits are exceeded. Nothing is counted."""
    if not judgement.checks:
        return set()

    async def operation(connection: asyncpg.Connection) -> set[str]:
        return await velocity.exceeded(connection, judgement.checks)

    return await db.run(operation)
