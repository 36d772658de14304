"""Bells: the closed set of messages that make another process read the database now.

A bell carries no state. It names the rows to read, so that a listener need not wait for its next periodic read. A lost
bell costs only time; a duplicate bell costs only a read.

A bell without details, such as `WorkQueued()`, means "read everything". A bus rings it after it lost its connection for
a while.

        kind            rung when                                              listeners
        WorkQueued      steps may be claimed from these queues                 workers, followers of the feed, streams
        RouteDue        steps became READY, or a child job reported its end    router, parent notifier
        TimerSet        a timer is due before the engine's next periodic read  the engine's loops
        JobsEnded       jobs have ended; may carry one small output            waiters, followers of the feed, streams
        JobsCancelled   attempts of these jobs must stop                       workers
        GrantDue        a slot may have become free                            granter
        AnswerDue       a stored webhook can be applied now                    webhook applier
        UndoDue         an attempt that an undo job waits for is over          undoer
        PollDue         a provider must be polled sooner than planned          poller
        DeliveryDue     a webhook to a client is due                           webhook sender
        KeyRevoked      a key was revoked                                      key cache, streams
        SessionEnded    a session of the console has ended                     streams
        PolicyPublished another policy is in force                             judges of jobs

Each kind has one channel. The channel names appear in this file only. `payloads` writes a bell as texts of at most
PAYLOAD_BYTES_MAX bytes, and `parse` reads a text. `merged` joins bells that were rung at about the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias, assert_never
from uuid import UUID

# PostgreSQL carries payloads shorter than 8,000 bytes; no other bus has a lower limit.
PAYLOAD_BYTES_MAX = 7_999
# A JobsEnded bell carries an output of at most this size.
TOLD_BYTES_MAX = 500
_IDS_MAX = PAYLOAD_BYTES_MAX // 33


class ToldOutput(NamedTuple):
    """The output, as JSON text, that a JobsEnded bell carries, and the number of the job's only completed step."""

    no: int
    output: str


@dataclass(frozen=True, slots=True)
class WorkQueued:
    """Steps are queued in these queues."""

    channel: ClassVar[str] = "windlass_work"
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteDue:
    """Steps are READY, or the inbox of a parent job has new reports."""

    channel: ClassVar[str] = "windlass_route"


@dataclass(frozen=True, slots=True)
class TimerSet:
    """A timer is due soon."""

    channel: ClassVar[str] = "windlass_timer"


@dataclass(frozen=True, slots=True)
class JobsEnded:
    """These jobs have ended. A bell for a single job may carry its output as `told`, if the output is small."""

    channel: ClassVar[str] = "windlass_done"
    jobs: tuple[UUID, ...] = ()
    told: ToldOutput | None = None


@dataclass(frozen=True, slots=True)
class JobsCancelled:
    """Attempts of these jobs must stop."""

    channel: ClassVar[str] = "windlass_cancel"
    jobs: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class GrantDue:
    """A slot may have become free."""

    channel: ClassVar[str] = "windlass_grant"


@dataclass(frozen=True, slots=True)
class AnswerDue:
    """A stored webhook can be applied now."""

    channel: ClassVar[str] = "windlass_answer"


@dataclass(frozen=True, slots=True)
class UndoDue:
    """An undo job need not wait for an attempt any longer."""

    channel: ClassVar[str] = "windlass_undo"


@dataclass(frozen=True, slots=True)
class PollDue:
    """A provider must be polled now."""

    channel: ClassVar[str] = "windlass_poll"


@dataclass(frozen=True, slots=True)
class DeliveryDue:
    """A webhook to a client is due."""

    channel: ClassVar[str] = "windlass_webhook"


@dataclass(frozen=True, slots=True)
class KeyRevoked:
    """A caller's key was revoked. An empty id means that any key may have been."""

    channel: ClassVar[str] = "windlass_keys"
    key_id: str = ""
    caller: str = ""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A console session of this caller has ended. An empty caller means any session."""

    channel: ClassVar[str] = "windlass_sessions"
    caller: str = ""


@dataclass(frozen=True, slots=True)
class PolicyPublished:
    """Another version of the policy is in force."""

    channel: ClassVar[str] = "windlass_policy"


Bell: TypeAlias = (
    WorkQueued | RouteDue | TimerSet | JobsEnded | JobsCancelled | GrantDue | AnswerDue | UndoDue | PollDue
    | DeliveryDue | KeyRevoked | SessionEnded | PolicyPublished
)  # fmt: skip

KINDS: tuple[type[Bell], ...] = (
    WorkQueued, RouteDue, TimerSet, JobsEnded, JobsCancelled, GrantDue, AnswerDue, UndoDue, PollDue,
    DeliveryDue, KeyRevoked, SessionEnded, PolicyPublished,
)  # fmt: skip
BY_CHANNEL: dict[str, type[Bell]] = {kind.channel: kind for kind in KINDS}


def payloads(bell: Bell) -> list[str]:
    """Return the bell as payload texts. Most bells need one text; a bell with many details is split."""
    match bell:
        case WorkQueued(queues):
            return _joined(queues)
        case JobsEnded((job,), ToldOutput(no, output)):
            return [f"{job.hex} {no} {output}"]
        case JobsEnded(jobs) | JobsCancelled(jobs):
            parts = range(0, len(jobs), _IDS_MAX)
            return [",".join(job.hex for job in jobs[at : at + _IDS_MAX]) for at in parts] or [""]
        case KeyRevoked(key_id, caller):
            return [_text_or_all(f"{key_id} {caller}") if key_id else ""]
        case SessionEnded(caller):
            return [_text_or_all(caller)]
        case (
            RouteDue() | TimerSet() | GrantDue() | AnswerDue() | UndoDue() | PollDue() | DeliveryDue()
            | PolicyPublished()
        ):  # fmt: skip
            return [""]
    assert_never(bell)


def parse(channel: str, payload: str) -> Bell:
    """Return the bell of a payload. A split bell gives one bell for each of its payloads."""
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
    """Merge bells into as few as possible: unite queues, join ids, drop duplicates."""
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
    # "Read everything" covers every other bell of its kind, except a bell that carries an output.
    return [bell for bell in found if bell == type(bell)() or type(bell)() not in found or _has_own_news(bell)]


def told(no: int, output: str) -> ToldOutput | None:
    """Return the output for a JobsEnded bell, or None if it is too long or not plain ASCII."""
    return ToldOutput(no, output) if len(output) <= TOLD_BYTES_MAX and output.isascii() else None


def _has_own_news(bell: Bell) -> bool:
    return isinstance(bell, JobsEnded) and bell.told is not None


def _text_or_all(text: str) -> str:
    """Return the text, or an empty text ("read everything") if it is too long for a payload."""
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
