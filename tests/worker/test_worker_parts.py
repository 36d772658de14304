"""The parts of a worker, each by itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tests.worker import handlers
from windlass.core.errors import DatabaseUnavailable, Permanent, TooLarge, WrongState
from windlass.core.outcome import Failure, Report, Success
from windlass.engine.note import Note
from windlass.engine.settle import Settled
from windlass.worker import settler as settler_module
from windlass.worker.begun import SPARE, Begun
from windlass.worker.begun import read as read_begun
from windlass.worker.binding import BadArguments, Binding
from windlass.worker.child import Address
from windlass.worker.context import Context, Words, context
from windlass.worker.drive import Drive
from windlass.worker.heartbeat import is_stopped
from windlass.worker.lanes import Lanes
from windlass.worker.notes import Notes
from windlass.worker.output import NotJson
from windlass.worker.settler import Settler
from windlass.worker.threads import Threads

JOB = UUID(int=7)
KEY = (JOB, 0, 1)
variable: ContextVar[str] = ContextVar("variable", default="unset")


def a_context(said: list[Words] | None = None, **given: Any) -> Context:
    return Context(JOB, "render", given.pop("index", None), 2, say=None if said is None else said.append, **given)


# Context.


def test_the_key_is_the_same_on_every_attempt_and_another_for_each_item() -> None:
    assert Context(JOB, "render", None, 1).key == Context(JOB, "render", None, 5).key == f"{JOB}/render"
    assert Context(JOB, "render", 3, 1).key == f"{JOB}/render[3]"


def test_a_context_says_what_it_is_told_and_nothing_once_it_is_closed() -> None:
    said: list[Words] = []
    ctx = a_context(said)
    ctx.progress(140, "nearly")
    ctx.preview([1])
    ctx.save({"page": 2})
    assert said == [{"progress_pct": 100.0, "message": "nearly"}, {"preview": "[1]"}, {"checkpoint": '{"page":2}'}]
    assert ctx.checkpoint == {"page": 2}
    ctx._close()
    ctx.progress(1)
    assert len(said) == 3


def test_a_context_refuses_what_could_not_be_kept() -> None:
    ctx = a_context([])
    with pytest.raises(ValueError, match="0 to 100"):
        ctx.progress(float("nan"))
    with pytest.raises(NotJson, match=r"checkpoint\.a is object"):
        ctx.save({"a": object()})
    with pytest.raises(TooLarge, match="preview has"):
        ctx.preview("x" * 300_000)


def test_a_log_line_names_its_attempt(caplog: pytest.LogCaptureFixture) -> None:
    a_context().log.warning("slow", extra={"page": 3})
    (record,) = caplog.records
    assert record.getMessage() == f"[{JOB}/render attempt 2] slow"
    assert (record.job, record.step, record.attempt, record.page) == (str(JOB), "render", 2, 3)  # type: ignore[attr-defined]


def test_outside_a_handler_there_is_no_context() -> None:
    with pytest.raises(WrongState, match="inside a step"):
        context()


# Binding.


@dataclass
class Scene:
    title: str
    at: datetime


class Foreign:
    pass


async def takes_much(
    scene: Scene, scenes: list[Scene], note: str | None = None, ctx: Context | None = None
) -> None: ...


def takes_foreign(thing: Foreign, number: int) -> None: ...


def takes_anything(**rest: Any) -> None: ...


def test_arguments_become_what_the_hints_ask_for() -> None:
    scene = {"title": "t", "at": "2024-05-01T00:00:00Z"}
    binding, ctx = Binding(takes_much), a_context()
    found = binding.arguments({"scene": scene, "scenes": [scene]}, ctx)
    assert binding.is_async
    assert found["scene"] == found["scenes"][0] == Scene("t", datetime.fromisoformat("2024-05-01T00:00:00+00:00"))
    assert found["ctx"] is ctx


def test_what_no_hint_can_convert_is_passed_as_it_is() -> None:
    given = {"thing": {"a": 1}, "number": "seven"}
    assert Binding(takes_foreign).arguments(given, a_context()) == given
    assert Binding(takes_anything).arguments({"a": 1}, a_context()) == {"a": 1}
    assert Binding(takes_anything).arguments(None, a_context()) == {}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "needs scene, scenes"),
        ({"scene": {}, "scenes": [], "more": 1}, "takes no argument more"),
        ({"scene": {"title": 1}, "scenes": []}, "argument scene of takes_much"),
        ({"scene": {}, "scenes": [], "ctx": 1}, "takes no argument ctx"),
        ([1], "names and values"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(given: Any, complaint: str) -> None:
    with pytest.raises(BadArguments, match=complaint):
        Binding(takes_much).arguments(given, a_context())


def test_a_cpu_handler_is_found_again_by_its_address() -> None:
    function = handlers.add_in_process.function
    assert Address.of(function).load() is function
    with pytest.raises(Permanent, match="top of a module"):
        Address.of(lambda: None)


# Drive and lanes.


def test_a_driven_coroutine_has_variables_of_its_own_and_a_real_task() -> None:
    async def handler() -> str:
        variable.set("mine")
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
        assert asyncio.current_task() is not None
        return variable.get()

    async def scene() -> None:
        waits: list[int] = []
        assert await Drive(handler(), copy_context(), lambda: waits.append(1)) == "mine"
        assert variable.get() == "unset"
        assert waits == [1]

    asyncio.run(scene())


def test_a_driven_coroutine_can_be_cancelled_and_can_raise() -> None:
    seen: list[str] = []

    async def handler() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(variable.get())
            raise
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned")

    async def drive() -> None:
        variable.set("outer")
        await Drive(handler(), copy_context(), lambda: None)

    async def scene() -> None:
        task = asyncio.create_task(drive())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["outer", "cleaned"]

    asyncio.run(scene())


@pytest.mark.covers("CIX-92")
def test_lanes_run_everything_and_never_more_than_they_may() -> None:
    async def scene() -> None:
        now, most, done = 0, 0, 0
        finished = asyncio.Event()

        async def work(waits: bool) -> bool:
            nonlocal now, most, done
            now, most = now + 1, max(most, now + 1)
            if waits:
                await asyncio.sleep(0.001)
            now, done = now - 1, done + 1
            if done == 300:
                finished.set()
            return not waits

        lanes: Lanes[bool] = Lanes(10, work)
        for at in range(300):
            lanes.put(at % 3 == 0)
        await asyncio.wait_for(finished.wait(), 60)
        assert most == 10
        await lanes.close()

    asyncio.run(scene())


def test_handlers_that_never_wait_share_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    # A machine that stalls would otherwise use up the slice, and another lane would have its turn.
    monkeypatch.setattr("windlass.worker.lanes.SLICE_S", 60.0)

    async def scene() -> None:
        tasks: set[Any] = set()

        async def work(_: int) -> bool:
            tasks.add(asyncio.current_task())
            return True

        lanes: Lanes[int] = Lanes(50, work)
        for at in range(50):
            lanes.put(at)
        await asyncio.sleep(0.01)
        assert len(tasks) == 1
        await lanes.close()

    asyncio.run(scene())


# Threads.


def test_a_thread_is_kept_and_one_that_was_left_is_not() -> None:
    async def scene() -> None:
        threads = Threads()
        first = await threads.run(threading.get_ident)
        assert await threads.run(threading.get_ident) == first
        release = threading.Event()
        hanging = asyncio.create_task(threads.run(lambda: release.wait(10) and threading.get_ident()))
        await asyncio.sleep(0.01)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert threads.count == 0
        other = await threads.run(threading.get_ident)
        assert (other, threads.count) != (first, 2)
        release.set()
        threads.close()

    asyncio.run(scene())


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration("x"), SystemExit(1)])
def test_what_a_thread_raises_reaches_the_caller(error: BaseException) -> None:
    def fails() -> None:
        raise error

    async def scene() -> None:
        threads = Threads()
        with pytest.raises((ValueError, RuntimeError, SystemExit)):
            await threads.run(fails)
        assert await threads.run(lambda: 1) == 1
        threads.close()

    asyncio.run(scene())


# Notes.


def with_notes(scene: Any, *, every_s: float = 0.05, fail_first: Exception | None = None) -> list[list[Note]]:
    """Run a scene with notes that write into a list."""
    written: list[list[Note]] = []
    failures = [] if fail_first is None else [fail_first]

    async def write(notes: Sequence[Note]) -> None:
        await asyncio.sleep(0)
        if failures:
            raise failures.pop()
        written.append(list(notes))

    async def main() -> None:
        notes = Notes(write, every_s=every_s)
        await scene(notes)
        await notes.close()

    asyncio.run(main())
    return written


def test_a_burst_of_words_is_written_once_and_the_last_of_each_kind_wins() -> None:
    async def scene(notes: Notes) -> None:
        for pct in range(1000):
            notes.say(KEY, {"progress_pct": pct})
        notes.say(KEY, {"checkpoint": "1"})
        notes.say((JOB, 1, 1), {"message": "other"})
        await notes.finish(KEY)
        assert not notes.is_owed(KEY)

    written = with_notes(scene, every_s=3600)
    assert written == [[Note(*KEY, progress_pct=999, checkpoint="1"), Note(JOB, 1, 1, message="other")]]


def test_an_attempt_is_not_written_again_too_soon_but_its_last_words_are_not_kept_waiting() -> None:
    async def scene(notes: Notes) -> None:
        notes.say(KEY, {"progress_pct": 1})
        while notes.is_owed(KEY):
            await asyncio.sleep(0)
        notes.say(KEY, {"progress_pct": 2})
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert notes.is_owed(KEY)
        await notes.finish(KEY)

    assert [batch[0].progress_pct for batch in with_notes(scene, every_s=3600)] == [1, 2]


def test_words_may_come_from_threads() -> None:
    async def scene(notes: Notes) -> None:
        await asyncio.gather(*(asyncio.to_thread(notes.say, KEY, {"progress_pct": pct}) for pct in range(50)))
        await notes.finish(KEY)

    assert with_notes(scene)


def test_words_that_the_database_could_not_take_are_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.worker.notes.RETRY_AFTER_S", 0.01)

    async def scene(notes: Notes) -> None:
        notes.say(KEY, {"progress_pct": 1, "message": "old"})
        await asyncio.sleep(0.005)
        notes.say(KEY, {"message": "new"})
        await notes.finish(KEY)

    written = with_notes(scene, fail_first=DatabaseUnavailable("away"))
    assert written[-1][0].message == "new"
    assert written[0][0].progress_pct == 1


def test_words_that_cannot_be_written_do_not_keep_the_outcome() -> None:
    async def scene(notes: Notes) -> None:
        notes.say(KEY, {"progress_pct": 1})
        await asyncio.wait_for(notes.finish(KEY), 60)

    assert with_notes(scene, fail_first=ValueError("odd")) == []


# Settler.


def a_report(no: int) -> Report:
    return Report(JOB, no, 1, Success("1"))


def settle_all(reports: Sequence[Report], settle: Any, monkeypatch: pytest.MonkeyPatch) -> list[Settled]:
    monkeypatch.setattr(settler_module, "WAITS", settler_module.Backoff(0.001))
    heard: list[Settled] = []

    async def main() -> None:
        settler = Settler(settle, heard.append)
        for report in reports:
            settler.add(report)
        assert settler.backlog == len(reports)
        await asyncio.wait_for(settler.drained(), 60)
        assert settler.backlog == 0
        await settler.close()

    asyncio.run(main())
    return heard


def settled(reports: Sequence[Report]) -> Settled:
    return Settled((True,) * len(reports), frozenset(), False)


def test_outcomes_are_reported_in_batches_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    at_once = 0

    async def settle(reports: Sequence[Report]) -> Settled:
        nonlocal at_once
        at_once += 1
        assert at_once <= 2
        sizes.append(len(reports))
        await asyncio.sleep(0)
        at_once -= 1
        return settled(reports)

    settle_all([a_report(no) for no in range(1200)], settle, monkeypatch)
    assert sizes == [500, 500, 200]


@pytest.mark.covers("COR-108")
def test_outcomes_wait_for_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    async def settle(reports: Sequence[Report]) -> Settled:
        calls.append(len(reports))
        if len(calls) < 4:
            raise DatabaseUnavailable("away")
        return settled(reports)

    heard = settle_all([a_report(no) for no in range(3)], settle, monkeypatch)
    assert calls == [3, 3, 3, 3]
    assert [len(one.took_effect) for one in heard] == [3]


def test_an_outcome_that_cannot_be_written_does_not_take_others_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Report] = []

    async def settle(reports: Sequence[Report]) -> Settled:
        if any(report.no == 1 and isinstance(report.outcome, Success) for report in reports):
            raise ValueError("cannot be encoded")
        taken.extend(reports)
        return settled(reports)

    settle_all([a_report(no) for no in range(3)], settle, monkeypatch)
    assert [report.no for report in taken] == [0, 1, 2]
    assert isinstance(taken[1].outcome, Failure)
    assert taken[1].outcome.fault.code == "bad_report"


# Heartbeat.


def test_a_stopped_process_is_seen() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert is_stopped(process.pid)
        process.send_signal(signal.SIGCONT)
        until_s = time.monotonic() + 60
        while is_stopped(process.pid):
            assert time.monotonic() < until_s
    finally:
        process.kill()
        process.wait()


# Which attempts have begun.


def test_another_process_reads_which_attempts_have_begun() -> None:
    begun = Begun(2)
    keys = [(UUID(int=number), number, number + 300) for number in range(1, 4)]
    places = [begun.mark(key) for key in keys]
    begun.clear(places[1])
    code = (
        "from windlass.worker.begun import read\n"
        f"keys, unnamed = read({begun.descriptor})\n"
        "print(sorted((key.int, no, attempt) for key, no, attempt in keys), unnamed)"
    )
    told = subprocess.run([sys.executable, "-c", code], pass_fds=[begun.descriptor], capture_output=True, check=True)
    assert told.stdout.decode().strip() == "[(1, 1, 301), (3, 3, 303)] 0"
    begun.close()


def test_attempts_beyond_the_table_are_counted() -> None:
    begun = Begun(1)
    places = [begun.mark((JOB, number, 1)) for number in range(SPARE + 4)]
    keys, unnamed = read_begun(begun.descriptor)
    assert (len(keys), unnamed) == (SPARE + 1, 3)
    for place in reversed(places):
        begun.clear(place)
    assert read_begun(begun.descriptor) == (set(), 0)
    begun.close()
