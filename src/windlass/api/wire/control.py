"""Requests that act on a job."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from windlass.api.wire.wire import Asked, LongText, Text, Told
from windlass.core.rerun import Again
from windlass.documents.again import rerun_values


class CancelRequest(Asked):
    """Why a job is cancelled. The job's events contain the reason."""

    reason: LongText = ""
    undo: bool = Field(default=True, description="Whether the effects of finished steps are undone. False keeps them.")


class RetryRequest(Asked):
    """How a job is retried."""

    dry_run: bool = Field(default=False, description="Only show what would run again.")


class RerunRequest(Asked):
    """How a job is run again. Without a step it runs from the start; without inputs it keeps its inputs."""

    from_step: Text | None = Field(
        default=None,
        description="This step and its dependents run again. The child of a fan-out is named `render[3]`.",
        examples=["render"],
    )
    inputs: dict[str, Any] | None = Field(
        default=None, description="All inputs of the new job. They replace the old inputs."
    )
    dry_run: bool = Field(default=False, description="Only show what would run again.")


class RerunPlan(Told):
    """What running the job again would do; steps by name, in the order of the recipe."""

    run_again: list[str]
    kept: list[str] = Field(description="Finished steps whose outputs are kept.")
    stale: list[str] = Field(description="Kept steps that read a changed input or a stale output.")
    inputs_changed: list[str] = Field(description="The names of changed inputs.")
    kept_children: dict[str, int] = Field(
        description="For fan-outs that run again: the number of children that are kept."
    )


def rerun_plan(again: Again) -> RerunPlan:
    """Return the document of a planned rerun."""
    return RerunPlan.model_construct(**rerun_values(again))
