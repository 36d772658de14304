"""The desk at which a worker hands work to a provider, such that it is begun once.

    intend (a row, under a key) ──► start_job with the key ──► Parked, reported in the commit that keeps the id
             │ dies here                     │ dies here                  │ the report comes too late
             ▼                               ▼                            ▼
      the next attempt finds the row: the same key again           `orphaned`: the next attempt takes it over,
      (or the work itself, if the provider can look it up)         or it is cancelled if nobody waits for it

A request whose end is not known (a timeout, a connection that broke, a 5xx) leaves the row as it is, so that the next
attempt asks for the same. A definite no to the first request ends the round: the next attempt begins a new one. A
handler that is told to stop while its request is under way does not take the request with it: what the provider made of
it is still heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable
from uuid import UUID

import msgspec

from windlass.core.errors import BadSetting, Unavailable, WrongState
from windlass.core.external import Said, WorkKey, outcome_of
from windlass.core.outcome import Cost, Failure, Parked, Report
from windlass.core.retry import Backoff
from windlass.engine import external
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import ProviderError
from windlass.providers.standing import tell
from windlass.store.database import Database

_AGAIN = Backoff(0.5, 2.0, 8.0)
_TRIES_MAX = 8
CLOSE_WITHIN_S = 5.0

_log = logging.getLogger("windlass.providers")


class HasAdapter(Protocol):
    """A provider: how it is configured, and who speaks its protocol."""

    @property
    def config(self) -> ProviderConfig:
        """As `providers.yaml` has it."""
        ...

    @property
    def adapter(self) -> ProviderAdapter:
        """Made with that."""
        ...


@runtime_checkable
class Counts(Protocol):
    """Counts requests to providers (`telemetry/meters.py`)."""

    def called(self, provider: str, call: str, result: str) -> None:
        """A `start`, `status` or `cancel` ended: `ok`, or the code of its error."""
        ...


class Place(NamedTuple):
    """Whose work it is. `is_over` says whether the attempt has ended without waiting for the request."""

    job_id: UUID
    no: int
    attempt: int
    step: str
    provider: str
    wait_s: float | None = None
    is_over: Callable[[], bool] = lambda: False
    worker: UUID | None = None

    @property
    def key(self) -> tuple[UUID, int, int]:
        """The attempt."""
        return self.job_id, self.no, self.attempt


@dataclass(frozen=True, slots=True)
class Worked:
    """The provider did all of it within the call."""

    value: Any
    cost: Cost | None


class WorkFailed(ProviderError):
    """The provider took the work and says, within the same call, that it failed."""

    code = "provider_failed"


class _Handed(NamedTuple):
    """Work that an attempt has begun and not yet reported."""

    key: WorkKey
    provider: str
    external_id: str


class Desk:
    """One per worker, used from its loop. `public_url` is where a provider reaches our webhooks; None: it is polled.

    With `is_alone` requests run inside the attempt's own task: for simulations, which step through that one only.
    """

    def __init__(
        self,
        db: Database,
        providers: Mapping[str, HasAdapter],
        *,
        public_url: Callable[[ProviderConfig], str | None] = lambda _: None,
        is_alone: bool = False,
        counts: Counts | None = None,
    ) -> None:
        self._db = db
        self._providers = providers
        self._public_url = public_url
        self._is_alone = is_alone
        self._counts = counts
        self._handed: dict[tuple[UUID, int, int], _Handed] = {}
        self._under_way: dict[WorkKey, asyncio.Task[Started]] = {}
        self._aside: set[asyncio.Task[Any]] = set()

    async def start(self, place: Place, *, model: str = "", input: Any = None) -> Parked | Worked:
        """Have the provider of this step begin the work; what the handler returns, or what came of it at once.

        Raises a ProviderError, BadSetting when this worker does not know the provider, WrongState when the attempt is
        no longer the current one or has begun work before.
        """
        provider = self._provider(place.provider)
        if place.key in self._handed:
            raise WrongState(
                f"step {place.step} has begun work at {place.provider} already",
                remedy="Return what ctx.provider.start gave; for more work make more steps, or a fan-out",
            )
        within_s = provider.config.wait_s if place.wait_s is None else place.wait_s
        # A wait shorter than the schedule is asked about once, at least.
        poll_s = min(provider.config.poll_s[0], within_s / 2)
        intent = await self._intend(place, poll_s)
        if intent is None:
            raise WrongState(f"attempt {place.attempt} of step {place.step} is no longer the current one")
        if intent.state == "RUNNING" and intent.external_id is not None:
            # An earlier attempt handed it over, or the provider has told of it: there is nothing to ask for.
            return Parked(place.provider, within_s, intent.external_id)
        request = self._request(provider, place, intent.key, model, input)
        try:
            started = await self._asked(provider, place, intent, request)
        except ProviderError as error:
            if not error.is_ambiguous or (known := await self._known_by_now(place, poll_s)) is None:
                raise
            return Parked(place.provider, within_s, known)
        if started.said is not None and started.said.status.is_terminal:
            return await self._worked(place, intent.key, started.said)
        if started.external_id is None:
            raise ProviderError(
                f"{place.provider} neither did the work nor said what it calls it",
                is_retryable=True,
                is_ambiguous=True,
                code="bad_answer",
            )
        handed = _Handed(intent.key, place.provider, started.external_id)
        if place.is_over():
            # The attempt ended while we asked (its thread could not be stopped): nobody returns this Parked.
            self._put_aside(self._disown(handed))
        else:
            self._handed[place.key] = handed
        return Parked(place.provider, within_s, started.external_id)

    def heard(self, reports: Sequence[Report], took_effect: Sequence[bool]) -> None:
        """What came of these reports. Work that none of them speaks for any more is not forgotten at the provider."""
        if not self._handed:
            return
        for report, is_heard in zip(reports, took_effect, strict=True):
            handed = self._handed.pop((report.job_id, report.no, report.attempt), None)
            if handed is None:
                continue
            outcome = report.outcome
            if is_heard and isinstance(outcome, Parked) and outcome.external_id == handed.external_id:
                continue
            self._put_aside(self._disown(handed))

    async def _intend(self, place: Place, poll_s: float) -> external.Intent | None:
        job_id, no, attempt = place.key
        return await external.intend(self._db, job_id, no, attempt, place.provider, poll_s=poll_s, worker=place.worker)

    def abandoned(self, attempt: tuple[UUID, int, int]) -> None:
        """The attempt ended, and nothing is reported of it."""
        if self._handed and (handed := self._handed.pop(attempt, None)) is not None:
            self._put_aside(self._disown(handed))

    async def close(self) -> None:
        """Wait a little for what is under way. What is not known by then, the next attempt or the sweep finds."""
        if self._aside:
            await asyncio.wait(self._aside, timeout=CLOSE_WITHIN_S)
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)

    # Asking.

    def _provider(self, name: str) -> HasAdapter:
        provider = self._providers.get(name)
        if provider is None:
            raise no_provider(name, self._providers)
        return provider

    def _request(self, provider: HasAdapter, place: Place, key: WorkKey, model: str, input: Any) -> StartRequest:
        ours = None if provider.config.webhook is None else self._public_url(provider.config)
        url = None if ours is None else f"{ours.rstrip('/')}/webhooks/{place.provider}"
        metadata = {"windlass_job": str(place.job_id), "windlass_step": place.step, "windlass_key": str(key)}
        return StartRequest(str(key), model, input, url, metadata)

    async def _asked(
        self, provider: HasAdapter, place: Place, intent: external.Intent, request: StartRequest
    ) -> Started:
        """The provider's word. The request outlives the handler that waits for it."""
        if self._is_alone:
            return await self._call(provider, place, intent, request)
        under_way = self._under_way.get(intent.key)
        if under_way is None:
            # An earlier attempt's, which was stopped, may be on its way still: there is no need for a second.
            under_way = self._under_way[intent.key] = self._put_aside(self._call(provider, place, intent, request))
            under_way.add_done_callback(lambda _: self._under_way.pop(intent.key, None))
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            if not under_way.cancelled():
                self._put_aside(self._hear_out(under_way, place, intent.key))
            raise

    async def _call(
        self, provider: HasAdapter, place: Place, intent: external.Intent, request: StartRequest
    ) -> Started:
        adapter, name = provider.adapter, provider.config.name
        try:
            found: str | None = None
            if not intent.is_new and adapter.can_find and not adapter.honours_keys:
                # It was asked before, and would make a second piece of work of a second request.
                found = await adapter.find_job(request.key)
            started = Started(found) if found is not None else await adapter.start_job(request)
        except ProviderError as error:
            if intent.is_new and not error.is_ambiguous:
                # Of a round that was asked for before, nobody knows what came of the first request.
                await self._end_round(place, intent.key, error.code)
            self._count(name, error.code)
            await tell(self._db, name, error)
            raise
        self._count(name, "ok")
        await tell(self._db, name, None)
        return started

    def _count(self, name: str, result: str) -> None:
        if self._counts is not None:
            self._counts.called(name, "start", result)

    async def _known_by_now(self, place: Place, poll_s: float) -> str | None:
        """What the provider calls the work whose answer was lost, if it has told so by a webhook in the meantime."""
        try:
            intent = await self._intend(place, poll_s)
        except (Unavailable, OSError):
            return None
        return intent.external_id if intent is not None and intent.state == "RUNNING" else None

    async def _hear_out(self, call: asyncio.Task[Started], place: Place, key: WorkKey) -> None:
        try:
            started = await call
        except Exception as error:
            _log.info("a request to %s, whose handler was stopped, failed: %s", place.provider, error)
            return
        if started.external_id is not None:
            await self._disown(_Handed(key, place.provider, started.external_id))

    async def _worked(self, place: Place, key: WorkKey, said: Said) -> Worked:
        outcome = outcome_of(said)
        if isinstance(outcome, Failure):
            await self._end_round(place, key, said.status)
            raise WorkFailed(outcome.fault.message, code=outcome.fault.code, is_retryable=outcome.is_retryable)
        value = None if said.output is None else msgspec.json.decode(said.output)
        cost = said.cost
        if cost is not None and not cost.provider:
            cost = Cost(cost.amount, cost.tokens_in, cost.tokens_out, cost.seconds, place.provider)
        return Worked(value, cost)

    async def _end_round(self, place: Place, key: WorkKey, status: str) -> None:
        try:
            await external.rejected(self._db, key, status, attempt=place.attempt)
        except (Unavailable, OSError) as error:
            # Then the next attempt asks with the same key, which the provider has refused: it begins it now.
            _log.warning("that %s was refused cannot be noted now: %s", key, error)

    # Work that nobody speaks for.

    async def _disown(self, handed: _Handed) -> None:
        for tries in range(1, _TRIES_MAX + 1):
            try:
                await external.orphaned(self._db, handed.key, handed.provider, handed.external_id)
                return
            except (Unavailable, OSError) as error:
                _log.warning("work %s at %s cannot be noted now: %s", handed.external_id, handed.provider, error)
                await asyncio.sleep(_AGAIN.wait_s(tries, 0.0))
        _log.error("work %s at %s is left to the sweep", handed.external_id, handed.provider)

    def _put_aside(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name="windlass-desk")
        self._aside.add(task)
        task.add_done_callback(self._put_away)
        return task

    def _put_away(self, task: asyncio.Task[Any]) -> None:
        self._aside.discard(task)
        if not task.cancelled():
            # Heard by the one who waits for it, if anyone does.
            task.exception()


def no_provider(name: str, known: Mapping[str, object]) -> BadSetting:
    """This process was not told of the provider that a step needs."""
    if known:
        return BadSetting(
            f"there is no provider {name!r} here",
            remedy=f"Add it to the file that WINDLASS_PROVIDERS names; it has {', '.join(sorted(known))}",
        )
    return BadSetting(
        f"there is no provider {name!r} here, nor any other",
        remedy="Write a providers.yaml with it, and set WINDLASS_PROVIDERS to its path for workers and engines",
    )
