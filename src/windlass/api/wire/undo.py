"""The undo of a job on the wire."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Told
from windlass.core.plan import UndoMode, UndoOrder
from windlass.core.states import StepState
from windlass.core.undo import Effects
from windlass.documents.undo import undo_values
from windlass.views.read import JobView
from windlass.views.undo import UndoView


class UndoStepDocument(Told):
    """An effect of a job and its undo."""

    no: int = Field(description="The number of the step whose effect is undone.")
    step: str
    run: str = Field(description="The handler that undoes it; `windlass.undo` for a child job.")
    needs: list[str] = Field(description="The effects that must be undone before, because they use this one.")
    status: StepState | None = Field(description="The state of the undo step. Null: no undo job has it yet.")
    undo_job_id: UUID | None


class UndoDocument(Told):
    """The undo of a job: what would run, what runs, or what ran, in order."""

    job_id: UUID
    effects: Effects
    undo_job_id: UUID | None
    undo_jobs: list[UUID] = Field(description="All undo jobs; a resumed undo and a late success have their own.")
    undo: UndoMode = Field(description="`ask`: a person must allow the undo of a job that ends badly.")
    undo_order: UndoOrder
    steps: list[UndoStepDocument]
    final: list[str] = Field(description="Finished steps whose effects nothing removes.")


class UndoStarted(Told):
    """The undo job of a job. `is_new` is false if it was under way already."""

    job_id: UUID
    undo_job_id: UUID
    is_new: bool


def undo_document(job: JobView, view: UndoView) -> UndoDocument:
    """Return the document of a job's undo."""
    values = undo_values(job, view)
    steps = [UndoStepDocument.model_construct(**step) for step in values["steps"]]
    return UndoDocument.model_construct(**values | {"steps": steps})
