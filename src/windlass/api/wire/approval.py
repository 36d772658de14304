"""Approvals on the wire."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, Field

from windlass.api.wire.wire import Asked, Sought, Time, Told, storable
from windlass.core.approval import ApprovalState, Choice, OnReject
from windlass.core.states import JobState

REASON_MAX = 2_000
_Words = Annotated[str, AfterValidator(storable)]


class VoteRequest(Asked):
    """A vote on an approval."""

    reason: _Words = Field(default="", max_length=REASON_MAX, description="For the requester and the record.")
    note: _Words = Field(default="", max_length=REASON_MAX, description="For the other people who decide.")
    subject: _Words | None = Field(
        default=None,
        max_length=64,
        description="`subject` as the voter read it. If something else would run, the vote is refused.",
    )


class ApprovalsQuery(Sought):
    """Which approvals to return."""

    state: list[ApprovalState] = Field(default=[], description="Only approvals in one of these states.")
    mine: bool = Field(default=False, description="Only approvals that the caller requested.")
    decidable: bool = Field(default=False, description="Only approvals that the caller may decide now.")
    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(default=None, max_length=1_024, description="`next` of the last page.")


class ApproverGroup(Told):
    """A group of people; a voter belongs to all groups. Without roles and callers, all who may decide belong to it."""

    roles: list[str]
    callers: list[str]
    escalate_after_s: float | None = Field(description="After this time the people below belong to it too.")
    escalate_roles: list[str]
    escalate_callers: list[str]


class VoteDocument(Told):
    """A vote that counts. Each caller has one."""

    caller: str
    choice: Choice
    reason: str
    note: str
    at: Time


class ApprovalDocument(Told):
    """An approval: what exactly will run, who may decide, and the votes so far."""

    id: UUID
    state: ApprovalState
    job_id: UUID
    job_status: JobState
    recipe: str
    edge: str = Field(description="`node` if the recipe asks; else the policy's edge, such as `submit`.")
    no: int | None = Field(description="The step that asks; null if the whole job must be approved.")
    step: str | None
    index: int | None = Field(description="The step's place in its fan-out.")
    question: str
    show: Any = Field(description="The values that the recipe shows with its question.")
    inputs: Any = Field(description="The inputs of the job.")
    labels: dict[str, str]
    plan: str = Field(description="The hash of the plan that will run.")
    subject: str = Field(description="The digest of everything that the approval is bound to.")
    requester: str
    policy: int | None
    rule: str | None = Field(description="The rule of the policy that asks.")
    reason: str = Field(description="The rule's words.")
    need: int = Field(description="How many people must approve.")
    who: list[ApproverGroup]
    on_reject: OnReject
    votes: list[VoteDocument]
    may_decide: bool = Field(description="Whether the caller of this request may vote now.")
    why_not: str | None
    created_at: Time
    expires_at: Time
    escalate_at: Time | None
    escalated_at: Time | None
    decided_at: Time | None
    left_s: float = Field(description="The seconds until it expires; 0 once it is decided.")


class ApprovalPage(Told):
    """Approvals, the newest first."""

    items: list[ApprovalDocument]
    next: str | None
