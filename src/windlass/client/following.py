"""Follows streams without losing or repeating an event, and waits for a job's end.

A stream breaks for many reasons: the server drains (`bye`), the server dies, or a proxy closes the connection. The
follower reconnects with the id of the last frame that it returned, and the server continues after that frame. The
follower drops a frame whose number is not greater than the last number, so no event is repeated.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from uuid import UUID

import msgspec

from windlass.client.asking import converted, expect_answer, get, pause_s, refusal, unreachable
from windlass.client.exchange import Answer, Ask, Flow, Give, Lost, More, Pause, Sources
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

# The server sends at least one line every 25 seconds, so a longer silence means a dead connection.
SILENCE_S = 60.0
# How long a follower retries while the server does not answer.
PATIENCE_S = 300.0
PAUSE_MAX_S = 10.0
# After `bye` all clients reconnect; a random wait spreads them over this time.
BYE_SPREAD_S = 1.0
REFUSALS_MAX = 5
# Without streams, the client polls the job after these waits, and repeats the last wait.
LOOK_AFTER_S = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
# How late a wait may end: the time limit of an open stream cannot be shortened.
LATE_S = 0.5
LATE_PART = 0.1


class Follower:
    """Reads one stream, and opens it again after each break."""

    def __init__(self, sources: Sources, path: str, after: str | None, *, refusals_max: int = REFUSALS_MAX) -> None:
        self.after = after
        # False once the server or a proxy refused streams, so that waiting for a stream is useless.
        self.has_streams = True
        self._sources = sources
        self._path = path
        self._refusals_max = refusals_max
        self._waiting: deque[Frame] = deque()
        self._frames: Frames | None = None
        self._failures = 0
        self._refusals = 0
        self._heard_s = sources.clock()
        self._silence_s = SILENCE_S

    def next(self, until_s: float | None = None) -> Flow[Frame | None]:
        """Return the next frame with news, or None once the clock reaches `until_s`."""
        while True:
            while self._waiting:
                frame = self._waiting.popleft()
                if self._is_news(frame):
                    return frame
                if frame.event == "bye":
                    self._hang_up()
                    yield Pause(self._sources.spread() * BYE_SPREAD_S)
            if until_s is not None and self._sources.clock() >= until_s:
                return None
            if self._frames is None or self._is_too_patient(until_s):
                yield from self._open(until_s)
                continue
            got = yield More()
            if isinstance(got, bytes) and got:
                self._heard_s = self._sources.clock()
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
        """Return whether a frame is newer than the last frame.

        The ids in one job's stream are rising numbers. The ids in the stream of all jobs are opaque, so there only a
        repetition of the last id is recognised.
        """
        if not frame_id.isdigit() or not (self.after or "").isdigit():
            return frame_id != self.after
        return int(frame_id) > int(self.after or 0)

    def _is_too_patient(self, until_s: float | None) -> bool:
        """Return whether a silence in the open stream could last too long after `until_s`."""
        if until_s is None:
            return False
        left_s = until_s - self._sources.clock()
        return self._silence_s - left_s > max(LATE_S, left_s * LATE_PART)

    def _open(self, until_s: float | None) -> Flow[None]:
        left_s = SILENCE_S if until_s is None else max(0.05, until_s - self._sources.clock())
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
                    f"{self._path} answered, but with no stream", remedy="Check whether a proxy blocks streams"
                )
            self._heard_s = self._sources.clock()
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
        yield from self._pause(max(retry_after_s(answer) or 0.0, pause_s(self._refusals, self._sources)), until_s)

    def _recover(self, lost: Lost, until_s: float | None, error: WindlassError | None = None) -> Flow[None]:
        if self._sources.clock() - self._heard_s > PATIENCE_S:
            raise error or unreachable(lost)
        wait_s = min(PAUSE_MAX_S, pause_s(self._failures, self._sources))
        self._failures += 1
        yield from self._pause(wait_s, until_s)

    def _pause(self, wait_s: float, until_s: float | None) -> Flow[None]:
        left_s = wait_s if until_s is None else until_s - self._sources.clock()
        yield Pause(max(0.0, min(wait_s, left_s)))

    def _hang_up(self) -> None:
        self._frames = None


def stream_job(sources: Sources, job_id: UUID, after: int | None) -> Flow[None]:
    """Give every event of a job after the event `after`, until the job ends."""
    follower = Follower(sources, f"/jobs/{job_id}/stream", str(after or 0))
    while True:
        frame = yield from follower.next()
        if frame is None or frame.event == "end":
            return
        yield Give(_event(frame))


def stream_jobs(sources: Sources, after: str | None) -> Flow[None]:
    """Give the events of all of the caller's jobs, without an end. An event of type `reset` reports missed events."""
    follower = Follower(sources, "/jobs/stream", after)
    while (frame := (yield from follower.next())) is not None:
        yield Give(Event(type="reset", id=frame.id or "") if frame.event == "reset" else _event(frame))


def wait(sources: Sources, job_id: UUID, timeout_s: float | None) -> Flow[JobView]:
    """Wait for the job's end and return the job; raise WaitTimeout after the timeout. The job itself continues."""
    check_timeout(timeout_s)
    until_s = None if timeout_s is None else sources.clock() + timeout_s
    view = converted((yield from get(sources, f"/jobs/{job_id}")), JobView)
    if view.is_finished:
        return view
    follower = Follower(sources, f"/jobs/{job_id}/stream", "0", refusals_max=1)
    try:
        while True:
            frame = yield from follower.next(until_s)
            if frame is None:
                raise _too_long(job_id, timeout_s)
            if frame.event == "end":
                return converted((yield from get(sources, f"/jobs/{job_id}")), JobView)
    except Unavailable:
        if follower.has_streams:
            raise
        return (yield from _look(sources, job_id, until_s, timeout_s))


def _look(sources: Sources, job_id: UUID, until_s: float | None, timeout_s: float | None) -> Flow[JobView]:
    """Wait for the job's end by polling."""
    looks = 0
    while True:
        view = converted((yield from get(sources, f"/jobs/{job_id}")), JobView)
        if view.is_finished:
            return view
        wait_s = LOOK_AFTER_S[min(looks, len(LOOK_AFTER_S) - 1)]
        looks += 1
        if until_s is not None:
            wait_s = min(wait_s, until_s - sources.clock())
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
