"""What is asked of a job."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from windlass.api.wire.wire import Asked, LongText, Text, Told
from windlass.core.rerun import Again


class CancelRequest(Asked):
    """Why a job is cancelled; it is in its events."""

    reason: LongText = ""


class RetryRequest(Asked):
    """How a job is retried."""

    dry_run: bool = Field(default=False, description="Only say what would run again.")


class RerunRequest(Asked):
    """How a job is run again. Without a step it runs from the start, without inputs it has those that it had."""

    from_step: Text | None = Field(
        default=None,
        description="This step and all that depend on it run again; a fan-out's child is named as `render[3]`.",
        examples=["render"],
    )
    inputs: dict[str, Any] | None = Field(default=None, description="All of its inputs, in place of those it had.")
    dry_run: bool = Field(default=False, description="Only say what would run again.")


class RerunPlan(Told):
    """What a job that runs again would do; steps by name, in the order of the recipe."""

    run_again: list[str]
    kept: list[str] = Field(description="Finished steps whose outputs are taken over.")
    stale: list[str] = Field(description="Of what is kept: steps that read an input that changed, or a stale output.")
    inputs_changed: list[str] = Field(description="The names of inputs that are not what they were.")
    kept_children: dict[str, int] = Field(description="Of fan-outs that run again: how many children they keep.")


def rerun_plan(again: Again) -> RerunPlan:
    """The document of what would run again."""
    return RerunPlan(
        run_again=list(again.run_again),
        kept=list(again.kept),
        stale=list(again.stale),
        inputs_changed=list(again.inputs_changed),
        kept_children=dict(again.kept_children),
    )
