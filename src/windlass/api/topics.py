"""The topics that a console follows, as text: `jobs` and `job:<uuid>`, each with the place to start after.

    jobs@1.733.0199….4,job:0199…@57

This text, with a place for every topic, is also the cursor that a stream sends with each of its patches.
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
    """A requested topic. `feed` is a place in the feed with its epoch; `seq` is a place in the events of a job."""

    job_id: UUID | None
    feed: tuple[int, Place] | None = None
    seq: int | None = None

    @property
    def name(self) -> str:
        """Return the topic without its place."""
        return JOBS if self.job_id is None else f"job:{self.job_id}"


def parse_topics(text: str) -> list[Wanted]:
    """Return the topics that a text names; raises BadRequest for a malformed topic."""
    if len(text) > TEXT_MAX:
        raise BadRequest(f"the topics have {len(text):,} characters, and may have {TEXT_MAX:,}")
    # A place in the feed may contain a plus sign, which arrives as a space if the query was not escaped.
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
    """Return the cursor text of topics and their places."""
    return ",".join(name if place is None else f"{name}@{place}" for name, place in places)


def _topic(text: str) -> Wanted:
    name, at, place = text.partition("@")
    if name == JOBS:
        return Wanted(None, feed=parse_feed_id(place) if at else None)
    job = _JOB.fullmatch(name)
    if job is None:
        raise BadRequest(
            f"{text[:60]!r} is not a topic",
            remedy="A topic is jobs or job:<id>, then @ and its place if there is a place",
        )
    if not at:
        return Wanted(UUID(job[1]))
    if not _SEQ.fullmatch(place) or int(place) > _SEQ_MAX:
        raise BadRequest("this is not the number of a job's event", remedy="Send the number of the stream unchanged")
    return Wanted(UUID(job[1]), seq=int(place))
