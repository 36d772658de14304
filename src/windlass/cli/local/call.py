"""A request to the installation on this machine, with the helpers that its handlers use."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.app.first_key import served_secret
from windlass.app.windlass import Windlass
from windlass.core.errors import BadInput, NotFound
from windlass.views import read


@dataclass(frozen=True, slots=True)
class LocalRequest:
    """A request: the names in the path, the query, the headers and the body."""

    windlass: Windlass
    names: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    body: Any

    @property
    def db(self) -> Any:
        """The database."""
        return self.windlass.db

    @property
    def job_id(self) -> UUID:
        """The job that the path names."""
        return UUID(self.names["job_id"])

    @property
    def key(self) -> str | None:
        """The idempotency key."""
        return self.headers.get("idempotency-key") or (self.body or {}).get("idempotency_key")

    def all(self, name: str) -> list[str]:
        """Return every value of a name in the query."""
        return [value for own, value in self.query if own == name]

    def one(self, name: str) -> str | None:
        """Return the first value of a name in the query, or None."""
        return next(iter(self.all(name)), None)

    def number(self, name: str, default: int) -> int:
        """Return the number of a name in the query, or the default."""
        return int(self.one(name) or default)

    def time(self, name: str) -> datetime | None:
        """Return the time of a name in the query, or None."""
        text = self.one(name)
        return None if text is None else datetime.fromisoformat(text)

    async def job(self) -> read.JobView:
        """Return the job that the path names, or raise NotFound if it is deleted."""
        found = await read.job(self.db, self.job_id)
        if found.deleted_at is not None:
            raise NotFound(f"there is no job {self.job_id}", remedy="`windlass jobs` lists the known ones")
        return found

    async def keys(self) -> Any:
        """Return the built-in keys, or raise BadInput if a membership service has the keys."""
        from windlass.access.keys import Keys

        url = self.windlass.settings.membership_url
        if url is not None:
            raise BadInput(
                f"this installation uses the keys of {url}",
                remedy="Make and revoke them there, or unset WINDLASS_MEMBERSHIP_URL",
            )
        return Keys(self.db, await served_secret(self.windlass), entropy=secrets.token_bytes)
