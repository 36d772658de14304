"""Gatekeeping: what a verdict about a whole job changes.

    at the submit      ALLOW ─► as ever     THROTTLE ─► PENDING, steps held     REQUIRE_APPROVAL ─► APPROVAL_REQUIRED
                       DENY ─► DENIED, no step ever runs
    judged again       ALLOW ─► the holds go     THROTTLE, REQUIRE_APPROVAL ─► queued steps are held     DENY ─► DENIED

A job is judged again when a newer policy is in force, and when its throttle is over. A verdict that lets a job go on
is its *good* verdict; the job's row has the number of that policy, and a claim takes nothing whose good verdict is
older than the policy allows. So a job that has begun is held by its missing good verdict: steps that become ready
later are not claimed either, and are held when a claim finds them.

DENY ends a job whenever it comes. Its running attempts are cancelled, and what they report later is refused: a policy
that forbids a job does not wait until the job has done its work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from windlass.core.constraint import Constraints
from windlass.core.draft import Draft
from windlass.core.effect import RecordVerdict
from windlass.core.glob import Glob
from windlass.core.graph import end
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import DESTINATION_DENIED, SAFETY_DENIED, VELOCITY_EXCEEDED, Fault
from windlass.core.states import JobState
from windlass.core.verdict import KERNEL_WAIT, UNDO, Decision, Edge, Verdict, denied

# A throttled job is asked about again after this time, and then after 2^n s, at most ASK_MAX_S.
THROTTLE_S = 5.0
ASK_MAX_S = 30.0
JITTER_S = 0.5
# The rule of a refusal by `allowed_destinations`, which no document contains.
DESTINATION = "windlass:destination"
# The number of the good verdict of an undo job. An undo is authorised with the steps that it undoes, so no later policy
# makes the verdict old. It is the largest whole number that JSON carries exactly.
AUTHORISED = 2**53 - 1

UNDO_ALLOWED = Verdict(Decision.ALLOW, UNDO, "an undo is authorised with the steps that it undoes")

_HOLDS: Mapping[Decision, Hold] = {
    Decision.ALLOW: NO_HOLD,
    Decision.ALLOW_WITH_CONSTRAINTS: NO_HOLD,
    Decision.THROTTLE: Hold.POLICY,
    Decision.REQUIRE_APPROVAL: Hold.APPROVAL,
    Decision.DENY: NO_HOLD,
}


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict about a job, and the number of its policy. `spread` in [0, 1) spreads the next question."""

    verdict: Verdict
    policy: int | None
    edge: Edge = Edge.CLAIM
    spread: float = 0.0


def hold_of(decision: Decision) -> Hold:
    """Return the hold that a decision puts on the steps of a job."""
    return _HOLDS[decision]


def fault_of(verdict: Verdict) -> Fault:
    """Return the error of a job that a verdict denies."""
    code = SAFETY_DENIED if verdict.velocity is None else VELOCITY_EXCEEDED
    if verdict.rule == DESTINATION:
        code = DESTINATION_DENIED
    return Fault(code, f"{verdict.reason or 'the policy denies it'} (rule {verdict.rule})")


def at_destination(verdict: Verdict, limits: Constraints, provider: str, host: str) -> Verdict:
    """Return the verdict about a request to this host, under the limits of the job and of the verdict itself.

    An unknown host is refused where destinations are limited.
    """
    allowed = limits.meet(verdict.constraints).allowed_destinations
    if not verdict.decision.admits or allowed is None or any(Glob(one).matches(host) for one in sorted(allowed)):
        return verdict
    return denied(DESTINATION, f"{host or f'the unknown host of {provider}'} is not among the allowed destinations")


def ask_after_s(tries: int, spread: float) -> float:
    """Return how long a throttled job waits for the next question, after this many questions."""
    base_s = THROTTLE_S if tries == 0 else 2.0 ** min(tries + 2, 10)
    return min(ASK_MAX_S, base_s + spread * JITTER_S)


def wait_s(verdict: Verdict, tries: int, spread: float) -> float:
    """Return how long a job that this verdict throttles waits for the next question. A kernel is asked at once."""
    return 0.0 if verdict.rule == KERNEL_WAIT else ask_after_s(tries, spread)


def rule_on(draft: Draft, ruling: Ruling, tries: int = 0) -> bool:
    """Apply a later verdict to a job and to its loaded open steps. Return whether the job may go on.

    `tries` counts the questions that the policy answered with a throttle in a row.
    """
    if draft.is_finished:
        return False
    verdict = ruling.verdict
    match verdict.decision:
        case Decision.ALLOW | Decision.ALLOW_WITH_CONSTRAINTS:
            _go_on(draft, ruling)
            return True
        case Decision.THROTTLE:
            _hold(draft, Hold.POLICY)
            _release(draft, Hold.APPROVAL)
            if draft.job.state is JobState.APPROVAL_REQUIRED:
                draft.move_job(JobState.PENDING)
            wait = timedelta(seconds=wait_s(verdict, tries, ruling.spread))
            draft.effects.append(RecordVerdict(verdict, ruling.policy, ruling.edge, ask_at=draft.now + wait))
        case Decision.REQUIRE_APPROVAL:
            _hold(draft, Hold.APPROVAL)
            _release(draft, Hold.POLICY)
            if draft.job.state is JobState.PENDING:
                draft.move_job(JobState.APPROVAL_REQUIRED)
            draft.effects.append(RecordVerdict(verdict, ruling.policy, ruling.edge))
        case Decision.DENY:
            draft.effects.append(RecordVerdict(verdict, ruling.policy, ruling.edge))
            end(draft, JobState.DENIED, fault_of(verdict))
        case _:
            assert_never(verdict.decision)
    return False


def _go_on(draft: Draft, ruling: Ruling) -> None:
    if draft.job.state is JobState.APPROVAL_REQUIRED:
        draft.move_job(JobState.PENDING)
    _release(draft, Hold.POLICY)
    _release(draft, Hold.APPROVAL)
    draft.effects.append(RecordVerdict(ruling.verdict, ruling.policy, ruling.edge, is_good=True))


def _hold(draft: Draft, hold: Hold) -> None:
    for no in sorted(draft.steps):
        draft.withhold(draft.steps[no], hold)


def _release(draft: Draft, hold: Hold) -> None:
    for no in sorted(draft.steps):
        draft.release(draft.steps[no], hold)
