"""What callers and time may do to a job."""

from __future__ import annotations

import pytest

from tests.core.world import World, task
from windlass.core.control import cancel, overdue, pause, resume
from windlass.core.errors import WrongState
from windlass.core.hold import Hold
from windlass.core.states import JobState, StepState

S, J = StepState, JobState


def finished() -> World:
    world = World.of(task("a"))
    world.run("a")
    return world


@pytest.mark.parametrize(("reason", "told"), [("", "cancelled by the caller"), ("too dear", "too dear")])
def test_cancel_ends_the_job_and_says_why(reason: str, told: str) -> None:
    world = World.of(task("a"), task("b", "a"))
    world.claim(world.step("a"))
    draft = world.draft()
    assert cancel(draft, reason)
    world.put(draft)
    assert world.job.state is J.CANCELLED
    assert world.states() == {"a": S.CANCELLED, "b": S.CANCELLED}
    assert world.job.error is not None and world.job.error.message == told
    world.check()


@pytest.mark.parametrize(("is_deadline", "state"), [(True, J.TIMEOUT), (False, J.EXPIRED)])
def test_an_overdue_job_ends(is_deadline: bool, state: JobState) -> None:
    world = World.of(task("a"))
    draft = world.draft()
    assert overdue(draft, is_deadline=is_deadline)
    world.put(draft)
    assert world.job.state is state
    world.check()


def test_a_finished_job_stays_as_it_is() -> None:
    draft = finished().draft()
    assert not cancel(draft, "")
    assert not overdue(draft, is_deadline=True)
    assert not draft.is_changed
    for action in (pause, resume):
        with pytest.raises(WrongState, match="already COMPLETED"):
            action(draft)


def test_pause_holds_what_is_queued_and_resume_lets_it_go() -> None:
    world = World.of(task("a"), task("b"), task("c", "b"))
    world.claim(world.step("b"))
    draft = world.draft()
    assert pause(draft)
    world.put(draft)
    assert world.states() == {"a": S.HELD, "b": S.RUNNING, "c": S.BLOCKED}
    assert not pause(world.draft())
    draft = world.draft()
    draft.steps[2].state, draft.steps[2].holds = S.HELD, Hold.SLOT
    assert resume(draft)
    world.put(draft)
    assert world.states() == {"a": S.QUEUED, "b": S.RUNNING, "c": S.BLOCKED}
    assert not resume(world.draft())
    world.check()
