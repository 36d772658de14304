"""Positions of a reader: in a paginated list, and in the feed of all jobs' events.

The feed is ordered by the transaction that wrote an event, then by job and sequence number (engine/feed.py). Two
transactions that write to one job may commit in the opposite order of their ids. So a job's events can be out of order:

    slot:   100 J 6    101 K 2    105 J 5          sent:   100 J 5    101 K 2    105 J 6

`arrange` assigns each job's events, in the order of their sequence numbers, to the slots of that job. Between the first
and the last slot of such a span, a single position does not describe what was sent. There a place consists of the
position before the span and the last slot that was sent. A reader that resumes from any place gets exactly the rest,
for any part of the feed.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from windlass.core.errors import BadRequest

PAGE_TEXT_MAX = 1_024
_TXID_MAX = 2**64 - 1
_INT_MAX = 2**31 - 1
_AT = r"([0-9]{1,20})\.([0-9a-f]{32})\.([0-9]{1,10})"
_FEED_ID = re.compile(rf"([0-9]{{1,10}})\.{_AT}(?:\+{_AT})?")
_PAGE = re.compile(r"[A-Za-z0-9_-]+")

R = TypeVar("R")


@dataclass(frozen=True, slots=True, order=True)
class FeedAt:
    """A position in the feed: an event's position, or a position between two events."""

    txid: int
    job_id: UUID
    seq: int


@dataclass(frozen=True, slots=True)
class Place:
    """The events that a reader has received: all up to `at`, and inside a span the slots up to `through`."""

    at: FeedAt
    through: FeedAt | None = None

    @property
    def slot(self) -> FeedAt:
        """The last slot that was sent. Slots grow from event to event, so readers are compared by them."""
        return self.through or self.at


# The position before all events.
ORIGIN = FeedAt(0, UUID(int=0), 0)


def below(txid: int) -> FeedAt:
    """Return the position after all writes of earlier transactions."""
    return FeedAt(txid - 1, UUID(int=2**128 - 1), _INT_MAX)


def arrange(rows: Sequence[R], at: Callable[[R], FeedAt], start: FeedAt) -> list[tuple[R, Place]]:
    """Return the events after `start` in sending order, each with the place that sending it reaches.

    The rows must end where no span is open, as the rows of `feed.after` do. For the rows of some jobs only, the order
    and the slots are the same as among the rows of all jobs.
    """
    slots = sorted(rows, key=at)
    own: dict[UUID, list[int]] = {}
    for number, row in enumerate(slots):
        own.setdefault(at(row).job_id, []).append(number)
    told = list(range(len(slots)))
    for numbers in own.values():
        for slot, number in zip(numbers, sorted(numbers, key=lambda n: at(slots[n]).seq), strict=True):
            told[slot] = number
    answer: list[tuple[R, Place]] = []
    clean, highest = start, -1
    for slot, number in enumerate(told):
        here = at(slots[slot])
        highest = max(highest, number)
        if highest == slot:
            # All events up to this slot have been sent, and none beyond it.
            clean = here
            answer.append((slots[number], Place(here)))
        else:
            answer.append((slots[number], Place(clean, here)))
    return answer


def rest(rows: Sequence[R], at: Callable[[R], FeedAt], place: Place) -> list[tuple[R, Place]]:
    """Arrange the rows after `place.at`, without the events that a reader at this place already received."""
    return [(row, reached) for row, reached in arrange(rows, at, place.at) if reached.slot > place.slot]


def feed_id(epoch: int, place: Place) -> str:
    """Return the id of an event in the stream of all jobs; it is opaque to clients."""
    text = f"{epoch}.{_at_text(place.at)}"
    return text if place.through is None else f"{text}+{_at_text(place.through)}"


def parse_feed_id(text: str) -> tuple[int, Place]:
    """Return the epoch and the place of an event id."""
    match = _FEED_ID.fullmatch(text) if len(text) <= PAGE_TEXT_MAX else None
    if match is None:
        raise _unreadable("an event id")
    epoch, *parts = match.groups()
    at = _at(*parts[:3])
    through = None if parts[3] is None else _at(*parts[3:])
    if int(epoch) > _INT_MAX or (through is not None and through <= at):
        raise _unreadable("an event id")
    return int(epoch), Place(at, through)


def encode_page(kind: str, filter_digest: str, position: str) -> str:
    """Return a cursor for the next page of a list. It is opaque, and valid only for this list and filter."""
    return base64.urlsafe_b64encode(f"{kind} {filter_digest} {position}".encode()).decode().rstrip("=")


def decode_page(text: str, kind: str, filter_digest: str) -> str:
    """Return the position in a cursor that was made for this list and filter."""
    if len(text) > PAGE_TEXT_MAX or not _PAGE.fullmatch(text):
        raise _unreadable("a cursor")
    try:
        parts = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split(" ", 2)
    except (binascii.Error, UnicodeDecodeError):
        raise _unreadable("a cursor") from None
    if len(parts) != 3:
        raise _unreadable("a cursor")
    if parts[:2] != [kind, filter_digest]:
        raise BadRequest(
            "the cursor belongs to another list or filter", remedy="Keep the filter while going through the pages"
        )
    return parts[2]


def _at_text(at: FeedAt) -> str:
    return f"{at.txid}.{at.job_id.hex}.{at.seq}"


def _at(txid: str, job: str, seq: str) -> FeedAt:
    if int(txid) > _TXID_MAX or int(seq) > _INT_MAX:
        raise _unreadable("an event id")
    return FeedAt(int(txid), UUID(job), int(seq))


def _unreadable(what: str) -> BadRequest:
    return BadRequest(f"this is not {what} of this server", remedy="Send it unchanged, or leave it out")
