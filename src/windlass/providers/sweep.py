"""Compares our rows with a provider's own list of work, and reports the differences.

The sweep changes nothing. Work that we forgot runs there and may cost money: check it, and cancel it at the provider.
For work that the provider forgot, the step waits until its deadline: cancel the step's job, or let it wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from windlass.core.external import ProviderStatus, WorkKey
from windlass.providers.adapter import LIST_MAX
from windlass.providers.desk import HasAdapter
from windlass.providers.errors import NotFound, ProviderError
from windlass.store.database import Database
from windlass.views import work
from windlass.views.work import WorkView

# One side alone may rightly know of work that began a moment ago.
OLDER_THAN_S = 300.0
SINCE_S = 7 * 86_400.0
ASKED_MAX = 500
OPEN_MAX = 200_000
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Stray:
    """Work that only one side knows. `key` names the job, the step and the round."""

    key: str | None
    external_id: str | None
    status: str | None
    since: datetime | None
    note: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The result of a sweep. `remarks` name the parts that could not be checked: an empty list then proves nothing."""

    provider: str
    forgotten_by_us: tuple[Stray, ...]
    forgotten_by_them: tuple[Stray, ...]
    remarks: tuple[str, ...] = ()


async def sweep(db: Database, provider: HasAdapter, *, older_than_s: float = OLDER_THAN_S) -> Sweep:
    """Check all work of the provider that both sides should know."""
    name = provider.config.name
    # The provider is read before our rows: work that begins in between is then not reported as forgotten.
    there, remarks = await _listed(provider, older_than_s)
    here = await work.forgotten(db, name, 0.0, limit=OPEN_MAX)
    old = await work.forgotten(db, name, older_than_s, limit=OPEN_MAX)
    keys = {_key(work) for work in here}
    ids = {work.external_id for work in here if work.external_id is not None}
    by_us = [stray for stray in there if stray.key not in keys and stray.external_id not in ids]
    by_us += [_given_up(work) for work in here if work.state == "CANCELLING" and work.due_at is None]
    by_them, more = await _unknown_there(provider, old)
    return Sweep(name, tuple(by_us), tuple(by_them), (*remarks, *more))


async def _listed(provider: HasAdapter, older_than_s: float) -> tuple[list[Stray], list[str]]:
    """List our work that goes on at the provider."""
    if not provider.adapter.can_list:
        return [], [f"{provider.config.name} cannot list work, so forgotten work there is not reported"]
    now = datetime.now(UTC)
    try:
        listed = await provider.adapter.list_jobs(now - timedelta(seconds=SINCE_S))
    except ProviderError as error:
        return [], [f"{provider.config.name} could not list its work: {error.message}"]
    found: list[Stray] = []
    for one in listed:
        is_young = one.created_at is not None and (now - one.created_at).total_seconds() < older_than_s
        # Other programs may use the same account: work without a key of ours is theirs.
        is_ours = one.key is not None and WorkKey.parse(one.key) is not None
        if is_ours and not is_young and not one.status.is_terminal:
            note = "it continues there, and no step waits for it"
            found.append(Stray(one.key, one.external_id, one.status, one.created_at, note))
    is_cut = len(listed) >= LIST_MAX
    return found, [f"only its newest {LIST_MAX:,} were checked"] if is_cut else []


def _given_up(work: WorkView) -> Stray:
    note = "it could not be cancelled, and may continue there"
    return Stray(_key(work), work.external_id, work.status, work.created_at, note)


async def _unknown_there(provider: HasAdapter, works: Sequence[WorkView]) -> tuple[list[Stray], list[str]]:
    """Find work that we wait for and the provider does not know."""
    named = [work for work in works if work.external_id is not None and work.state == "RUNNING"]
    remarks = [] if len(named) <= ASKED_MAX else [f"only the first {ASKED_MAX} of {len(named):,} were checked"]
    turns = asyncio.Semaphore(AT_ONCE)
    failed: list[str] = []

    async def look(work: WorkView) -> Stray | None:
        assert work.external_id is not None
        async with turns:
            try:
                said = await provider.adapter.get_job_status(work.external_id)
            except NotFound:
                pass
            except ProviderError as error:
                failed.append(error.message)
                return None
            else:
                if said.status is not ProviderStatus.UNKNOWN:
                    return None
        note = "the provider does not know it; the step waits until its deadline"
        return Stray(_key(work), work.external_id, work.status, work.created_at, note)

    found = [stray for stray in await asyncio.gather(*map(look, named[:ASKED_MAX])) if stray is not None]
    found += [_never_begun(work) for work in works if work.external_id is None and work.state == "RUNNING"]
    if failed:
        remarks.append(f"{len(failed)} could not be checked: {failed[0]}")
    return found, remarks


def _never_begun(work: WorkView) -> Stray:
    return Stray(_key(work), None, work.status, work.created_at, "a step waits for it, but the provider gave it no id")


def _key(work: WorkView) -> str:
    return str(WorkKey(work.job_id, work.no, work.round))
