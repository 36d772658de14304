"""Following streams without losing or repeating anything, and waiting for a job's end.

A stream breaks for many reasons: the server drains (`bye`), is killed, a proxy has had enough. A follower comes back
with the id of the last frame that it gave, and the server goes on right after it. Nothing is given twice: a frame whose
number is not greater than the last one's is left out.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from uuid import UUID

import msgspec

from windlass.client.asking import converted, expect_answer, get, pause_s, refusal, unreachable
from windlass.client.exchange import Answer, Ask, Flow, Give, Lost, Means, More, Pause
from windlass.client.frames import Frame, Frames
from windlass.client.problems import retry_after_s
from windlass.client.views import Event, JobView
from windlass.core.errors import (
    Broken,
    Limited,
    ServerUnavailable,
    TooManyStreams,
    Unavailable,
    WaitTimeout,
    WindlassError,
)
from windlass.pure.argument import check_timeout

# The server says something at least every 25 seconds; longer silence is a dead connection.
SILENCE_S = 60.0
# How long a follower goes on knocking at a server that does not answer.
PATIENCE_S = 300.0
PAUSE_MAX_S = 10.0
# After `bye` everybody comes back, but not at the same moment.
BYE_SPREAD_S = 1.0
REFUSALS_MAX = 5
# Where there are no streams, the job is looked at after so many seconds; the last one again and again.
LOOK_AFTER_S = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
# By how much a wait may be late: an open stream cannot be told that there is less time now.
LATE_S = 0.5
LATE_PART = 0.1


class Follower:
    """One stream, opened as often as it takes."""

    def __init__(self, means: Means, path: str, after: str | None, *, refusals_max: int = REFUSALS_MAX) -> None:
        self.after = after
        # False once it is known that waiting for a stream is of no use.
        self.has_streams = True
        self._means = means
        self._path = path
        self._refusals_max = refusals_max
        self._waiting: deque[Frame] = deque()
        self._frames: Frames | None = None
        self._failures = 0
        self._refusals = 0
        self._heard_s = means.clock()
        self._silence_s = SILENCE_S

    def next(self, until_s: float | None = None) -> Flow[Frame | None]:
        """The next frame that says something; None once it is `until_s` by the clock."""
        while True:
            while self._waiting:
                frame = self._waiting.popleft()
                if self._is_news(frame):
                    return frame
                if frame.event == "bye":
                    self._hang_up()
                    yield Pause(self._means.chance() * BYE_SPREAD_S)
            if until_s is not None and self._means.clock() >= until_s:
                return None
            if self._frames is None or self._is_too_patient(until_s):
                yield from self._open(until_s)
                continue
            got = yield More()
            if isinstance(got, bytes) and got:
                self._heard_s = self._means.clock()
                self._waiting.extend(self._frames.feed(got))
                continue
            self._hang_up()
            yield from self._recover(got if isinstance(got, Lost) else Lost("the stream ended early"), until_s)

    def _is_news(self, frame: Frame) -> bool:
        if frame.event not in ("open", "bye"):
            self._failures = self._refusals = 0
        if frame.event in ("job", "step") and frame.id is not None and not self._is_later(frame.id):
            return False
        if frame.id:
            self.after = frame.id
        return frame.event not in ("open", "bye")

    def _is_later(self, frame_id: str) -> bool:
        """Ids of one job's stream are numbers that rise; those of all jobs are opaque: only the same one is known."""
        if not frame_id.isdigit() or not (self.after or "").isdigit():
            return frame_id != self.after
        return int(frame_id) > int(self.after or 0)

    def _is_too_patient(self, until_s: float | None) -> bool:
        """Whether silence in the open stream would last too long past the time to stop."""
        if until_s is None:
            return False
        left_s = until_s - self._means.clock()
        return self._silence_s - left_s > max(LATE_S, left_s * LATE_PART)

    def _open(self, until_s: float | None) -> Flow[None]:
        left_s = SILENCE_S if until_s is None else max(0.05, until_s - self._means.clock())
        self._silence_s = min(SILENCE_S, left_s)
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self.after is not None:
            headers["last-event-id"] = self.after
        got = yield Ask("GET", self._path, headers=headers, is_stream=True, timeout_s=self._silence_s)
        if isinstance(got, Lost):
            yield from self._recover(got, until_s)
            return
        answer = expect_answer(got)
        if answer.status == 200:
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                self.has_streams = False
                raise ServerUnavailable(
                    f"{self._path} answered, but with no stream", remedy="Is there a proxy that takes streams away?"
                )
            self._heard_s = self._means.clock()
            self._frames = Frames()
            return
        yield from self._refused(answer, until_s)

    def _refused(self, answer: Answer, until_s: float | None) -> Flow[None]:
        error = refusal(answer)
        if answer.status in (502, 503, 504):
            yield from self._recover(Lost(error.message), until_s, error)
            return
        self._refusals += 1
        self.has_streams = not isinstance(error, TooManyStreams)
        if not isinstance(error, Limited) or self._refusals >= self._refusals_max:
            raise error
        yield from self._pause(max(retry_after_s(answer) or 0.0, pause_s(self._refusals, self._means)), until_s)

    def _recover(self, lost: Lost, until_s: float | None, error: WindlassError | None = None) -> Flow[None]:
        if self._means.clock() - self._heard_s > PATIENCE_S:
            raise error or unreachable(lost)
        wait_s = min(PAUSE_MAX_S, pause_s(self._failures, self._means))
        self._failures += 1
        yield from self._pause(wait_s, until_s)

    def _pause(self, wait_s: float, until_s: float | None) -> Flow[None]:
        left_s = wait_s if until_s is None else until_s - self._means.clock()
        yield Pause(max(0.0, min(wait_s, left_s)))

    def _hang_up(self) -> None:
        self._frames = None


def stream_job(means: Means, job_id: UUID, after: int | None) -> Flow[None]:
    """Gives every event of a job after the given one, until it has ended."""
    follower = Follower(means, f"/jobs/{job_id}/stream", str(after or 0))
    while True:
        frame = yield from follower.next()
        if frame is None or frame.event == "end":
            return
        yield Give(_event(frame))


def stream_jobs(means: Means, after: str | None) -> Flow[None]:
    """Gives the events of all of the caller's jobs, for ever. An event of type `reset` says that some were missed."""
    follower = Follower(means, "/jobs/stream", after)
    while (frame := (yield from follower.next())) is not None:
        yield Give(Event(type="reset", id=frame.id or "") if frame.event == "reset" else _event(frame))


def wait(means: Means, job_id: UUID, timeout_s: float | None) -> Flow[JobView]:
    """The job once it has ended; raises WaitTimeout when that takes too long, and the job goes on."""
    check_timeout(timeout_s)
    until_s = None if timeout_s is None else means.clock() + timeout_s
    view = converted((yield from get(means, f"/jobs/{job_id}")), JobView)
    if view.is_finished:
        return view
    follower = Follower(means, f"/jobs/{job_id}/stream", "0", refusals_max=1)
    try:
        while True:
            frame = yield from follower.next(until_s)
            if frame is None:
                raise _too_long(job_id, timeout_s)
            if frame.event == "end":
                return converted((yield from get(means, f"/jobs/{job_id}")), JobView)
    except Unavailable:
        if follower.has_streams:
            raise
        return (yield from _look(means, job_id, until_s, timeout_s))


def _look(means: Means, job_id: UUID, until_s: float | None, timeout_s: float | None) -> Flow[JobView]:
    """Wait by looking now and then."""
    looks = 0
    while True:
        view = converted((yield from get(means, f"/jobs/{job_id}")), JobView)
        if view.is_finished:
            return view
        wait_s = LOOK_AFTER_S[min(looks, len(LOOK_AFTER_S) - 1)]
        looks += 1
        if until_s is not None:
            wait_s = min(wait_s, until_s - means.clock())
            if wait_s <= 0:
                raise _too_long(job_id, timeout_s)
        yield Pause(wait_s)


def _too_long(job_id: UUID, timeout_s: float | None) -> WaitTimeout:
    return WaitTimeout(f"job {job_id} did not end within {timeout_s} s", remedy="It goes on; wait again or look at it")


def _event(frame: Frame) -> Event:
    try:
        told: Any = msgspec.json.decode(frame.data)
    except msgspec.DecodeError as error:
        raise Broken(f"a frame of the stream cannot be read: {error}") from None
    return converted({**told, "id": frame.id or ""} if isinstance(told, dict) else told, Event)
