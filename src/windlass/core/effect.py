"""Effects: the writes that a decision requests besides the new states of a job and its steps.

A decider adds effects to its draft. The writer of each kind (store/writers.py) writes them in the draft's own commit.
A step's slot row and its provider job are not effects: both follow from the step's state.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.core.approval import ApprovalRequest
from windlass.core.outcome import Cost
from windlass.core.states import StepState
from windlass.core.verdict import Edge, Verdict


@dataclass(frozen=True, slots=True)
class NewChild:
    """A step that a fan-out adds; `item` is JSON text."""

    no: int
    index: int
    item: str
    state: StepState


@dataclass(frozen=True, slots=True)
class AddChildren:
    """Adds steps to a fan-out."""

    fan: int
    children: tuple[NewChild, ...]


@dataclass(frozen=True, slots=True)
class StartJob:
    """Starts a child job for a step. The router validates the inputs and writes the job."""

    no: int
    attempt: int
    index: int | None
    recipe: str
    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UseKey:
    """Makes a step wait for a slot of this concurrency key."""

    no: int
    key: str


@dataclass(frozen=True, slots=True)
class ExpectEvent:
    """Makes a step wait for an event whose body contains `match` (JSON text)."""

    no: int
    match: str


@dataclass(frozen=True, slots=True)
class RequestApproval:
    """Stores a request for an approval; its step, or the whole job, waits for the votes."""

    id: UUID
    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class RecordWork:
    """Stores the id that a provider gave to the step's work."""

    no: int
    external_id: str


@dataclass(frozen=True, slots=True)
class GiveUpWork:
    """Gives up a provider's work: the step waited too long, and will be tried again without the answer."""

    no: int


@dataclass(frozen=True, slots=True)
class Charge:
    """Records the cost of an attempt; `provider` is empty if no provider was paid."""

    no: int
    attempt: int
    provider: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class MoveExpiry:
    """Moves the job's default expiry to this time."""

    until: datetime


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """Stores a verdict about the job, or about its step `no`.

    A good verdict lets the job go on under the policy with this number. `ask_at` is the time of the next question about
    a throttled job.
    """

    verdict: Verdict
    policy: int | None
    edge: Edge
    no: int | None = None
    attempt: int | None = None
    is_good: bool = False
    ask_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Cancels every step that is still open, and the child jobs."""


@dataclass(frozen=True, slots=True)
class StartUndo:
    """Starts the undo job of a job that ended badly, if effects of its steps stand, or records that they are kept."""


Effect = (
    AddChildren
    | StartJob
    | UseKey
    | ExpectEvent
    | RequestApproval
    | RecordWork
    | GiveUpWork
    | Charge
    | MoveExpiry
    | RecordVerdict
    | Sweep
    | StartUndo
)
