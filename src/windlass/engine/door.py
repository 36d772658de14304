"""The door: every new job is judged by the policy before the commit that makes it, whoever asks for the job.

    the process's policy ─► judge ─► one commit: [policy_check, counters, job, steps, verdict, event]
                              ▲                      │ WL002: another policy is in force
                              └──── read it again ◄──┘

    ALLOW                    the job, with the policy's number and the rule
    ALLOW_WITH_CONSTRAINTS   the same, and a verdict with the constraints
    THROTTLE                 PENDING, its steps are held; the warden asks again
    REQUIRE_APPROVAL         APPROVAL_REQUIRED, its steps are held; people are asked in the same commit
    DENY                     DENIED, no step runs; the caller gets `Denied` with the job's id

`insert` (engine/submit.py) takes the policy as an argument, so no path to a job can leave it out: submit, batches,
child jobs, spawned jobs, re-runs, redrives and bulk retries. `gated` provides it and begins again after WL002.

Until a policy is published nothing is judged: the same statements, and no further round trip. A process that has not
heard of the first publish makes jobs without a number, and no claim takes them before they are judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import asyncpg

from windlass.core.bell import TimerSet
from windlass.core.errors import Denied, Unavailable
from windlass.core.gatekeeping import AUTHORISED, UNDO_ALLOWED, fault_of, hold_of, wait_s
from windlass.core.verdict import UNDO, Decision, Edge, Verdict, waiting
from windlass.engine.asker import Asker, known_asker
from windlass.engine.job_approvals import ask_for_new, request_of, subject_of
from windlass.engine.job_rows import UNJUDGED, Marks
from windlass.engine.places import JobPlaces
from windlass.engine.policies import Current, Policies, is_changed
from windlass.engine.submission import Submission
from windlass.engine.velocity import Decided, Velocity
from windlass.policy.judge import Judgement, joined
from windlass.policy.question import Question, topic_of
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.store.verdicts import attempts_max, constraints_text, runs_s

T = TypeVar("T")
# The source of the events about verdicts.
SOURCE = "policy"
# Publishes that may follow each other while one submit is judged.
TRIES_MAX = 5

# One for each process's database: every path to a job has the database, and a path that had to be given the policy
# separately could be given none.
_POLICIES: WeakKeyDictionary[Database, Policies] = WeakKeyDictionary()


def policies_of(db: Database) -> Policies:
    """Return the policies that jobs of this database are judged by."""
    found = _POLICIES.get(db)
    if found is None:
        found = _POLICIES[db] = Policies(lambda: asyncio.get_running_loop().time())
    return found


def judge_by(db: Database, policies: Policies) -> None:
    """Judge the jobs of this database by these policies: with its settings for signatures, and one copy a process."""
    _POLICIES[db] = policies


async def gated(db: Database, operation: Callable[[asyncpg.Connection, Current], Awaitable[T]]) -> T:
    """Execute an operation that makes jobs, with the policy to judge them by. Begins again if the policy changes."""
    policies = policies_of(db)
    for _ in range(TRIES_MAX):
        gate = await policies.current(db)
        try:
            return await db.run(lambda connection, gate=gate: operation(connection, gate))  # type: ignore[misc]
        except asyncpg.PostgresError as error:
            if not is_changed(error):
                raise
            policies.expire()
    raise Unavailable("the policy changes faster than the request can be judged", remedy="Try again")


async def enter(connection: asyncpg.Connection, gate: Current) -> None:
    """Take the lock of the policy. A transaction that makes jobs takes it before it locks jobs."""
    if gate.is_gated:
        await connection.execute(sql("policy_enter"), gate.no)


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgements about submissions, by one version of the policy. `policy` is None if nothing is judged."""

    policy: int | None = None
    askers: tuple[Asker, ...] = ()
    judgements: tuple[Judgement, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether every job may go on without a limit, so that the columns of its row are all that is written."""
        return all(one.verdict.decision is Decision.ALLOW and not one.branches for one in self.judgements)

    def marks(self, verdicts: Sequence[Verdict]) -> Marks:
        """Return what the rows of the jobs say about their verdicts."""
        if self.policy is None:
            return UNJUDGED
        good = [verdict.decision.admits for verdict in verdicts]
        # Jobs that are submitted together mostly have one caller and one rule: they share one value.
        told: dict[tuple[str, Asker], Mapping[str, Any]] = {}
        pairs = [(verdict.rule, asker) for verdict, asker in zip(verdicts, self.askers, strict=True)]
        for rule, asker in dict.fromkeys(pairs):
            told[rule, asker] = {"policy": self.policy, "rule": rule, "caller": asker.plain}
        return Marks(
            self.policy,
            [self._number(verdict) for verdict in verdicts],
            [verdict.rule if is_good else None for verdict, is_good in zip(verdicts, good, strict=True)],
            [told[pair] for pair in pairs],
        )

    def _number(self, verdict: Verdict) -> int | None:
        """Return the number of the policy by which the job may go on, or None."""
        if not verdict.decision.admits:
            return None
        return AUTHORISED if verdict.rule == UNDO else self.policy


NOT_JUDGED = Judged()


async def judge_all(connection: asyncpg.Connection, gate: Current, submissions: Sequence[Submission]) -> Judged:
    """Judge new jobs. Reads only the facts about callers that no request told."""
    if not gate.is_gated:
        return NOT_JUDGED
    known = await _known(connection, submissions)
    askers = tuple(s.asker or known[s.caller] for s in submissions)
    pairs = zip(submissions, askers, strict=True)
    return Judged(gate.no, askers, tuple(_judgement(gate, s, asker) for s, asker in pairs))


def _judgement(gate: Current, submission: Submission, asker: Asker) -> Judgement:
    if submission.plan.is_undo:
        return Judgement(UNDO_ALLOWED)
    return judge_one(gate, question_of(submission, asker))


def judge_one(gate: Current, question: Question, told: Verdict | None = None) -> Judgement:
    """Judge one question. Without a policy that can be used, the answer is DENY and says why.

    `told` is the verdict of the kernel outside of the processes. A new job waits for it, unless the policy denies the
    job. It is not counted under velocity limits until then.
    """
    found = gate.judge(question)
    if told is not None:
        return joined(found, told)
    return until_told(gate, found) if question.edge is Edge.SUBMIT else found


def until_told(gate: Current, found: Judgement) -> Judgement:
    """Return the judgement about a job that the kernel, if there is one, must judge: it waits, or is denied."""
    if not gate.kernel or found.verdict.decision is Decision.DENY:
        return found
    return Judgement(waiting(gate.kernel), would=found.would)


def question_of(submission: Submission, asker: Asker) -> Question:
    """Return the question about a new job."""
    return Question(
        Edge.SUBMIT,
        topic_of(submission.plan.recipe),
        recipe=submission.plan.recipe,
        job_id=str(submission.job_id),
        tenant=asker.tenant,
        caller=asker.facts,
        labels=submission.labels or {},
        inputs=submission.inputs,
        priority=submission.priority,
        depth=submission.depth,
    )


async def _known(connection: asyncpg.Connection, submissions: Sequence[Submission]) -> Mapping[str, Asker]:
    callers = sorted({s.caller for s in submissions if s.asker is None})
    found = {caller: known_asker(caller) for caller in callers}
    named = [caller for caller, asker in found.items() if not asker.facts.scopes]
    for row in await connection.fetch(sql("caller_known"), named) if named else []:
        found[row["caller"]] = known_asker(row["caller"], row["caller_type"] or "", row["tier"] or "")
    return found


class Ruled:
    """The final verdicts about submissions: those of the judge, after the counters of velocity limits were read."""

    def __init__(
        self,
        judged: Judged,
        decided: Sequence[Decided],
        counters: tuple[Velocity, JobPlaces],
        submissions: Sequence[Submission],
    ) -> None:
        self._velocity, self._places = counters
        triples = zip(decided, judged.askers, submissions, strict=True)
        verdicts = [self._places.verdict(one.verdict, asker.tenant, s.job_id) for one, asker, s in triples]
        self._verdicts, self._decided = verdicts, decided
        self.submissions = [shaped(s, verdict) for s, verdict in zip(submissions, verdicts, strict=True)]
        self.marks = judged.marks(verdicts)
        self._policy = judged.policy

    @classmethod
    async def locked(cls, connection: asyncpg.Connection, judged: Judged, submissions: Sequence[Submission]) -> Ruled:
        """Lock the policy and the counters, and decide."""
        await connection.execute(sql("policy_enter"), judged.policy)
        velocity = await Velocity.locked(connection, judged.judgements)
        decided = [velocity.decide(one) for one in judged.judgements]
        tenants = [asker.tenant for asker in judged.askers]
        asked = [(one.verdict, tenant) for one, tenant in zip(decided, tenants, strict=True)]
        return cls(judged, decided, (velocity, await JobPlaces.locked(connection, asked)), submissions)

    async def record(self, connection: asyncpg.Connection, made: Sequence[UUID]) -> None:
        """Write what follows from the verdicts about the jobs that this transaction made."""
        new = set(made)
        triples = zip(self.submissions, self._verdicts, self._decided, strict=True)
        ruled = [(s, verdict, decided) for s, verdict, decided in triples if s.job_id in new]
        for _, verdict, decided in ruled:
            if verdict.decision.admits:
                self._velocity.count(decided)
        await self._velocity.write(connection)
        await self._places.write(connection, [s.job_id for s in self.submissions if s.job_id not in new])
        await _write(connection, self._policy, [(s, verdict) for s, verdict, _ in ruled])


def shaped(submission: Submission, verdict: Verdict) -> Submission:
    """Return the submission of the job that the verdict lets in: held, ended, or limited."""
    if verdict.decision is Decision.DENY:
        return submission._replace(is_denied=True)
    if hold := hold_of(verdict.decision):
        return submission._replace(holds=submission.holds | hold)
    most_s = runs_s(verdict)
    if most_s is not None and (submission.deadline_s is None or most_s < submission.deadline_s):
        return submission._replace(deadline_s=most_s)
    return submission


def denied_by(job_id: UUID, rule: str, reason: str) -> Denied:
    """Return the answer to a submission whose job is denied."""
    return Denied(f"the policy denies job {job_id}: {reason} (rule {rule})", job_id=str(job_id), rule=rule)


async def refusal_of(connection: asyncpg.Connection, job_id: UUID) -> Denied | None:
    """Return the answer that the submitter of this job got, if its submit denied it."""
    row = await connection.fetchrow(sql("verdict_refused"), job_id)
    return None if row is None else denied_by(job_id, row["rule"], row["reason"])


async def _write(
    connection: asyncpg.Connection, policy: int | None, ruled: Sequence[tuple[Submission, Verdict]]
) -> None:
    told = [(s, verdict) for s, verdict in ruled if verdict.decision is not Decision.ALLOW]
    if not told:
        return
    rows = [(s.job_id, v.decision, v.rule, v.reason, constraints_text(v)) for s, v in told]
    *columns, constraints = (list(column) for column in zip(*rows, strict=True))
    await connection.execute(sql("verdict_first"), *columns, policy, constraints)
    gone = [(s.job_id, encode(fault_of(v).as_json())) for s, v in told if v.decision is Decision.DENY]
    if gone:
        await connection.execute(sql("verdict_deny_new"), *(list(column) for column in zip(*gone, strict=True)))
    paid = [(s.job_id, min(most, s.budget or most)) for s, v in told if (most := v.constraints.max_cost) is not None]
    if paid:
        # A budget that the submitter asked for is stored later, and this one stands.
        await connection.execute(sql("job_budget"), *(list(column) for column in zip(*paid, strict=True)))
    limited = [(s.job_id, tries) for s, v in told if (tries := attempts_max(v)) is not None]
    if limited:
        await connection.execute(sql("verdict_limit_new"), *(list(column) for column in zip(*limited, strict=True)))
    held = [(s.job_id, _wait_s(s, v)) for s, v in told if hold_of(v.decision)]
    if held:
        await connection.execute(sql("verdict_hold_new"), *(list(column) for column in zip(*held, strict=True)))
        if any(wait_s == 0 for _, wait_s in held):
            # The kernel asker asks at once.
            connection.ring(TimerSet())
    asked = [(s, v) for s, v in told if v.decision is Decision.REQUIRE_APPROVAL]
    if asked:
        await ask_people(connection, policy, asked)


def _wait_s(submission: Submission, verdict: Verdict) -> float | None:
    # The id's random bits spread the questions about jobs that were submitted together.
    spread = submission.job_id.int % 1024 / 1024
    return wait_s(verdict, 0, spread) if verdict.decision is Decision.THROTTLE else None


async def ask_people(
    connection: asyncpg.Connection, policy: int | None, asked: Sequence[tuple[Submission, Verdict]]
) -> None:
    """Ask people about new jobs that need an approval, in the commit that makes the jobs."""
    requests = []
    for one, verdict in asked:
        inputs, constraints = encode(one.inputs), constraints_text(verdict)
        subject = subject_of(one.plan.hash, one.caller, inputs, one.labels or {}, constraints)
        requests.append((one.job_id, request_of(subject, verdict, policy)))
    await ask_for_new(connection, requests, SOURCE)
