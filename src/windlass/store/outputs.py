"""The only door to outputs, previews, log lines, progress messages and errors.

    statement ─► rows ─► core/visibility.seen(content, reader, job, step) ─► rows as the reader may see them

Every statement that returns such content is listed in `STATEMENTS` and is executed here, so no row leaves the store
before the check. A tidy test fails if a statement that names these columns is not listed, or if another module
executes a listed statement.

The check uses states that the statement itself returns. So content and states come from one snapshot and cost no second
query. A row without hidden content stays the driver's record. In any other row, each hidden column holds a notice in
the column's format: an error has the code `output_quarantined`, a log line has a text that says so. A reader that needs
the value itself (the next step, the parent job, the text of an output) calls `fetch_or_refuse`: it gets all content, or
OutputQuarantined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn, assert_never

import asyncpg
import msgspec

from windlass.core.errors import OutputQuarantined
from windlass.core.states import JobState, StepState
from windlass.core.visibility import MESSAGE, REMEDY, Because, Content, Hidden, Reader, Visible, is_visible, seen
from windlass.store.statements import sql

# The driver's record, or a dict with the same keys if it contains hidden content.
Row = Any

HIDDEN_KEY = "$hidden"
_TEXT = f"{MESSAGE}. {REMEDY}"
# The keys that the engine writes into the payload of an event; all other keys come from a step.
_ENGINE_KEYS = (
    "because",
    "company",
    "effects",
    "fresh",
    "from",
    "how",
    "of",
    "states",
    "until",
    "waiting_for",
    "worker",
)
_OF_EVENT = {"step.log": Content.LOG, "step.progress": Content.PROGRESS, "step.preview": Content.PREVIEW}
_SAID = (Content.ERROR, *_OF_EVENT.values())


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """The columns of a statement's rows that are content, and the columns with the states that decide about it.

    `step` is None if all content belongs to the job. A row may lack columns of its shape, but not the states. The
    payload of an event may be content of several kinds; the event's `type` decides.
    """

    job: str
    step: str | None
    content: Mapping[str, tuple[Content, ...]]

    @property
    def own(self) -> str:
        """The column with the state of the row's own job or step."""
        return self.step or self.job


_OF_JOB = {"input": (Content.INPUT,), "error": (Content.ERROR,), "progress": (Content.PROGRESS,)}
_OF_STEP = {"item": (Content.ITEM,), "output": (Content.OUTPUT,), **_OF_JOB}
JOB = Shape("state", None, _OF_JOB)
STEP = Shape("job_state", "state", _OF_STEP)
EVENT = Shape("job_state", "step_state", {"payload": _SAID})
# An event with its job.
FEED = Shape("state", "step_state", {"payload": _SAID, "progress": (Content.PROGRESS,)})
# A job's error in parts.
LETTER = Shape("state", None, {"code": (Content.ERROR,), "message": (Content.ERROR,)})
# A job with the output of one of its steps.
ENDED = Shape("state", "step_state", {"input": (Content.INPUT,), "output": (Content.OUTPUT,)})
# Pieces of outputs.
PIECE = Shape("job_state", "state", dict.fromkeys(("short", "body", "ref", "output"), (Content.OUTPUT,)))

# An approval: the values that it shows are made from the outputs of other steps.
APPROVAL = Shape("job_state", "step_state", {"input": (Content.INPUT,), "arguments": (Content.ITEM,)})

STATEMENTS: dict[str, Shape] = {
    **dict.fromkeys(("read_job", "read_jobs", "read_jobs_trouble", "graph_jobs", "stream_jobs"), JOB),
    **dict.fromkeys(("list_caller", "list_caller_trouble", "list_caller_label", "list_caller_failed_step"), JOB),
    **dict.fromkeys(
        ("list_all", "list_all_failed", "list_all_trouble", "list_all_label", "list_ids", "webhook_claim"), JOB
    ),
    **dict.fromkeys(("read_steps", "read_nodes", "graph_steps", "graph_waits", "attempt_step", "stream_steps"), STEP),
    **dict.fromkeys(("step_outputs_many", "step_fan_outputs", "graph_fan_outputs", "graph_output"), STEP),
    **dict.fromkeys(("step_rows", "step_states", "undo_look", "undo_arguments"), STEP),
    **dict.fromkeys(("read_events", "read_events_newest", "feed_of_jobs"), EVENT),
    **dict.fromkeys(("attempt_begins", "attempt_ends", "attempt_logs"), EVENT),
    **dict.fromkeys(("approval_get", "approval_page", "approval_of_job"), APPROVAL),
    "audit_errors": JOB,
    "feed_page": FEED,
    **dict.fromkeys(("dead_letters", "dead_letters_caller", "overview_error"), LETTER),
    "read_ended": ENDED,
    **dict.fromkeys(("output_sizes", "output_slices", "graph_fan_sizes", "graph_fan_texts"), PIECE),
}


async def fetch(
    connection: asyncpg.Connection, statement: str, reader: Reader, *values: Any, text: str | None = None
) -> list[Row]:
    """Return the rows of a statement of `STATEMENTS`. A notice replaces content that is hidden from the reader.

    `text` replaces the statement's text, for a statement that names an indexed label (`store/labels.py`).
    """
    shape = STATEMENTS[statement]
    rows: list[Row] = await connection.fetch(text or sql(statement), *values)
    return [_shown(row, shape, reader) for row in rows] if _may_hide(rows, shape, reader) else rows


async def fetchrow(connection: asyncpg.Connection, statement: str, reader: Reader, *values: Any) -> Row | None:
    """Return the first row, with a notice in place of hidden content."""
    shape = STATEMENTS[statement]
    row: Row | None = await connection.fetchrow(sql(statement), *values)
    return row if row is None or not _may_hide((row,), shape, reader) else _shown(row, shape, reader)


async def fetch_or_refuse(connection: asyncpg.Connection, statement: str, reader: Reader, *values: Any) -> list[Row]:
    """Return the rows if the reader may see all of their content; otherwise raise OutputQuarantined."""
    shape = STATEMENTS[statement]
    rows: list[Row] = await connection.fetch(sql(statement), *values)
    if _may_hide(rows, shape, reader) and any(_hidden(row, shape, reader) for row in rows):
        _refuse()
    return rows


def check_visible(content: Content, reader: Reader, job: JobState, step: StepState | None = None) -> None:
    """Raise OutputQuarantined if the reader may not see such content of a job in this state."""
    if not is_visible(content, reader, job, step):
        _refuse()


def _refuse() -> NoReturn:
    raise OutputQuarantined(MESSAGE, remedy=REMEDY)


def _may_hide(rows: Sequence[Row], shape: Shape, reader: Reader) -> bool:
    """Return whether any row may have hidden content. Pages are large, so most rows cost only this check."""
    job, step = shape.job, shape.step
    states = {(row[job], None) for row in rows} if step is None else {(row[job], row[step]) for row in rows}
    return not _hiding(shape, reader).isdisjoint(states)


@cache
def _hiding(shape: Shape, reader: Reader) -> frozenset[tuple[str | None, str | None]]:
    """Return the pairs of states in which the reader may not see some content of rows of this shape."""
    contents = sorted({content for kinds in shape.content.values() for content in kinds})
    return frozenset(
        (job, step)
        for job in (None, *JobState)
        for step in ((None,) if shape.step is None else (None, *StepState))
        if not all(is_visible(content, reader, job, step) for content in contents)
    )


def _hidden(row: Row, shape: Shape, reader: Reader) -> dict[str, Because]:
    """Return the columns of the row whose content the reader may not see, with the reasons."""
    job = None if row[shape.job] is None else JobState(row[shape.job])
    step = None if shape.step is None or row[shape.step] is None else StepState(row[shape.step])
    found: dict[str, Because] = {}
    present = set(row.keys())
    for column, kinds in shape.content.items():
        if column not in present:
            continue
        content = kinds[0] if len(kinds) == 1 else _OF_EVENT.get(row["type"], Content.ERROR)
        match seen(content, reader, job, step):
            case Hidden(because):
                found[column] = because
            case Visible():
                pass
            case answer:
                assert_never(answer)
    return found


def _shown(row: Row, shape: Shape, reader: Reader) -> Row:
    """Return the row with a notice in place of each hidden value.

    An empty value stays empty. But a job or step that is itself quarantined always gets an error that says so.
    """
    hidden = _hidden(row, shape, reader)
    if not hidden:
        return row
    changed = dict(row)
    is_own = not is_visible(Content.ERROR, reader, *_own_states(row, shape))
    for column, because in hidden.items():
        if changed[column] is not None or (column == "error" and is_own):
            changed[column] = _notice(column, because, row)
    return changed


def _own_states(row: Row, shape: Shape) -> tuple[JobState | None, StepState | None]:
    """Return the states of the row's own job or step, without the state of the job around a step."""
    if shape.step is None:
        return JobState(row[shape.job]), None
    return None, None if row[shape.step] is None else StepState(row[shape.step])


def _notice(column: str, because: Because, row: Row) -> str:
    """Return the notice for a hidden column: JSON text in the format that its readers expect."""
    error = {"code": because, "message": _TEXT}
    match column:
        case "code":
            return because
        case "message":
            return _TEXT
        case "error":
            return _json(error)
        case "progress":
            return _json(_progress())
        case "payload":
            return _json(_payload(row["type"], msgspec.json.decode(row["payload"]), error))
        case _:
            return _json({HIDDEN_KEY: error})


def _progress() -> dict[str, Any]:
    return {"pct": None, "message": _TEXT}


def _payload(event_type: str, said: Any, error: Mapping[str, Any]) -> dict[str, Any]:
    match _OF_EVENT.get(event_type, Content.ERROR):
        case Content.LOG:
            return {"lines": [{"at": _first_at(said), "level": "WARNING", "text": _TEXT}]}
        case Content.PROGRESS:
            return _progress()
        case Content.PREVIEW:
            return {"value": {HIDDEN_KEY: error}}
        case _:
            engines = {key: said[key] for key in _ENGINE_KEYS if key in said}
            return {**engines, "error": error} if "error" in said else engines


def _first_at(said: Any) -> str:
    """Return the log time of the first hidden line, by its worker's clock."""
    return str(next((line["at"] for line in said.get("lines", ())), ""))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
