"""Finds the job that a text names: by its id, by a unique beginning of its id, or by `@last`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from windlass.client.async_client import AsyncClient
from windlass.client.flows import PAGE
from windlass.core.errors import BadInput, NotFound

# A job's id begins with the millisecond in which it was made.
_ID_DIGITS, _TIME_DIGITS = 32, 12
# By how much the clock of the process that made an id may differ from the database's.
_SKEW_MS = 10_000
_LOOKED_MAX = 20_000
_MS_MAX = int(datetime.max.replace(tzinfo=UTC).timestamp() * 1000) - 1


async def everybody(client: AsyncClient) -> list[tuple[str, str]]:
    """Return the query that lists every job for an admin, and the caller's own jobs for other callers."""
    me = await client.me()
    return [("caller", "*")] if "admin" in (me.get("role"), *me.get("scopes", ())) else []


async def find(client: AsyncClient, text: str) -> UUID:
    """Return the id of the job that the text names."""
    text = text.strip()
    if text == "@last":
        page = await client.call("GET", "/jobs", query=[*await everybody(client), ("limit", "1")])
        return _only([UUID(one["job_id"]) for one in page["items"]], text)
    digits = text.replace("-", "").lower()
    if not digits or len(digits) > _ID_DIGITS or set(digits) - set("0123456789abcdef"):
        raise BadInput(f"{text!r} is not a job's id", remedy="An id, the beginning of one, or @last")
    if len(digits) == _ID_DIGITS:
        return (await client.job(UUID(digits)).view()).job_id
    first, last = (int(digits.ljust(_ID_DIGITS, end)[:_TIME_DIGITS], 16) for end in "0f")
    if first > _MS_MAX:
        return _only([], text)
    return _only(await _beginning_with(client, digits, first, last), text)


async def _beginning_with(client: AsyncClient, digits: str, first: int, last: int) -> list[UUID]:
    """Return at most two jobs whose ids begin with the digits, made between the times `first` and `last`."""
    bounds = [("since", _instant(max(0, first - _SKEW_MS))), ("until", _instant(min(last + _SKEW_MS, _MS_MAX)))]
    query = [*await everybody(client), *bounds, ("limit", str(PAGE))]
    looked, found = 0, list[UUID]()
    cursor: str | None = None
    while True:
        page = await client.call("GET", "/jobs", query=[*query, *([("cursor", cursor)] if cursor else [])])
        ids = [UUID(one["job_id"]) for one in page["items"]]
        found += [job_id for job_id in ids if job_id.hex.startswith(digits)]
        looked, cursor = looked + len(ids), page["next"]
        if cursor is None or len(found) > 1:
            return found
        if looked >= _LOOKED_MAX:
            raise BadInput(
                f"{looked:,} jobs were created at about the same time as {digits}", remedy="Give the whole id"
            )


def _only(found: list[UUID], text: str) -> UUID:
    if not found:
        raise NotFound(f"there is no job {text}", remedy="`windlass jobs` lists the known ones")
    if len(found) > 1:
        raise BadInput(f"more than one job's id begins with {text}", remedy="Give more letters of the id")
    return found[0]


def _instant(ms: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).isoformat()
