"""Who may see what: content of a quarantined job or step is closed to every reader."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.states import JobState, StepState
from windlass.core.visibility import VISIBLE, Because, Content, Hidden, Reader, is_visible, seen

contents = st.sampled_from(Content)
# The undo of a step is the one reader that sees everything.
readers = st.sampled_from([reader for reader in Reader if reader is not Reader.UNDO])
jobs = st.sampled_from([None, *JobState])
steps = st.sampled_from([None, *StepState])
QUARANTINED = Hidden(Because.QUARANTINED)


@given(contents, jobs, steps)
def test_an_undo_sees_what_it_must_undo(content: Content, job: JobState | None, step: StepState | None) -> None:
    assert seen(content, Reader.UNDO, job, step) == VISIBLE


@given(contents, readers, steps)
def test_a_quarantined_job_shows_nothing_but_what_its_caller_gave(
    content: Content, reader: Reader, step: StepState | None
) -> None:
    expected = VISIBLE if content is Content.INPUT else QUARANTINED
    assert seen(content, reader, JobState.OUTPUT_QUARANTINED, step) == expected


@given(contents, readers, jobs)
def test_a_quarantined_step_shows_nothing_that_it_made(content: Content, reader: Reader, job: JobState | None) -> None:
    if content not in (Content.INPUT, Content.ITEM):
        assert seen(content, reader, job, StepState.QUARANTINED) == QUARANTINED


@given(readers, jobs)
def test_the_item_of_a_quarantined_step_is_for_the_job_that_runs_it_again(reader: Reader, job: JobState | None) -> None:
    is_shown = is_visible(Content.ITEM, reader, job, StepState.QUARANTINED)
    assert is_shown == (reader is Reader.NEW_JOB and job is not JobState.OUTPUT_QUARANTINED)


@given(contents, readers, jobs, steps)
def test_what_is_not_quarantined_is_seen_by_all_who_ask(
    content: Content, reader: Reader, job: JobState | None, step: StepState | None
) -> None:
    if reader is not Reader.BELL and job is not JobState.OUTPUT_QUARANTINED and step is not StepState.QUARANTINED:
        assert seen(content, reader, job, step) == VISIBLE


def test_a_bell_carries_the_output_of_a_completed_step_of_a_completed_job_and_nothing_else() -> None:
    made = [content for content in Content if content is not Content.INPUT]
    carried = [at for at in product(made, JobState, StepState) if is_visible(at[0], Reader.BELL, at[1], at[2])]
    assert carried == [(Content.OUTPUT, JobState.COMPLETED, StepState.COMPLETED)]
    assert seen(Content.OUTPUT, Reader.BELL, JobState.PROCESSING, StepState.COMPLETED) == Hidden(Because.NOT_FINAL)


@given(contents, readers, jobs, steps)
def test_the_short_question_has_the_same_answer(
    content: Content, reader: Reader, job: JobState | None, step: StepState | None
) -> None:
    assert is_visible(content, reader, job, step) == (seen(content, reader, job, step) == VISIBLE)
