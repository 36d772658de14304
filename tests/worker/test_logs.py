"""What handlers log is kept with their steps: wherever they run, in order, and not too much of it."""

from __future__ import annotations

import asyncio
import io
import logging
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from tests.worker.yard import Yard
from windlass.core.errors import DatabaseUnavailable
from windlass.core.plan import Node
from windlass.engine.note import Note
from windlass.recipe.step import step
from windlass.telemetry import logs
from windlass.views import attempts, read
from windlass.worker import log_tail
from windlass.worker.context import LOG, Context
from windlass.worker.log_tail import BURST_BYTES, BYTES_MAX, LINE_MAX_CHARS, LINES_MAX, Pace, Tail, line_of
from windlass.worker.notes import Notes

log = logging.getLogger("some.library")
KEY = "wl_abcdefghijkl_" + "S" * 30


def _write(ctx: Context, count: int) -> None:
    ctx.log.info("begun %d", count)
    for number in range(count):
        log.warning("line %d", number)
    try:
        raise ValueError("a cause of its own")
    except ValueError:
        log.exception("it went wrong")


@step
async def on_loop(ctx: Context, count: int) -> None:
    _write(ctx, count)
    await asyncio.sleep(0)
    await asyncio.to_thread(log.warning, "from a helper")


@step
def in_thread(ctx: Context, count: int) -> None:
    _write(ctx, count)


@step(cpu=True)
def in_process(ctx: Context, count: int) -> None:
    _write(ctx, count)


@step
async def quiet() -> None:
    return None


@step
async def odd(ctx: Context) -> None:
    log.error("a key %s and \x00 and \ud800", KEY)
    log.error("%d %d", 1)
    log.error("x" * 100_000)
    log.warning(Unprintable())
    logging.getLogger("py.warnings").warning("old ways")
    ctx.log.debug("never")


@step
async def patient(ctx: Context) -> None:
    log.warning("the first")
    async with asyncio.timeout(60):
        while not ctx.cancelled:
            await asyncio.sleep(0.02)


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


STEPS: dict[str, Any] = {one.name: one for one in (on_loop, in_thread, in_process, quiet, odd, patient)}


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """The log of a process that writes warnings alone, as ours does by default."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.handlers.clear()
    made = io.StringIO()
    logs.configure("console", "warning", made)
    yield made
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)


async def run(yard: Yard, name: str, **inputs: Any) -> UUID:
    [job] = await yard.submit(Node(name=name, run=name, with_=inputs))
    root = logging.getLogger()
    # Pytest's own handlers raise what a line's arguments make go wrong.
    root.handlers[:] = [handler for handler in root.handlers if not type(handler).__module__.startswith("_pytest")]
    async with yard.working(steps=STEPS):
        await yard.waiter.wait(job, 30)
    return job


async def texts(yard: Yard, job: UUID) -> list[str]:
    return [line.text for line in await attempts.logs(yard.db, job, 0)]


@pytest.mark.parametrize("name", ["on_loop", "in_thread", "in_process"])
async def test_what_a_handler_logs_is_kept_wherever_it_runs(yard: Yard, stream: io.StringIO, name: str) -> None:
    job = await run(yard, name, count=3)
    found = await attempts.logs(yard.db, job, 0)
    first = [(line.level, line.text) for line in found[:4]]
    assert first == [("info", "begun 3"), ("warning", "line 0"), ("warning", "line 1"), ("warning", "line 2")]
    assert found[4].text.startswith("it went wrong\nTraceback")
    assert found[4].text.endswith("ValueError: a cause of its own")
    assert {line.attempt for line in found} == {1}
    assert len(found) == (6 if name == "on_loop" else 5)
    # The log of the process is as it was: what the level leaves out is not in it.
    assert "begun" not in stream.getvalue()
    types = [event.type for event in await read.events(yard.db, job)]
    assert types.index("step.log") < types.index("step.completed")


async def test_a_step_that_logs_nothing_writes_nothing(yard: Yard, stream: io.StringIO) -> None:
    log.warning("no attempt runs here")
    job = await run(yard, "quiet")
    assert "step.log" not in [event.type for event in await read.events(yard.db, job)]


async def test_a_great_many_lines_are_kept_in_part_and_the_newest_win(yard: Yard, stream: io.StringIO) -> None:
    job = await run(yard, "in_thread", count=5_000)
    events = [event for event in await read.events(yard.db, job) if event.type == "step.log"]
    told = sum(len(event.payload["lines"]) + event.payload["dropped"] for event in events)
    assert told == 5_002
    assert all(len(event.payload["lines"]) <= LINES_MAX for event in events)
    found = await texts(yard, job)
    assert len(found) <= LINES_MAX
    assert found[-2] == "line 4999"


async def test_whatever_is_logged_can_be_written_and_holds_no_key(yard: Yard, stream: io.StringIO) -> None:
    job = await run(yard, "odd")
    found = await texts(yard, job)
    assert found[0] == "a key wl_abcdefghijkl_… and \\0 and ?"
    assert found[1] == "%d %d (its arguments do not fit)"
    assert len(found[2]) <= LINE_MAX_CHARS + 3
    assert "cannot be shown" in found[3]
    assert "old ways" in found[4]
    assert len(found) == 5
    assert (await read.job(yard.db, job)).state == "COMPLETED"


async def test_lines_are_there_while_the_attempt_still_runs(yard: Yard, stream: io.StringIO) -> None:
    [job] = await yard.submit(Node(name="patient", run="patient", with_={}))
    async with yard.working(steps=STEPS) as worker:
        async with asyncio.timeout(60):
            while not await texts(yard, job):
                await asyncio.sleep(0.02)
        assert [one.state for one in await read.steps(yard.db, job)] == ["RUNNING"]
        worker.stop(now=True)


def test_where_nobody_set_logging_up_warnings_still_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    root.handlers.clear()
    try:
        with log_tail.caught(), log_tail.caught():
            logging.getLogger("lonely").warning("heard")
            logging.getLogger("lonely").info("not heard")
        assert root.handlers == []
    finally:
        root.handlers[:] = before
    assert capsys.readouterr().err == "heard\n"


def test_levels_are_as_they_were_when_the_last_worker_is_gone(stream: io.StringIO) -> None:
    root, own = logging.getLogger(), logging.getLogger("windlass")
    with log_tail.caught():
        with log_tail.caught():
            assert root.level == logging.INFO
        assert root.level == logging.INFO
        # Our own loggers write a line for each request, and a line that is not written must cost nothing.
        assert not logging.getLogger("windlass.http").isEnabledFor(logging.INFO)
    assert (root.level, own.level) == (logging.WARNING, logging.NOTSET)


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("some", logging.INFO, __file__, 1, text, None, None)


def test_a_tail_is_the_newest_lines_and_says_what_it_dropped() -> None:
    tail = Tail()
    for number in range(LINES_MAX + 5):
        tail.add(line_of(record(str(number))))
    assert [line["text"] for line in tail.as_json()["lines"]] == [str(n) for n in range(5, LINES_MAX + 5)]
    assert tail.as_json()["dropped"] == 5
    later = Tail()
    for _ in range(40):
        later.add(line_of(record("ä" * 1_000)))
    assert later.size <= BYTES_MAX
    tail.join(later)
    assert tail.size <= BYTES_MAX
    assert len(tail.lines) + tail.dropped == LINES_MAX + 5 + 40


def test_one_line_of_any_size_is_kept() -> None:
    tail = Tail()
    tail.add(line_of(record("ä" * 1_000_000)))
    assert len(tail.lines) == 1
    assert tail.size < BYTES_MAX


def test_an_attempt_that_logs_without_end_writes_less_and_less() -> None:
    now_s, size, writes = 100.0, BYTES_MAX, []
    pace = Pace(now_s)
    while now_s < 3_700:
        now_s += max(pace.wait_s(size, now_s), 1e-9)
        pace.spend(size, now_s)
        writes.append(now_s)
    assert writes[0] < 100.5
    assert all(later - earlier >= 1.0 - 1e-6 for earlier, later in pairwise(writes))
    # In an hour no more than its credit, and what comes to it.
    assert len(writes) * size <= BURST_BYTES + 3_600 * log_tail.RATE_BYTES + size


async def test_lines_wait_for_their_pace_and_are_written_with_the_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "FIRST_AFTER_S", 3_600.0)
    written: list[Note] = []

    async def write(notes: Any) -> None:
        written.extend(notes)

    notes = Notes(write, every_s=0.01)
    key = (UUID(int=1), 0, 1)
    try:
        for number in range(3):
            tail = Tail()
            tail.add(line_of(record(f"line {number}")))
            notes.say(key, {LOG: tail})
            notes.say(key, {"progress_pct": float(number)})
            while not [note for note in written if note.progress_pct == number]:
                await asyncio.sleep(0.005)
        assert [note.log for note in written] == [None, None, None]
        async with asyncio.timeout(60):
            await notes.finish(key)
        assert written[-1].log is not None
        assert [line["text"] for line in written[-1].log["lines"]] == ["line 0", "line 1", "line 2"]
        assert not notes._paces
        assert not notes._written_s
    finally:
        await notes.close()


async def test_lines_outlive_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.worker.notes.RETRY_AFTER_S", 0.01)
    written: list[Note] = []
    is_asked, may_fail = asyncio.Event(), asyncio.Event()

    async def write(notes: Any) -> None:
        if not may_fail.is_set():
            is_asked.set()
            await may_fail.wait()
            raise DatabaseUnavailable("away")
        written.extend(notes)

    notes = Notes(write, every_s=0.01)
    key = (UUID(int=1), 0, 1)
    try:
        for number in range(2):
            tail = Tail()
            tail.add(line_of(record(f"line {number}")))
            notes.say(key, {LOG: tail, **({"checkpoint": "1"} if number else {})})
            if number == 0:
                # The second is said while the first is on its way, which comes back.
                async with asyncio.timeout(60):
                    finishing = asyncio.create_task(notes.finish(key))
                    await is_asked.wait()
        may_fail.set()
        async with asyncio.timeout(60):
            await finishing
        lines = [line["text"] for note in written if note.log is not None for line in note.log["lines"]]
        assert lines == ["line 0", "line 1"]
        assert written[-1].checkpoint == "1"
    finally:
        await notes.close()


def test_a_thread_that_goes_on_after_its_attempt_speaks_for_nobody() -> None:
    said: list[Any] = []
    ctx = Context(UUID(int=1), "one", None, 1, say=said.append)
    token = logs.running.set(ctx)
    try:
        with log_tail.caught():
            log.error("heard")
            ctx._close()
            log.error("not heard")
            thread = threading.Thread(target=log.error, args=("nor this",))
            thread.start()
            thread.join()
    finally:
        logs.running.reset(token)
    assert len(said) == 1
