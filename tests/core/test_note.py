"""What a running attempt may say before it ends."""

from __future__ import annotations

from uuid import UUID

from tests.core.world import JOB, World, task
from windlass.core.draft import Draft
from windlass.core.note import Note, note
from windlass.core.outcome import Cancel, Failure, Fault, Parked
from windlass.core.states import JobState, StepState
from windlass.core.wait import Wait


def running() -> World:
    world = World.of(task("a"), task("b"))
    world.claim(world.step("a"))
    return world


def said(draft: Draft) -> list[tuple[str, object]]:
    return [(event.type, event.payload) for event in draft.events]


def test_progress_and_checkpoint_are_taken_down() -> None:
    draft = running().draft()
    assert note(draft, Note(JOB, 0, 1, 50.0, "half", checkpoint="7"))
    assert said(draft) == [("step.progress", {"pct": 50.0, "message": "half"}), ("step.checkpoint", None)]


def test_what_was_logged_is_taken_down_as_it_was_said() -> None:
    draft = running().draft()
    lines = {"lines": [{"at": 1.0, "level": "info", "text": "warm"}], "dropped": 0}
    assert note(draft, Note(JOB, 0, 1, log=lines))
    assert said(draft) == [("step.log", lines)]


def test_a_preview_shows_in_the_jobs_state_until_the_next_progress() -> None:
    world = running()
    draft = world.draft()
    assert note(draft, Note(JOB, 0, 1, preview='"x"'), "x")
    assert draft.job.state is JobState.PREVIEW
    assert note(draft, Note(JOB, 0, 1, preview='"y"'), "y")
    assert note(draft, Note(JOB, 0, 1, message="on"))
    assert draft.job.state is JobState.PROCESSING
    assert [event.type for event in draft.events] == [
        "job.preview", "step.preview", "step.preview", "job.processing", "step.progress",
    ]  # fmt: skip
    assert draft.events[-1].payload == {"pct": None, "message": "on"}


def test_an_empty_note_says_nothing() -> None:
    draft = running().draft()
    assert note(draft, Note(JOB, 0, 1))
    assert not draft.is_changed


def test_a_parked_attempt_may_still_speak() -> None:
    world = running()
    world.report(world.step("a"), Parked("fal"))
    draft = world.draft()
    assert note(draft, Note(JOB, 0, 1, 10.0, source="webhook"))
    assert [event.source for event in draft.events] == ["webhook"]


def test_an_attempt_that_waits_for_another_try_is_over() -> None:
    world = running()
    world.report(world.step("a"), Failure(Fault("x", "y")))
    assert world.step("a").waiting_for == "retry"
    assert not note(world.draft(), Note(JOB, 0, 1, 10.0))


def test_a_note_of_an_attempt_that_is_over_or_was_never_there_is_refused() -> None:
    world = running()
    assert not note(world.draft(), Note(JOB, 0, 2, 10.0)), "another attempt"
    assert not note(world.draft(), Note(JOB, 9, 1, 10.0)), "another step"
    assert not note(world.draft(), Note(JOB, 1, 0, 10.0)), "a step that does not run"
    world.report(world.step("a"), Cancel())
    assert not note(world.draft(), Note(JOB, 0, 1, 10.0)), "a finished job"


def test_another_workers_words_are_not_heard() -> None:
    mine, theirs = UUID(int=1), UUID(int=2)
    draft = running().draft()
    draft.steps[0].worker = mine
    assert note(draft, Note(JOB, 0, 1, 10.0, worker=mine))
    assert not note(draft, Note(JOB, 0, 1, 10.0, worker=theirs))
    draft.steps[0].state, draft.steps[0].wait = StepState.PARKED, Wait.parse("external:fal")
    assert not note(draft, Note(JOB, 0, 1, 10.0, worker=mine)), "whoever does the work elsewhere speaks now"
