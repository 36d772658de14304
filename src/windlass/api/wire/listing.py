"""Which jobs: the query of a list, and the filter of a bulk action, which are one grammar."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from windlass.api.wire.wire import Asked, Instant, LongText, Sought, Text, Told
from windlass.core.caller import CallerContext, Role
from windlass.core.errors import Forbidden
from windlass.core.states import JobState
from windlass.engine.bulk import BULK_MAX, Bulk
from windlass.views.activity import Activity
from windlass.views.listing import PAGE_MAX, JobFilter

PAGE_DEFAULT = 50
# In place of a caller's name: everybody's jobs. Only an admin may ask for them.
EVERYBODY = "*"
_LIST_MAX = 64


def _states(names: list[str]) -> list[str]:
    """Several may be given apart, or in one with commas."""
    found = [name.strip().upper() for text in names for name in text.split(",")]
    for name in found:
        if name not in JobState.__members__:
            raise ValueError(f"there is no status {name[:50]!r}; there are {', '.join(JobState)}")
    return found


def _activities(names: list[str]) -> list[str]:
    """Several may be given apart, or in one with commas."""
    found = [name.strip().lower() for text in names for name in text.split(",")]
    for name in found:
        if name.upper() not in Activity.__members__:
            raise ValueError(f"there is no activity {name[:50]!r}; there are {', '.join(Activity)}")
    return found


def _labels(pairs: list[str]) -> list[str]:
    for pair in pairs:
        if not any(mark in pair[1:] for mark in "=:"):
            raise ValueError("a label is looked for as name=value")
    return pairs


def _pair(text: str) -> tuple[str, str]:
    mark = min((at for at in (text.find("=", 1), text.find(":", 1)) if at > 0), default=len(text))
    return text[:mark], text[mark + 1 :]


Statuses = Annotated[list[str], Field(max_length=_LIST_MAX), AfterValidator(_states)]
Activities = Annotated[list[str], Field(max_length=_LIST_MAX), AfterValidator(_activities)]
Labels = Annotated[list[Text], Field(max_length=_LIST_MAX), AfterValidator(_labels)]
_ACTIVITY = "Open jobs that do one of these: `running`, `waiting`, `queued`, `sleeping`, `paused`."
_EVENT = "Jobs that wait for the event of this name."
_CALLER = "Whose jobs; only an admin may name another, or `*` for everybody."


class JobsQuery(Sought):
    """Which jobs are listed, and from where on."""

    status: Statuses = Field(default=[], description="One or more, also with commas between them.")
    recipe: Text | None = None
    label: Labels = Field(default=[], description="`name=value`; a job must have all that are given.")
    failed_step: Text | None = Field(default=None, description="The step that a failed job failed at.")
    since: Instant | None = Field(default=None, description="Made at this time or later.")
    until: Instant | None = Field(default=None, description="Made before this time.")
    caller: Text | None = Field(default=None, description=_CALLER)
    activity: Activities = Field(default=[], description=_ACTIVITY)
    event: Text | None = Field(default=None, description=_EVENT)
    deleted: bool = Field(default=False, description="Also those that were deleted.")
    cursor: str | None = Field(default=None, max_length=1_024, description="`next` of the page before.")
    limit: int = Field(default=PAGE_DEFAULT, ge=1, le=PAGE_MAX)

    def wanted(self, caller: CallerContext) -> JobFilter:
        """The engine's filter."""
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
    """Which jobs a bulk action is for; at least one condition."""

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
            raise ValueError("a bulk action needs at least one condition beside the caller")
        return self

    def wanted(self, caller: CallerContext) -> JobFilter:
        """The engine's filter."""
        given: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return JobsQuery.model_construct(**given).wanted(caller)


class BulkRequest(Asked):
    """One action for many jobs. First ask with `dry_run`, then with `expect` set to the count that it gave."""

    action: Literal["cancel", "retry"]
    filter: BulkFilter
    dry_run: bool = True
    expect: int | None = Field(default=None, ge=0, le=2**31, description="How many must match, else nothing is done.")
    reason: LongText = ""
    limit: int = Field(default=BULK_MAX, ge=1, le=BULK_MAX, description="How many at most; ask again for the rest.")


class BulkItem(Told):
    """A job that was acted on; a retry made a new one."""

    job_id: UUID
    new_job_id: UUID | None


class BulkRefusal(Told):
    """A job that could not be acted on, and the code of the reason."""

    job_id: UUID
    code: str


class BulkDone(Told):
    """What a bulk action did, or would do."""

    action: str
    dry_run: bool
    matched: int
    is_more: bool = Field(description="Whether more may match than were counted.")
    running_steps: int = Field(default=0, description="Of a dry run of cancel: how many running steps it would stop.")
    done: list[BulkItem]
    refused: list[BulkRefusal]


def bulk_done(action: str, dry_run: bool, done: Bulk) -> BulkDone:
    """The document of what was done."""
    return BulkDone(
        action=action,
        dry_run=dry_run,
        matched=done.matched,
        is_more=done.is_more,
        running_steps=done.running_steps,
        done=[BulkItem(job_id=job_id, new_job_id=new_id) for job_id, new_id in done.done],
        refused=[BulkRefusal(job_id=job_id, code=code) for job_id, code in done.refused],
    )


def whose(caller: CallerContext, asked: str | None) -> str | None:
    """Whose jobs are meant; None is everybody's."""
    if asked is None or asked == caller.caller_id:
        return caller.caller_id
    if caller.role is not Role.ADMIN:
        raise Forbidden("only an admin may ask for others' jobs")
    return None if asked == EVERYBODY else asked
