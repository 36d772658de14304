"""Pictures and what is typed: pure, so checked without a process."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from windlass.cli.arguments import parse_inputs, parse_json, parse_labels, parse_money, parse_seconds
from windlass.cli.exits import Exit, exit_for_error, exit_for_job
from windlass.cli.graph import Box, layout, plain_lines
from windlass.cli.live import changes, fit_boxes
from windlass.cli.marks import bar, duration
from windlass.cli.picture import boxes_of_job
from windlass.cli.screen import Screen, one_line
from windlass.core import errors
from windlass.core.errors import BadInput, WindlassError
from windlass.core.states import JobState, StepState


def box(name: str, *needs: str, **more: object) -> Box:
    return Box(name, "task", name, needs, **more)  # type: ignore[arg-type]


def test_a_fork_is_drawn_as_branches_and_a_join_comes_back_to_its_column() -> None:
    boxes = [
        box("script", state="COMPLETED", seconds=0.2),
        box("shots", "script", is_fan=True, fan=6, fan_done=4, state="RUNNING", retries=1),
        box("grade", "shots", state="BLOCKED"),
        box("poster", "script", state="QUEUED"),
        box("stitch", "grade", "poster", state="BLOCKED"),
        box("publish", "stitch", state="BLOCKED"),
    ]
    assert plain_lines(boxes) == [
        "✓ script                              COMPLETED  0.2 s",
        "├─ ◐ shots   ×6 ██████████░░░░░░ 4/6  RUNNING           ↻1",
        "│  · grade                            BLOCKED",
        "└─ ○ poster                           QUEUED",
        "· stitch                              BLOCKED           ← grade, poster",
        "· publish                             BLOCKED",
    ]


def test_several_beginnings_are_branches_of_nothing() -> None:
    assert [line.lead for line in layout([box("a"), box("b"), box("c", "a", "b")])] == ["├─ ", "└─ ", ""]


def test_a_long_chain_is_one_column() -> None:
    chain = [box("s0"), *(box(f"s{n}", f"s{n - 1}") for n in range(1, 5_000))]
    assert {line.lead for line in layout(chain)} == {""}


def test_a_bar_is_full_only_at_the_end_and_never_empty_after_the_start() -> None:
    assert bar(0, 1000, 4) == "░░░░" and bar(1, 1000, 4) == "█░░░" and bar(999, 1000, 4) == "███░"
    assert bar(1000, 1000, 4) == "████" and bar(0, 0, 4) == "████"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, ""), (0.0021, "2 ms"), (0.2, "0.2 s"), (59.99, "1 m 00 s"), (3700, "1 h 01 m"), (200_000, "2 d 7 h")],
)
def test_times_are_said_as_people_say_them(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_a_change_is_told_once() -> None:
    told: dict[str, str] = {}
    assert changes([box("a", state="RUNNING"), box("b", "a", state="BLOCKED")], told) == ["  ◐ a  RUNNING"]
    assert changes([box("a", state="RUNNING"), box("b", "a", state="BLOCKED")], told) == []
    assert len(changes([box("a", state="COMPLETED"), box("b", "a", state="RUNNING")], told)) == 2


def test_a_graph_higher_than_the_screen_keeps_what_is_going_on() -> None:
    boxes = [box("s0", state="COMPLETED"), *(box(f"s{n}", f"s{n - 1}", state="COMPLETED") for n in range(1, 50))]
    boxes[30] = box("s30", "s29", state="RUNNING")
    shown, left_out = fit_boxes(boxes, 5)
    assert "s30" in {one.name for one in shown} and (len(shown), left_out) == (5, 45)
    assert len(layout(shown)) == 5


def test_user_text_cannot_move_the_cursor() -> None:
    assert one_line("a\x1b[2Jb\nc\td") == "a [2Jb c d"


def test_values_are_json_or_else_text(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text('{"a": 1, "b": [2]}')
    given = ["x=1", "y=[1, 2]", "z=hello", "e=", "q=a=b", f"@{tmp_path}/all.json", "a=null"]
    assert parse_inputs(given) == {"x": 1, "y": [1, 2], "z": "hello", "e": "", "q": "a=b", "a": None, "b": [2]}
    assert parse_labels(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    assert [parse_seconds("--ttl", text) for text in (None, "90", "1.5", "2m", "1h30m")] == [None, 90, 1.5, 120, 5400]


@pytest.mark.parametrize("item", ["=1", "topic", "@nowhere.json", "x=@nowhere.txt"])
def test_an_input_that_cannot_be_read_is_refused(item: str) -> None:
    with pytest.raises(errors.BadInput):
        parse_inputs([item])


def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "deep.json").write_text(f'{{"a": {deep}}}', encoding="utf-8")
    for item in (f"a={deep}", f"@{tmp_path}/deep.json", f"a=@{tmp_path}/deep.json"):
        with pytest.raises(errors.BadInput, match="nested too deeply"):
            parse_inputs([item])


def test_an_error_is_cut_and_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().error("no \x1b[2J" + "x" * 100_000, "say\x00 less", 2)
    said = capsys.readouterr().err
    assert len(said) < 5_000 and "(100,007 characters)" in said
    assert "\x1b" not in said and "\x00" not in said


def test_every_error_and_every_ending_has_its_code() -> None:
    codes = {kind: exit_for_error(kind("x")) for kind in (
        errors.BadInput, errors.BadRecipe, errors.BadSetting, errors.NotFound, errors.Conflict, errors.WrongState,
        errors.DatabaseUnavailable, errors.WaitTimeout, errors.Broken,
    )}  # fmt: skip
    assert list(codes.values()) == [2, 2, 2, 4, 5, 5, 3, 6, 1]
    assert exit_for_job(JobState.COMPLETED) is Exit.DONE and exit_for_job(JobState.CANCELLED) is Exit.JOB_CANCELLED
    assert exit_for_job(JobState.EXPIRED) is Exit.JOB_FAILED


def waiting(status: StepState, waiting_for: str, progress: object = None) -> dict[str, Any]:
    return {
        "no": 0, "step": "a", "kind": "task", "run": "a", "needs": [], "status": str(status), "fan": None, "attempt": 1,
        "failures": 0, "wake_at": None, "waiting_for": waiting_for, "error": None, "progress": progress,
        "started_at": None, "finished_at": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("step", "note"),
    [
        (waiting(StepState.HELD, "slot"), "stands in line"),
        (waiting(StepState.HELD, "paused"), "held: paused"),
        (waiting(StepState.PARKED, "external:fal"), "waits for fal"),
        (
            waiting(StepState.PARKED, "external:fal", {"pct": 40.0, "message": "frame 4"}),
            "waits for fal · 40 % · frame 4",
        ),
        (waiting(StepState.PARKED, "retry", {"pct": 40.0, "message": "f"}), "tried again"),
        (waiting(StepState.PARKED, "event:approved"), "waits for approved"),
        (waiting(StepState.PARKED, "child:x"), "waits for its child job"),
    ],
)
def test_a_step_that_waits_says_for_what_and_how_far_it_is(step: dict[str, Any], note: str) -> None:
    [drawn] = boxes_of_job([step], datetime.now(UTC))
    assert drawn.note == note


def test_amounts_and_json_are_read_as_people_write_them(tmp_path: Path) -> None:
    assert parse_money("--budget", "12.50") == Decimal("12.5")
    (tmp_path / "body").write_text('{"by": "ada"}')
    assert parse_json("--body", f"@{tmp_path / 'body'}") == {"by": "ada"}
    for text in ("-1", "1e3", "much", "1.", "٣", "NaN", ""):
        with pytest.raises(BadInput):
            parse_money("--budget", text)
    for text in ("{", "approved", "", "@/nowhere/at/all"):
        with pytest.raises(WindlassError):
            parse_json("--body", text)
