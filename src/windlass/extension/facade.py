"""The interface of Windlass for the code of an extension: jobs, its own statements, its settings, its metrics.

A route gets it from `windlass.extension.http.Has`, a command from `windlass.extension.command.run`, and a handler from
`parts("name")`. Each extension has one while a worker or an API runs in the process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import asyncpg

from windlass.core.errors import Broken, NotFound
from windlass.engine.submit import Accepted
from windlass.extension.instruments import Instruments
from windlass.store.database import Database
from windlass.views import listing, read
from windlass.views.listing import JobFilter, Page
from windlass.views.read import JobView

# The parts of the extensions of this process, the newest last.
_live: list[Mapping[str, Parts]] = []


class Submit(Protocol):
    """Makes a job that belongs to `caller`."""

    async def __call__(
        self,
        recipe: str,
        inputs: Mapping[str, Any],
        *,
        caller: str | None,
        labels: Mapping[str, str] | None,
        key: str | None,
        priority: int,
        correlation_id: str | None,
    ) -> Accepted:
        """Return the new job, or the job that the same key made before."""
        ...


@dataclass(frozen=True, slots=True)
class Statements:
    """The extension's own statements on one connection."""

    _connection: asyncpg.Connection
    _text: Callable[[str], str]

    async def fetch(self, name: str, *values: Any) -> list[Mapping[str, Any]]:
        """Return the rows of the statement of this name."""
        return [dict(row) for row in await self._connection.fetch(self._text(name), *values)]

    async def execute(self, name: str, *values: Any) -> str:
        """Run the statement of this name. Returns PostgreSQL's status, such as `INSERT 0 1`."""
        return str(await self._connection.execute(self._text(name), *values))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an installation that one extension may use."""

    name: str
    _db: Database
    _texts: Mapping[str, str]
    _settings: Mapping[str, Any]
    _instruments: Instruments
    _submit: Submit

    def setting(self, key: str) -> Any:
        """Return the value of one of the extension's settings."""
        return self._settings[key]

    async def submit(
        self,
        recipe: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        caller: str | None = None,
        labels: Mapping[str, str] | None = None,
        key: str | None = None,
        priority: int = 0,
        correlation_id: str | None = None,
    ) -> UUID:
        """Make a job of a registered recipe, durably.

        In a route, pass the caller's id as `caller`: the job is theirs.
        """
        accepted = await self._submit(
            recipe,
            inputs or {},
            caller=caller,
            labels=labels,
            key=key,
            priority=priority,
            correlation_id=correlation_id,
        )
        return accepted.job_id

    async def job(self, job_id: UUID, *, caller: str | None = None) -> JobView:
        """Return a job. With `caller`, raises NotFound unless the job is theirs."""
        found = await read.job(self._db, job_id)
        if found.deleted_at is not None or caller not in (None, found.caller):
            raise NotFound(f"there is no job {job_id}")
        return found

    async def jobs(
        self,
        *,
        caller: str | None,
        labels: Mapping[str, str] | None = None,
        recipe: str | None = None,
        before: UUID | None = None,
        limit: int = 50,
    ) -> Page:
        """Return a page of jobs, newest first; `caller` None means all callers."""
        wanted = JobFilter(caller, recipe=recipe, labels=labels or {})
        return await listing.page(self._db, wanted, before=before, limit=limit)

    async def fetch(self, name: str, *values: Any) -> list[Mapping[str, Any]]:
        """Return the rows of one of the extension's statements. It may run again if the database cannot answer now."""
        return await self._db.run(lambda connection: self._on(connection).fetch(name, *values))

    async def execute(self, name: str, *values: Any) -> str:
        """Run one of the extension's statements. It may run twice if the connection is lost meanwhile."""
        return await self._db.run(lambda connection: self._on(connection).execute(name, *values))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Statements]:
        """Run several statements in one commit.

        Await only statements inside: the block holds its locks until its end.
        """
        async with self._db.connection() as connection, connection.transaction():
            yield self._on(connection)

    def count(self, metric: str, amount: float = 1, **labels: str) -> None:
        """Add to one of the extension's counters."""
        self._instruments.count(metric, amount, labels)

    def observe(self, metric: str, value: float, **labels: str) -> None:
        """Record a value in one of the extension's histograms."""
        self._instruments.observe(metric, value, labels)

    def show(self, metric: str, value: float, **labels: str) -> None:
        """Set one of the extension's gauges."""
        self._instruments.show(metric, value, labels)

    def _on(self, connection: asyncpg.Connection) -> Statements:
        return Statements(connection, self._text)

    def _text(self, name: str) -> str:
        if name not in self._texts:
            known = ", ".join(sorted(self._texts)) or "none"
            raise Broken(f"the extension {self.name} has no statement {name!r}; it has {known}")
        return self._texts[name]


def parts(name: str) -> Parts:
    """Return the parts of an extension in this process, for its handlers."""
    for live in reversed(_live):
        if name in live:
            return live[name]
    raise Broken(
        f"the extension {name} does not run in this process",
        remedy="Use parts() in async handlers, routes and commands, not in steps with cpu=True",
    )


@contextmanager
def made_live(found: Sequence[Parts]) -> Iterator[dict[str, Parts]]:
    """Let `parts` find these inside the block."""
    live = {one.name: one for one in found}
    _live.append(live)
    try:
        yield live
    finally:
        _live.remove(live)
