"""Log lines: each can be read by a machine, and says what it is about."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.telemetry.process import plan, submitted, worker_process
from windlass.store.database import Database
from windlass.telemetry import logs
from windlass.views.read import Waiter
from windlass.worker.context import Context, enter

ROOT = Path(__file__).parents[2]
JOB = UUID("01997f00-0000-7000-8000-000000000001")
KEY = "wl_abcdefghijkl_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO"
log = logging.getLogger("tests.logs")


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


@pytest.fixture(params=["json", "console"])
def stream(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    yield from configured(request.param)


@pytest.fixture
def json_stream() -> Iterator[io.StringIO]:
    yield from configured("json")


@pytest.fixture
def console_stream() -> Iterator[io.StringIO]:
    yield from configured("console")


def configured(format: str) -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    stream = io.StringIO()
    logs.configure(format, "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_what_it_is_about(json_stream: io.StringIO) -> None:
    log.info("hello %s", "there", extra={"status": 200})
    (line,) = lines(json_stream)
    assert (line["message"], line["level"], line["logger"]) == ("hello there", "info", "tests.logs")
    assert line["status"] == 200
    assert str(line["at"]).endswith("Z")
    assert not set(logs.IDS) & set(line)


def test_a_librarys_line_within_a_handler_has_the_attempts_ids(json_stream: io.StringIO) -> None:
    token = logs.running.set(None)
    try:
        enter(Context(JOB, "cut", 3, 2, request_id="req-1"))
        logging.getLogger("somebody.else").warning("retrying")
    finally:
        logs.running.reset(token)
    (line,) = lines(json_stream)
    assert [line[name] for name in logs.IDS[:5]] == [str(JOB), "cut", 3, 2, "req-1"]


def test_a_handlers_own_line_says_its_ids_once(json_stream: io.StringIO) -> None:
    Context(JOB, "cut", None, 2, request_id="req-1").log.warning("the %s is late", "reel")
    (line,) = lines(json_stream)
    assert line["message"] == "the reel is late"
    assert (line["job"], line["step"], line["attempt"], line["request_id"]) == (str(JOB), "cut", 2, "req-1")


def test_a_line_of_a_request_has_its_id_and_caller(json_stream: io.StringIO) -> None:
    tokens = logs.request_id.set("req-2"), logs.caller.set("ann")
    try:
        log.warning("slow")
    finally:
        logs.request_id.reset(tokens[0])
        logs.caller.reset(tokens[1])
    (line,) = lines(json_stream)
    assert (line["request_id"], line["caller"]) == ("req-2", "ann")


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("line\nbreak \r\x1b[31m \x00 \u2028", ()),
        ("half \ud800 pair", ()),
        ("%d of %s", ("x",)),
        ("%s", (Unshowable(),)),
        ("x" * 1_000_000, ()),
        ("", ()),
    ],
)
def test_any_message_is_one_json_line(message: str, arguments: tuple[object, ...]) -> None:
    more = {"odd": {"a": {1}}, "number": float("nan"), "text": message, "bad": Unshowable()}
    record = logging.makeLogRecord({"msg": message, "args": arguments, "levelname": "WARNING", **more})
    (text,) = logs.JsonLines().format(record).splitlines()
    assert json.loads(text)["level"] == "warning"
    assert len(text) < 3 * logs.TEXT_MAX_CHARS


def test_an_exception_is_part_of_its_line(json_stream: io.StringIO) -> None:
    try:
        raise ValueError("no\nreel")
    except ValueError:
        log.exception("failed")
    (line,) = lines(json_stream)
    assert "ValueError: no\nreel" in str(line["error"])


def test_a_message_cannot_pass_for_another_line(console_stream: io.StringIO) -> None:
    log.warning("innocent\n2026-01-01 00:00:00.000 ERROR windlass: forged\r\x1b[2K")
    first, second = console_stream.getvalue().splitlines()
    assert "innocent" in first
    assert second.startswith("    ")
    assert "\x1b" not in second


def test_people_see_whose_line_it_is(console_stream: io.StringIO) -> None:
    Context(JOB, "cut", None, 2, request_id="req-1").log.warning("late")
    log.warning("plain")
    log.warning("other", extra={"job": "j1", "attempt": 1})
    first, second, third = console_stream.getvalue().splitlines()
    assert first.endswith(f"[{JOB}/cut attempt 2] late  request_id=req-1")
    assert second.endswith("tests.logs: plain")
    assert third.endswith("other  job=j1 attempt=1")


def test_a_key_never_reaches_the_log(stream: io.StringIO) -> None:
    log.warning("refused %s", KEY, extra={"header": f"Bearer {KEY}", "caller": KEY})
    try:
        raise ValueError(f"whsec_{'A' * 32} and {KEY}")
    except ValueError:
        log.exception("failed")
    assert KEY not in stream.getvalue()
    assert "wl_abcdefghijkl_…" in stream.getvalue()
    assert "A" * 8 not in stream.getvalue()


def test_the_last_set_up_counts(stream: io.StringIO) -> None:
    other = io.StringIO()
    logs.configure("json", logging.ERROR, other)
    assert logs.configured() == ("json", logging.ERROR)
    log.warning("not this")
    log.error("this")
    assert stream.getvalue() == ""
    assert [line["message"] for line in lines(other)] == ["this"]


PROGRAM = """
import warnings
from windlass.telemetry import logs
logs.configure("json", "warning")
warnings.warn("old")
"""


def test_what_python_warns_of_is_a_line_too() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT)
    (line,) = [json.loads(line) for line in done.stderr.splitlines()]
    assert "old" in line["message"]


@pytest.mark.parametrize("run", ["log_here", "log_in_thread", "log_in_process"])
async def test_a_steps_lines_carry_job_step_attempt_and_request(
    dsn: str, db: Database, tmp_path: Path, run: str
) -> None:
    """Wherever its handler runs."""
    async with worker_process(dsn, "logging", tmp_path) as (process, _):
        (job,) = await submitted(db, plan("spoken", ("speak", run, "logging")), request_id="req-7")
        await Waiter(db).wait(job, 30)
        process.terminate()
        _, errors = await process.communicate()
    found = [json.loads(line) for line in errors.decode().splitlines()]
    for message in ("from a library", "from the handler"):
        (line,) = [one for one in found if one["message"] == message]
        assert [line[name] for name in ("job", "step", "attempt", "request_id")] == [str(job), "speak", 1, "req-7"]
