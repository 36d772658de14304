"""What a console follows, as text: `jobs` and `job:<uuid>`, each with the place after which it is to be told.

    jobs@1.733.0199….4,job:0199…@57

The same text, with a place for every topic, is the cursor that a stream gives with each of its patches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from windlass.core.errors import BadRequest
from windlass.pure.cursor import Place, parse_feed_id

TOPICS_MAX = 64
TEXT_MAX = 8_192
JOBS = "jobs"
_SEQ_MAX = 2**31 - 1
_JOB = re.compile(r"job:([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
_SEQ = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic that is asked for. `feed` is a place in the feed with its epoch, `seq` one in the events of a job."""

    job_id: UUID | None
    feed: tuple[int, Place] | None = None
    seq: int | None = None

    @property
    def name(self) -> str:
        """The topic without its place."""
        return JOBS if self.job_id is None else f"job:{self.job_id}"


def parse_topics(text: str) -> list[Wanted]:
    """The topics that a text names; raises BadRequest for one that is none."""
    if len(text) > TEXT_MAX:
        raise BadRequest(f"the topics have {len(text):,} characters, and may have {TEXT_MAX:,}")
    # A place in the feed may hold a plus sign, which a query that was not escaped has as a space.
    parts = text.replace(" ", "+").split(",")
    if len(parts) > TOPICS_MAX:
        raise BadRequest(f"there are {len(parts)} topics, and one stream follows up to {TOPICS_MAX}")
    found = [_topic(part) for part in parts]
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRequest(f"the topic {twice} is given twice", remedy="Give each topic once")
    return found


def cursor_text(places: Sequence[tuple[str, str | None]]) -> str:
    """Topics and their places, as a client brings them back."""
    return ",".join(name if place is None else f"{name}@{place}" for name, place in places)


def _topic(text: str) -> Wanted:
    name, at, place = text.partition("@")
    if name == JOBS:
        return Wanted(None, feed=parse_feed_id(place) if at else None)
    job = _JOB.fullmatch(name)
    if job is None:
        raise BadRequest(
            f"{text[:60]!r} is no topic",
            remedy="A topic is jobs or job:<id>, followed by @ and its place if it has one",
        )
    if not at:
        return Wanted(UUID(job[1]))
    if not _SEQ.fullmatch(place) or int(place) > _SEQ_MAX:
        raise BadRequest("that is not the number of an event of a job", remedy="Send it as the stream gave it")
    return Wanted(UUID(job[1]), seq=int(place))
