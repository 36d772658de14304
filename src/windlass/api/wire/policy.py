"""Policies on the wire: published versions, and answers to requests that are judged by them."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.api.wire.approval import ApproverGroup
from windlass.api.wire.wire import Asked, LongText, Sought, Text, Time, Told
from windlass.core.verdict import Decision, Edge, OutputDecision
from windlass.engine.replay import DAYS_MAX, JOBS_MAX
from windlass.policy.texts import DOCUMENTS_MAX

PAGE_MAX = 200
NO_MAX = 2**63 - 1

Number = Annotated[int, Field(ge=1, le=NO_MAX)]


class PolicyTextWish(Asked):
    """A policy document: its name and its YAML text."""

    name: Text = Field(min_length=1, examples=["main"])
    text: str = Field(min_length=1, examples=["default_decision: deny\n"])


class PolicyTextDocument(Told):
    """A policy document: its name and its YAML text."""

    name: str
    text: str


class PublishWish(Asked):
    """Documents to put in force."""

    documents: list[PolicyTextWish] = Field(
        min_length=1, max_length=DOCUMENTS_MAX, description="They replace the documents with the same names."
    )
    only: bool = Field(default=False, description="They replace all documents.")
    new_only: bool = Field(
        default=False, description="Jobs that were submitted before are not judged again. Refused for the first policy."
    )
    note: LongText | None = Field(default=None, min_length=1, description="Why it is published.")
    untested: LongText | None = Field(
        default=None, min_length=1, description="The reason to publish although tests fail or are missing."
    )
    signature: Text | None = Field(
        default=None, min_length=1, description="An Ed25519 signature of the hash of all documents, in base64."
    )
    expected: int | None = Field(
        default=None, ge=0, le=NO_MAX, description="The version that must be in force now; 0: none."
    )


class RollbackWish(Asked):
    """A version whose content is published again."""

    version: Number
    new_only: bool = Field(
        default=False, description="Jobs that were submitted before are not judged again. Refused for the first policy."
    )
    note: LongText | None = Field(default=None, min_length=1, description="Why it is rolled back.")


class ReplayWish(Asked):
    """A policy by which past jobs are judged again: documents, or a version."""

    documents: list[PolicyTextWish] | None = Field(
        default=None, min_length=1, max_length=DOCUMENTS_MAX, description="As a publish would put them in force."
    )
    only: bool = Field(default=False, description="They replace all documents.")
    version: Number | None = Field(default=None, description="Default: the version in force.")
    days: float = Field(default=DAYS_MAX, gt=0, le=DAYS_MAX)
    limit: int = Field(default=JOBS_MAX, ge=1, le=JOBS_MAX, description="How many of the newest jobs.")


class ReplayCellDocument(Told):
    """How many jobs had one decision, and would get another one or the same."""

    before: str = Field(description="The decision, or `not_judged` before the first policy.")
    after: Decision
    count: int
    is_looser: bool


class ReplayedJobDocument(Told):
    """A job about which the policy decides differently."""

    job_id: UUID
    recipe: str
    created_at: Time
    before: str
    rule_before: str
    after: Decision
    rule_id: str
    reason: str


class ReplayDocument(Told):
    """What a policy would have decided about past jobs: first the jobs that were refused and would pass."""

    snapshot: str = Field(description="The hash of the policy that judged.")
    version: int | None = Field(description="The version that judged; null for documents.")
    days: float
    jobs: int
    unknown: int = Field(description="Jobs of this time whose rows are gone.")
    matrix: list[ReplayCellDocument]
    changed: list[ReplayedJobDocument]


class ShadowQuery(Sought):
    """The time of the counts."""

    minutes: int = Field(default=60, ge=1, le=1440)


class ShadowMinute(Told):
    """How often a shadow rule would have decided within a minute."""

    minute: Time
    version: int
    rule_id: str
    decision: str
    count: int


class ShadowExampleDocument(Told):
    """A request about which a shadow rule would have decided."""

    at: Time
    version: int
    rule_id: str
    decision: str
    reason: str
    edge: Edge
    topic: str
    tenant: str | None
    job_id: str | None
    caller: str | None


class ShadowDocument(Told):
    """What shadow rules would have decided: counts by minute, and the newest examples."""

    minutes: list[ShadowMinute]
    examples: list[ShadowExampleDocument]


class PolicyHeadDocument(Told):
    """A published version of the policy, without its texts."""

    version: int
    hash: str = Field(description="The hash of the meaning of all documents.")
    documents: list[str] = Field(description="The names of the documents.")
    published_by: str
    published_at: Time
    note: str | None
    signature: str | None
    rollback_of: int | None = Field(description="The version whose content a rollback published again.")


class PolicyVersionDocument(PolicyHeadDocument):
    """A published version of the policy with its texts."""

    texts: list[PolicyTextDocument]


class PublishedDocument(PolicyHeadDocument):
    """The version in force after a publish or a rollback."""

    is_new: bool = Field(description="False: it means the same as what was in force already.")
    before: int = Field(description="The version in force before; 0: none.")
    floor: int = Field(description="Jobs that were judged by an older version are judged again.")


class PolicyState(Told):
    """The policy in force, as this process sees it."""

    version: int = Field(description="0: nothing was published.")
    floor: int
    is_gated: bool = Field(description="Whether jobs are judged.")
    problem: str | None = Field(description="Why this process denies every job.")
    in_force: PolicyHeadDocument | None


class PolicyVersions(Told):
    """Published versions, the newest first."""

    items: list[PolicyHeadDocument]
    next: int | None = Field(description="`before` of the next page.")


class VersionsQuery(Sought):
    """Which versions to return."""

    before: int | None = Field(default=None, ge=1, le=NO_MAX)
    limit: int = Field(default=50, ge=1, le=PAGE_MAX)


class PolicyQuestion(Asked):
    """A request to be judged."""

    request: dict[str, Any] = Field(
        description="The keys of a test's `request`: topic, tenant, labels, inputs, caller and so on. See the "
        "reference of policy documents.",
        examples=[{"topic": "job.mail.send", "tenant": "acme", "labels": {"env": "prod"}}],
    )
    version: Number | None = Field(default=None, description="Judge by this version. Default: the one in force.")


class VelocityDocument(Told):
    """The velocity limit of the rule that decides."""

    max_requests: int
    window_seconds: int
    key: str


class RemediationDocument(Told):
    """A safer form of a refused request."""

    id: str
    title: str
    summary: str
    replacement_topic: str
    replacement_capability: str
    add_labels: dict[str, str]
    remove_labels: list[str]


class ApprovalTermsDocument(Told):
    """How an approval is given."""

    need: int
    who: list[ApproverGroup] = Field(description="A voter belongs to every group.")
    expires_s: float


class PolicyVerdict(Told):
    """A verdict with the rule that made it. Only a verdict about an output has a severity and a review."""

    decision: Decision | OutputDecision
    rule_id: str
    reason: str
    rule_hash: str
    snapshot: str = Field(description="The hash of the policy.")
    tier: str
    constraints: dict[str, Any]
    enforced: dict[str, Literal["engine", "output", "handler"]] = Field(
        description="The party that enforces each constraint."
    )
    approval: ApprovalTermsDocument | None
    remediations: list[RemediationDocument]
    velocity: VelocityDocument | None
    severity: str | None
    review: bool | None


class PolicyAnswer(PolicyVerdict):
    """The verdict about a request."""

    version: int = Field(description="The version that judged; 0: nothing was published.")
    approval_ref: str | None = Field(description="The job that an approval would be for, if the request names one.")
    would: list[PolicyVerdict] = Field(description="The verdicts of shadow rules.")


class RuleTraceDocument(Told):
    """What came of one rule."""

    rule: str
    fate: str
    condition: str = Field(description="The first condition that failed.")
    detail: str


class DocumentTraceDocument(Told):
    """What came of the rules of one document."""

    tier: str
    mismatch: str | None = Field(description="The part of the selector that does not choose the request.")
    rules: list[RuleTraceDocument]


class PolicyExplanation(PolicyAnswer):
    """The verdict about a request, and what came of every rule."""

    documents: list[DocumentTraceDocument]
