"""Bells: the closed set of messages that tell another process to look at the database now.

A bell carries no truth. It names what to look at, so that a listener need not wait for its own slow look. Losing every
bell costs time and nothing else; hearing one twice costs a look.

A bell without particulars, such as `WorkQueued()`, means "look at everything": a bus rings it after it was deaf for
a while.

    kind            rung when                                              heard by
    WorkQueued      steps may be claimed from these queues                 workers, followers of the feed, streams
    RouteDue        steps became READY, or a child job told its parent     router, parent notifier
    TimerSet        something falls due sooner than the engine looks       the engine's loops
    JobsEnded       jobs have ended; may tell one small output             waiters, followers of the feed, streams
    JobsCancelled   attempts of these jobs are to stop                     workers
    GrantDue        a line of steps may have moved on                      granter
    AnswerDue       a kept webhook can be applied now                      answerer
    PollDue         a provider is to be asked sooner than planned          poller
    DeliveryDue     a webhook to a client is due                           webhook sender
    KeyRevoked      a key is good no more                                  key cache, streams
    SessionEnded    a session of the console has ended                     streams

Each kind has one channel. The channel names appear in this file only. `payloads` writes a bell as texts of at most
PAYLOAD_BYTES_MAX bytes, `parse` reads one, `merged` joins bells that were rung at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias, assert_never
from uuid import UUID

# PostgreSQL carries payloads shorter than 8,000 bytes; no other bus has a lower limit.
PAYLOAD_BYTES_MAX = 7_999
# An output that a JobsEnded bell may tell.
TOLD_BYTES_MAX = 500
_IDS_MAX = PAYLOAD_BYTES_MAX // 33


class ToldOutput(NamedTuple):
    """The number of the one step that completed a job, and its output as JSON text."""

    no: int
    output: str


@dataclass(frozen=True, slots=True)
class WorkQueued:
    """Steps wait in these queues."""

    channel: ClassVar[str] = "windlass_work"
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteDue:
    """Steps are READY, or the inbox of a parent job has news."""

    channel: ClassVar[str] = "windlass_route"


@dataclass(frozen=True, slots=True)
class TimerSet:
    """Something falls due soon."""

    channel: ClassVar[str] = "windlass_timer"


@dataclass(frozen=True, slots=True)
class JobsEnded:
    """These jobs have ended. `told` is the output of the only one, if it is small."""

    channel: ClassVar[str] = "windlass_done"
    jobs: tuple[UUID, ...] = ()
    told: ToldOutput | None = None


@dataclass(frozen=True, slots=True)
class JobsCancelled:
    """Attempts of these jobs are to stop."""

    channel: ClassVar[str] = "windlass_cancel"
    jobs: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantDue:
    """A line of steps may have moved on."""

    channel: ClassVar[str] = "windlass_grant"


@dataclass(frozen=True, slots=True)
class AnswerDue:
    """A kept webhook can be applied now."""

    channel: ClassVar[str] = "windlass_answer"


@dataclass(frozen=True, slots=True)
class PollDue:
    """A provider is to be asked now."""

    channel: ClassVar[str] = "windlass_poll"


@dataclass(frozen=True, slots=True)
class DeliveryDue:
    """A webhook to a client is due."""

    channel: ClassVar[str] = "windlass_webhook"


@dataclass(frozen=True, slots=True)
class KeyRevoked:
    """The caller's key of this id is good no more. Without an id: any key may be."""

    channel: ClassVar[str] = "windlass_keys"
    key_id: str = ""
    caller: str = ""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A console session of this caller has ended. Without a caller: any may have."""

    channel: ClassVar[str] = "windlass_sessions"
    caller: str = ""


Bell: TypeAlias = (
    WorkQueued | RouteDue | TimerSet | JobsEnded | JobsCancelled | GrantDue | AnswerDue | PollDue | DeliveryDue
    | KeyRevoked | SessionEnded
)  # fmt: skip

KINDS: tuple[type[Bell], ...] = (
    WorkQueued, RouteDue, TimerSet, JobsEnded, JobsCancelled, GrantDue, AnswerDue, PollDue, DeliveryDue,
    KeyRevoked, SessionEnded,
)  # fmt: skip
BY_CHANNEL: dict[str, type[Bell]] = {kind.channel: kind for kind in KINDS}


def payloads(bell: Bell) -> list[str]:
    """The bell as texts, one for most; a bell with many particulars is split."""
    match bell:
        case WorkQueued(queues):
            return _joined(queues)
        case JobsEnded((job,), ToldOutput(no, output)):
            return [f"{job.hex} {no} {output}"]
        case JobsEnded(jobs) | JobsCancelled(jobs):
            parts = range(0, len(jobs), _IDS_MAX)
            return [",".join(job.hex for job in jobs[at : at + _IDS_MAX]) for at in parts] or [""]
        case KeyRevoked(key_id, caller):
            return [_fitting(f"{key_id} {caller}") if key_id else ""]
        case SessionEnded(caller):
            return [_fitting(caller)]
        case RouteDue() | TimerSet() | GrantDue() | AnswerDue() | PollDue() | DeliveryDue():
            return [""]
    assert_never(bell)


def parse(channel: str, payload: str) -> Bell:
    """The bell that a payload of this channel was written from, or a part of it."""
    kind = BY_CHANNEL[channel]
    if not payload:
        return kind()
    if kind is WorkQueued:
        return WorkQueued(tuple(payload.split(",")))
    if kind is JobsEnded:
        ids, _, told = payload.partition(" ")
        no, _, output = told.partition(" ")
        return JobsEnded(tuple(map(UUID, ids.split(","))), ToldOutput(int(no), output) if told else None)
    if kind is JobsCancelled:
        return JobsCancelled(tuple(map(UUID, payload.split(","))))
    if kind is KeyRevoked:
        key_id, _, caller = payload.partition(" ")
        return KeyRevoked(key_id, caller)
    if kind is SessionEnded:
        return SessionEnded(payload)
    return kind()


def merged(bells: Iterable[Bell]) -> list[Bell]:
    """As few bells that say the same: queues united, ids joined, equal bells once."""
    found: dict[Bell, None] = {}
    queues: set[str] = set()
    jobs: dict[type[JobsEnded] | type[JobsCancelled], dict[UUID, None]] = {}
    for bell in bells:
        match bell:
            case WorkQueued(named) if named:
                queues.update(named)
            case JobsEnded(named, None) | JobsCancelled(named) if named:
                jobs.setdefault(type(bell), {}).update(dict.fromkeys(named))
            case _:
                found[bell] = None
    if queues:
        found[WorkQueued(tuple(sorted(queues)))] = None
    for kind, ids in jobs.items():
        found[kind(tuple(ids))] = None
    # "Look at everything" says all that others of its kind could.
    return [bell for bell in found if bell == type(bell)() or type(bell)() not in found or _has_own_news(bell)]


def told(no: int, output: str) -> ToldOutput | None:
    """What a JobsEnded bell may tell of an output: nothing if that is long or not plain ASCII."""
    return ToldOutput(no, output) if len(output) <= TOLD_BYTES_MAX and output.isascii() else None


def _has_own_news(bell: Bell) -> bool:
    return isinstance(bell, JobsEnded) and bell.told is not None


def _fitting(text: str) -> str:
    """The text, or nothing ("look at everything") if it is too long to be sent."""
    return text if len(text.encode()) <= PAYLOAD_BYTES_MAX else ""


def _joined(names: Sequence[str]) -> list[str]:
    texts = [""]
    for name in names:
        longer = f"{texts[-1]},{name}" if texts[-1] else name
        if len(longer.encode()) <= PAYLOAD_BYTES_MAX:
            texts[-1] = longer
        else:
            texts.append(name)
    return texts
