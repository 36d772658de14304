"""Replays a job's events, move by move, and compares the result with the stored rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from windlass.core.birth import births, first_state
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import Failure, Outcome, Parked, Snooze
from windlass.core.plan import NodeKind, Plan
from windlass.core.states import (
    JOB_MOVES,
    JOB_TERMINAL,
    STEP_DONE,
    STEP_MOVES,
    STEP_TERMINAL,
    JobState,
    StepState,
)
from windlass.core.wait import WaitKind

S = StepState
BUSY = "rate_limited"
_JOB_WORDS = {f"job.{state.lower()}": state for state in JobState}
_STEP_WORDS = {f"step.{state.lower()}": state for state in StepState}
_STARTED = {S.READY, S.HELD, S.QUEUED, S.RUNNING, S.PARKED, S.COMPLETED, S.SKIPPED}
# Times in the database have microseconds; the waits were floats.
_EPSILON_S = 0.001

Row = Mapping[str, Any]


class Replay:
    """Replays one job. `wrong` collects the complaints.

    Each event carries the time at which its operation began. Where operations overlap, an event may carry an earlier
    time than its predecessor. `is_serial` tells that no operations overlapped.
    """

    def __init__(
        self, job: Row, steps: Sequence[Row], plan: Plan, sent: Mapping[Any, Sequence[Outcome]], *, is_serial: bool
    ) -> None:
        self.job = job
        self.is_serial = is_serial
        self.plan = plan
        self.sent = sent
        self.rows = {row["no"]: row for row in steps}
        self.states = {no: start.state for no, start in enumerate(births(plan))}
        self.attempts = dict.fromkeys(self.states, 0)
        self.retries = dict.fromkeys(self.states, 0)
        # The announced number of children of each fan-out.
        self.fans: dict[int, int] = {}
        # When each step last moved, and until when it waits.
        self.moved: dict[int, datetime] = {}
        self.until: dict[int, datetime] = {}
        self.job_state = first_state(self.states.values())
        # The holds that the job was submitted with.
        self.holds = NO_HOLD
        self.is_paused = False
        self.at: datetime | None = None
        self.wrong: list[str] = []

    def say(self, text: str) -> None:
        """Record a complaint."""
        self.wrong.append(f"job {self.job['id']}: {text}")

    def run(self, events: Sequence[Row]) -> list[str]:
        """Return every complaint."""
        if [event["seq"] for event in events] != list(range(1, self.job["event_seq"] + 1)):
            self.say(f"events {[e['seq'] for e in events]} have a gap, or are not {self.job['event_seq']}")
        for event in events:
            self.apply(event)
        self.compare()
        return self.wrong

    def apply(self, event: Row) -> None:
        """Apply one event."""
        if self.is_serial and self.at is not None and event["at"] < self.at:
            self.say(f"event {event['seq']} happened before the one before it")
        self.at = event["at"]
        kind = event["type"]
        payload: dict[str, Any] = {} if event["payload"] is None else msgspec.json.decode(event["payload"])
        if kind in _JOB_WORDS:
            self.move_job(_JOB_WORDS[kind])
        elif kind in _STEP_WORDS:
            self.move_step(event, _STEP_WORDS[kind], payload)
        elif kind in ("job.paused", "job.resumed"):
            self.is_paused = kind == "job.paused"
        elif kind == "step.fanned":
            self.fan(event["no"], payload)
        elif kind == "job.submitted" and payload:
            self.holds = Hold(payload.get("holds", 0))
            first = births(self.plan, self.holds, is_denied=payload.get("is_denied", False))
            self.states = {no: birth.state for no, birth in enumerate(first)}
            self.job_state = first_state(self.states.values(), self.holds)
        elif kind == "job.kept":
            self.states = {int(no): S(state) for no, state in payload["states"].items()}
            self.job_state = first_state(self.states.values(), self.holds)
            self.attempts = dict.fromkeys(self.states, 0)
            self.retries = dict.fromkeys(self.states, 0)

    def move_job(self, target: JobState) -> None:
        """Apply a move of the job."""
        if target not in JOB_MOVES[self.job_state]:
            self.say(f"went from {self.job_state} to {target}")
        self.job_state = target

    def fan(self, no: int, span: dict[str, int]) -> None:
        """Apply a fan-out: add its children."""
        if self.states[no] is not S.READY:
            self.say(f"step {no} was fanned out while {self.states[no]}")
        self.fans[no] = span["of"]
        first = S.READY if self.plan.nodes[no].is_child_routed else S.QUEUED
        for child in range(span["first"], span["first"] + span["count"]):
            if child in self.states:
                self.say(f"step {child} was made twice")
            self.states[child], self.attempts[child], self.retries[child] = first, 0, 0

    def move_step(self, event: Row, target: StepState, payload: dict[str, Any]) -> None:
        """Apply a move of a step, in its attempt."""
        no = event["no"]
        source = self.states.get(no)
        if source is None:
            self.say(f"step {no} is {target}, but was never made")
            return
        if target not in STEP_MOVES[source]:
            self.say(f"step {no} went from {source} to {target}")
        if source is target is S.PARKED and payload.get("waiting_for") != WaitKind.RETRY:
            self.say(f"step {no} waits for {payload.get('waiting_for')} while it waits already")
        wanted = self.attempts[no] + self.is_begun(no, source, target, payload)
        if event["attempt"] != wanted:
            self.say(f"step {no} is {target} in attempt {event['attempt']}, and not {wanted}")
        self.attempts[no] = max(self.attempts[no], event["attempt"])
        if self.job_state in JOB_TERMINAL and target is not S.CANCELLED:
            self.say(f"step {no} is {target} after the job was {self.job_state}")
        if target is S.HELD and payload.get("because") == "worker_lost" and not self.is_paused:
            self.say(f"step {no} waits for a slot again because its worker was lost, and its provider work may go on")
        if target is S.RUNNING and self.is_paused:
            self.say(f"step {no} was started while the job was paused")
        if target in _STARTED and not self.is_free(no):
            self.say(f"step {no} is {target} before all that it needs is done")
        if no in self.fans and target in (S.COMPLETED, S.FAILED):
            self.gather(no, target)
        if target is S.ABANDONED and not self.is_hopeless(no):
            self.say(f"step {no} was abandoned though nothing that it needs has failed")
        # A sweep ends every wait; only the waker must keep to the time.
        is_timed = target not in (S.CANCELLED, S.ABANDONED) and event["source"] == "waker"
        if no in self.until and is_timed and event["at"] < self.until[no]:
            self.say(f"step {no} was woken at {event['at']}, and was to wait until {self.until[no]}")
        self.until.pop(no, None)
        if target is S.PARKED:
            self.park(no, payload)
        self.states[no] = target
        self.moved[no] = event["at"]

    def is_begun(self, no: int, source: StepState, target: StepState, payload: dict[str, Any]) -> bool:
        """Tell whether the move begins an attempt: of a worker, of a child job, or of a wait for an event or people."""
        if target is S.RUNNING or (target is S.PARKED and payload.get("waiting_for") == WaitKind.CHILD):
            return True
        if target is S.PARKED and str(payload.get("waiting_for")).startswith(WaitKind.APPROVAL):
            return True
        is_event = self.plan.nodes[self.node_of(no)].kind is NodeKind.EVENT
        return is_event and source is S.READY and target in (S.PARKED, S.COMPLETED)

    def park(self, no: int, payload: dict[str, Any]) -> None:
        """Check that a wait is as long as requested."""
        what = payload["waiting_for"]
        # A busy provider names the time of the next try, and the step did not fail.
        is_busy = what == WaitKind.RETRY and payload.get("error", {}).get("code") == BUSY
        self.retries[no] += what == WaitKind.RETRY and not is_busy
        asked = 0.0 if is_busy else self.asked_s(no, what)
        if "until" in payload:
            self.until[no] = until = msgspec.convert(payload["until"], datetime)
            since: datetime = self.moved[no] if no in self.moved else self.job["created_at"]
            waits = (until - since).total_seconds()
            if asked is not None and waits < asked - _EPSILON_S:
                self.say(f"step {no} waits {waits:.3f} s for {what}, and should wait {asked:.3f} s")
        elif asked is not None:
            self.say(f"step {no} waits for {what}, and nothing will wake it")

    def node_of(self, no: int) -> int:
        """Return the node of a step."""
        return no if no < len(self.plan.nodes) else int(self.rows[no]["node"]) if no in self.rows else 0

    def is_free(self, no: int) -> bool:
        """Tell whether all dependencies of the step are done."""
        node = self.plan.nodes[self.node_of(no)]
        are_done = all(self.states[self.plan.number[name]] in STEP_DONE for name in node.needs)
        return are_done and all(self.states[self.plan.number[name]] in STEP_TERMINAL for name in node.follows)

    def gather(self, no: int, target: StepState) -> None:
        """Check that a fan-out ends only after the last of its children."""
        children = [state for child, state in self.states.items() if child != no and self.node_of(child) == no]
        open_count = sum(state not in STEP_TERMINAL for state in children)
        if len(children) != self.fans[no] or open_count:
            of = f"{self.fans[no]} children, {len(children)} made and {open_count} open"
            self.say(f"fan-out {no} is {target} with {of}")

    def is_hopeless(self, no: int) -> bool:
        """Tell whether a dependency of the step can never be done."""
        needs = self.plan.nodes[self.node_of(no)].needs
        states = [self.states[self.plan.number[name]] for name in needs]
        if any(state in (S.FAILED, S.DENIED, S.ABANDONED) for state in states):
            return True
        # The same failure may abandon its dependencies a few events later.
        return any(self.is_hopeless(self.plan.number[name]) for name in needs)

    def asked_s(self, no: int, what: str) -> float | None:
        """Return the shortest requested wait; None when the wait may last for ever."""
        node = self.plan.nodes[self.node_of(no)]
        said = self.sent.get((self.job["id"], no, self.attempts[no]), ())
        if what == WaitKind.RETRY:
            asked = [one.after_s for one in said if isinstance(one, Failure) and one.after_s is not None]
            return min([node.retry.backoff.wait_s(self.retries[no], 0.0), *asked])
        if what == WaitKind.SNOOZE:
            return min((one.after_s for one in said if isinstance(one, Snooze)), default=None)
        if what == WaitKind.TIMER:
            inputs = msgspec.json.decode(self.job["input"])
            seconds = node.with_["seconds"]
            return float(inputs["seconds"] if isinstance(seconds, str) else seconds)
        if what.startswith((WaitKind.EVENT, WaitKind.APPROVAL)):
            return node.wait_s
        if what.startswith(WaitKind.EXTERNAL):
            limits = [one.within_s for one in said if isinstance(one, Parked)]
            return None if None in limits else min((one for one in limits if one is not None), default=None)
        return None

    def compare(self) -> None:
        """Compare the state that the events lead to with the stored rows."""
        stored = {no: row["state"] for no, row in self.rows.items()}
        if stored != self.states:
            both = sorted(set(stored) | set(self.states))
            differ = {no: (self.states.get(no), stored.get(no)) for no in both if self.states.get(no) != stored.get(no)}
            self.say(f"the events lead elsewhere than the steps are, by number (events, stored): {differ}")
        for no, row in self.rows.items():
            if row["attempt"] != self.attempts.get(no):
                self.say(f"step {no} is stored with attempt {row['attempt']}, its events say {self.attempts.get(no)}")
        if self.job["state"] != self.job_state:
            self.say(f"is stored as {self.job['state']}, its events lead to {self.job_state}")
        if self.job["is_paused"] != self.is_paused:
            self.say(f"is_paused is {self.job['is_paused']}, its events say {self.is_paused}")
