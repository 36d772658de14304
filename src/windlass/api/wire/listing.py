"""Which jobs: the query of a list and the filter of a bulk action, which share one grammar."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from windlass.api.wire.wire import Asked, Instant, LongText, Sought, Text, Told, document_of
from windlass.core.caller import CallerContext, Role
from windlass.core.control import BulkAction
from windlass.core.errors import Forbidden
from windlass.core.states import JobState
from windlass.documents.job import bulk_values
from windlass.engine.bulk import BULK_MAX, Bulk
from windlass.views.activity import Activity
from windlass.views.listing import PAGE_MAX, JobFilter

PAGE_DEFAULT = 50
# In place of a caller's name: the jobs of all callers. Only an admin may use it.
ALL_CALLERS = "*"
_LIST_MAX = 64
# Dead letters have the same form of response.
DoneAction = BulkAction | Literal["redrive", "discard"]


def _states(names: list[str]) -> list[str]:
    """Split the values: a client may repeat the parameter or separate the values with commas."""
    found = [name.strip().upper() for text in names for name in text.split(",")]
    for name in found:
        if name not in JobState.__members__:
            raise ValueError(f"there is no status {name[:50]!r}; there are {', '.join(JobState)}")
    return found


def _activities(names: list[str]) -> list[str]:
    """Split the values: a client may repeat the parameter or separate the values with commas."""
    found = [name.strip().lower() for text in names for name in text.split(",")]
    for name in found:
        if name.upper() not in Activity.__members__:
            raise ValueError(f"there is no activity {name[:50]!r}; there are {', '.join(Activity)}")
    return found


def _labels(pairs: list[str]) -> list[str]:
    for pair in pairs:
        if not any(mark in pair[1:] for mark in "=:"):
            raise ValueError("write a label as name=value")
    return pairs


def _pair(text: str) -> tuple[str, str]:
    mark = min((at for at in (text.find("=", 1), text.find(":", 1)) if at > 0), default=len(text))
    return text[:mark], text[mark + 1 :]


Statuses = Annotated[list[str], Field(max_length=_LIST_MAX), AfterValidator(_states)]
Activities = Annotated[list[str], Field(max_length=_LIST_MAX), AfterValidator(_activities)]
Labels = Annotated[list[Text], Field(max_length=_LIST_MAX), AfterValidator(_labels)]
_ACTIVITY = "Open jobs with one of these activities: `running`, `waiting`, `queued`, `sleeping`, `paused`."
_EVENT = "Jobs that wait for the event of this name."
_CALLER = "The caller that owns the jobs. Only an admin may name another caller, or `*` for all callers."


class JobsQuery(Sought):
    """Which jobs to list, and where to start."""

    status: Statuses = Field(default=[], description="One or more statuses; commas may separate them.")
    recipe: Text | None = None
    label: Labels = Field(default=[], description="`name=value`; a job must have every label in the query.")
    failed_step: Text | None = Field(default=None, description="The step that a failed job failed at.")
    since: Instant | None = Field(default=None, description="Created at this time or later.")
    until: Instant | None = Field(default=None, description="Created before this time.")
    caller: Text | None = Field(default=None, description=_CALLER)
    activity: Activities = Field(default=[], description=_ACTIVITY)
    event: Text | None = Field(default=None, description=_EVENT)
    deleted: bool = Field(default=False, description="Include deleted jobs.")
    cursor: str | None = Field(default=None, max_length=1_024, description="`next` of the last page.")
    limit: int = Field(default=PAGE_DEFAULT, ge=1, le=PAGE_MAX)

    def wanted(self, caller: CallerContext) -> JobFilter:
        """Return the engine's filter."""
        return JobFilter(
            caller=whose(caller, self.caller),
            states=tuple(JobState(name) for name in self.status),
            recipe=self.recipe,
            labels=dict(map(_pair, self.label)),
            failed_step=self.failed_step,
            since=self.since,
            until=self.until,
            with_deleted=self.deleted,
            activities=tuple(Activity(name) for name in self.activity),
            event=self.event,
        )


class BulkFilter(Asked):
    """Which jobs a bulk action applies to; at least one condition."""

    status: Statuses = Field(default=[])
    recipe: Text | None = None
    label: Labels = Field(default=[])
    failed_step: Text | None = None
    since: Instant | None = None
    until: Instant | None = None
    caller: Text | None = Field(default=None, description=_CALLER)
    activity: Activities = Field(default=[], description=_ACTIVITY)
    event: Text | None = Field(default=None, description=_EVENT)

    @model_validator(mode="after")
    def _has_condition(self) -> BulkFilter:
        named = (self.recipe, self.failed_step, self.event, self.since, self.until)
        if not any((self.status, self.label, self.activity, *named)):
            raise ValueError("a bulk action needs at least one condition in addition to the caller")
        return self

    def wanted(self, caller: CallerContext) -> JobFilter:
        """Return the engine's filter."""
        given: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return JobsQuery.model_construct(**given).wanted(caller)


class BulkRequest(Asked):
    """One action on many jobs. First send it with `dry_run`, then with `expect` set to the returned count."""

    action: BulkAction
    filter: BulkFilter
    dry_run: bool = True
    expect: int | None = Field(
        default=None,
        ge=0,
        le=2**31,
        description="The expected number of jobs. If another number matches, nothing is done.",
    )
    reason: LongText = ""
    limit: int = Field(
        default=BULK_MAX, ge=1, le=BULK_MAX, description="The maximum number of jobs. Repeat the request for the rest."
    )


class BulkItem(Told):
    """A job that was acted on; a retry created a new job."""

    job_id: UUID
    new_job_id: UUID | None


class BulkRefusal(Told):
    """A job that was not acted on, and the code of the reason."""

    job_id: UUID
    code: str


class BulkDone(Told):
    """What a bulk action did, or would do."""

    action: DoneAction
    dry_run: bool
    matched: int
    is_more: bool = Field(description="Whether more jobs may match than were counted.")
    running_steps: int = Field(
        default=0, description="For a dry run of cancel: the number of running steps that it would stop."
    )
    done: list[BulkItem]
    refused: list[BulkRefusal]


def bulk_done(action: DoneAction, dry_run: bool, done: Bulk) -> BulkDone:
    """Return the document of a bulk action."""
    return document_of(BulkDone, bulk_values(action, dry_run, done))


def whose(caller: CallerContext, asked: str | None) -> str | None:
    """Return the caller whose jobs are meant; None means all callers."""
    if asked is None or asked == caller.caller_id:
        return caller.caller_id
    if caller.role is not Role.ADMIN:
        raise Forbidden("only an admin may list the jobs of other callers")
    return None if asked == ALL_CALLERS else asked
