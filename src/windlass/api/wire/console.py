"""The frames of the console's stream on the wire.

`api/console_patch.py` encodes them by hand. Tests check every frame against these models. The models are in the OpenAPI
document, from which the console's types are generated.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from windlass.api.wire.job import JobDocument, ListedJob
from windlass.api.wire.step import FanDocument, StepDocument
from windlass.api.wire.wire import Time, Told
from windlass.core.event import EventType


class EventLine(Told):
    """An event of a job, without its payload."""

    seq: int
    at: Time
    type: EventType
    no: int | None = Field(description="The number of its step.")
    step: str | None
    attempt: int | None
    source: str


class JobPatch(Told):
    """The changes of one job. The documents are at least as new as `seq`."""

    seq: int = Field(description="The number of the last event that the stream has sent.")
    job: ListedJob | JobDocument | None = Field(description="`ListedJob` if the client follows `jobs` too.")
    steps: list[StepDocument] = Field(description="The steps that the events are about.")
    fans: dict[str, FanDocument] = Field(description="Fan-outs by the number of their step, counted once a second.")
    events: list[EventLine]


class ConsolePatch(Told):
    """A `patch` frame. Its id is the cursor to reconnect with."""

    jobs: list[ListedJob] = Field(description="For the topic `jobs`: the jobs that changed.")
    job: dict[str, JobPatch] = Field(description="For the topics `job:<id>`, by id.")


class ConsoleOpen(Told):
    """The `open` frame: the stream sends everything after this cursor."""

    cursor: str


class ConsoleReset(Told):
    """A `reset` frame: the topic is too far behind. The client reads its snapshot again."""

    topic: str
    cursor: str


class ConsoleGone(Told):
    """A `gone` frame: the stream sends no more of this topic, and continues with the other topics."""

    topic: str
    code: Literal["ended", "not_found"]


class ConsoleBye(Told):
    """The `bye` frame: the server ends the stream. The client reconnects with its cursor."""

    reason: str


# The model of each frame, by the name of its event.
FRAMES: dict[str, type[Told]] = {
    "open": ConsoleOpen,
    "patch": ConsolePatch,
    "reset": ConsoleReset,
    "gone": ConsoleGone,
    "bye": ConsoleBye,
}
