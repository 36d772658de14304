"""The desk: a worker hands work to a provider through it, and the work begins only once.

    intend (a row, under a key) ──► start_job with the key ──► Parked, reported in the commit that keeps the id
             │ dies here                     │ dies here                  │ the report comes too late
             ▼                               ▼                            ▼
      the next attempt finds the row: the same key again           `orphaned`: the next attempt takes it over,
      (or the work itself, if the provider can look it up)         or it is cancelled if no step waits for it

A request whose outcome is unknown (a timeout, a broken connection, a 5xx) leaves the row as it is, so the next attempt
repeats the same request. A definite refusal of the first request ends the round: the next attempt begins a new one.
Stopping a handler does not stop its request under way: the desk still processes the provider's reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from windlass.core.errors import BadSetting, Denied, DestinationDenied, Unavailable, WrongState
from windlass.core.external import Said, WorkKey, outcome_of
from windlass.core.gatekeeping import DESTINATION, THROTTLE_S
from windlass.core.outcome import Cost, Failure, Parked, Report
from windlass.core.retry import Backoff
from windlass.core.verdict import Decision, Verdict
from windlass.engine import external
from windlass.engine.provider_edge import ProviderRequest
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import ProviderError, RateLimited
from windlass.providers.health import tell
from windlass.store.database import Database

_AGAIN = Backoff(0.5, 2.0, 8.0)
_TRIES_MAX = 8
CLOSE_WITHIN_S = 5.0

_log = logging.getLogger("windlass.providers")


class HasAdapter(Protocol):
    """A provider: its configuration and its adapter."""

    @property
    def config(self) -> ProviderConfig:
        """The configuration from `providers.yaml`."""
        ...

    @property
    def adapter(self) -> ProviderAdapter:
        """The adapter created with that configuration."""
        ...


@runtime_checkable
class Counts(Protocol):
    """Counts requests to providers (`telemetry/meters.py`)."""

    def called(self, provider: str, call: str, result: str) -> None:
        """Count a `start`, `status` or `cancel` with its result: `ok`, or the error's code."""
        ...


class Place(NamedTuple):
    """The attempt that needs the work. `is_over` says whether the attempt ended while the request was under way."""

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
    """The result of work that the provider did within the call."""

    value: Any
    cost: Cost | None


class WorkFailed(ProviderError):
    """The provider took the work and reports, within the same call, that it failed."""

    code = "provider_failed"


class NotCurrent(WrongState):
    """Another worker holds the attempt, or a crash of the server undid its claim: its actions have no effect."""


class _Handed(NamedTuple):
    """Work that an attempt has begun and not yet reported."""

    key: WorkKey
    provider: str
    external_id: str


def _refusal(verdict: Verdict, place: Place) -> Exception:
    """Return the error for a request that the policy does not let go out. A throttle does not use up an attempt."""
    told = f"the policy does not allow the request to {place.provider}: {verdict.reason} (rule {verdict.rule})"
    if verdict.decision is Decision.THROTTLE:
        return RateLimited(told, after_s=THROTTLE_S)
    kind = DestinationDenied if verdict.rule == DESTINATION else Denied
    return kind(told, job_id=str(place.job_id), rule=verdict.rule)


class Desk:
    """One desk per worker, used from its loop.

    `public_url` is the address at which a provider reaches our webhooks; without it the provider is polled.
    """

    def __init__(
        self,
        db: Database,
        providers: Mapping[str, HasAdapter],
        *,
        public_url: Callable[[ProviderConfig], str | None] = lambda _: None,
        counts: Counts | None = None,
    ) -> None:
        self._db = db
        self._providers = providers
        self._public_url = public_url
        self._counts = counts
        self._handed: dict[tuple[UUID, int, int], _Handed] = {}
        self._under_way: dict[WorkKey, asyncio.Task[Started]] = {}
        self._aside: set[asyncio.Task[Any]] = set()

    async def start(self, place: Place, *, model: str = "", input: Any = None) -> Parked | Worked:
        """Start the work at this step's provider. Returns the Parked for the handler, or the finished result.

        Raises a ProviderError, BadSetting when this worker does not know the provider, WrongState when the attempt has
        already begun work, NotCurrent when the attempt is no longer current.
        """
        provider = self._provider(place.provider)
        if place.key in self._handed:
            raise WrongState(
                f"step {place.step} has already begun work at {place.provider}",
                remedy="Return what ctx.provider.start gave; for more work make more steps, or a fan-out",
            )
        within_s = provider.config.wait_s if place.wait_s is None else place.wait_s
        # A wait shorter than the schedule still gets one poll.
        poll_s = min(provider.config.poll_s[0], within_s / 2)
        intent = await self._intend(place, poll_s, model)
        if intent is None:
            raise NotCurrent(f"attempt {place.attempt} of step {place.step} is not the current one")
        if intent.state == "RUNNING" and intent.external_id is not None:
            # An earlier attempt handed the work over, or a webhook named it: no request is needed.
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
                f"{place.provider} neither did the work nor returned an id for it",
                is_retryable=True,
                is_ambiguous=True,
                code="bad_answer",
            )
        handed = _Handed(intent.key, place.provider, started.external_id)
        if place.is_over():
            # The attempt ended during the request (its thread could not be stopped), so this Parked is not reported.
            self._put_aside(self._disown(handed))
        else:
            self._handed[place.key] = handed
        return Parked(place.provider, within_s, started.external_id)

    def heard(self, reports: Sequence[Report], took_effect: Sequence[bool]) -> None:
        """Process the results of reports. Work that no accepted report covers is taken over or cancelled."""
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

    async def _intend(self, place: Place, poll_s: float, model: str | None = None) -> external.Intent | None:
        """Record the intent, if the policy lets the request go out. Without a model no request is about to be sent."""
        about = None
        if model is not None:
            host = urlsplit(self._provider(place.provider).config.base_url or "").hostname or ""
            about = ProviderRequest(*place.key, place.step, place.provider, model, host)
        found = await external.intend(
            self._db, *place.key, place.provider, poll_s=poll_s, worker=place.worker, request=about
        )
        if isinstance(found, Verdict):
            raise _refusal(found, place)
        return found

    def abandoned(self, attempt: tuple[UUID, int, int]) -> None:
        """Disown the work of an attempt that ended without a report."""
        if self._handed and (handed := self._handed.pop(attempt, None)) is not None:
            self._put_aside(self._disown(handed))

    async def close(self) -> None:
        """Wait a little for requests under way. The next attempt or the sweep finds work that is unknown by then."""
        if self._aside:
            await asyncio.wait(self._aside, timeout=CLOSE_WITHIN_S)
        for task in self._aside:
            task.cancel()
        await asyncio.gather(*self._aside, return_exceptions=True)

    # Requests.

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
        """Return the provider's reply. The request outlives the handler that waits for it."""
        under_way = self._under_way.get(intent.key)
        if under_way is None:
            # A request of an earlier, stopped attempt may still be under way; a second one is not needed.
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
                # A request was sent before, and this provider would begin a second piece of work for a second request.
                found = await adapter.find_job(request.key)
            started = Started(found) if found is not None else await adapter.start_job(request)
        except ProviderError as error:
            if intent.is_new and not error.is_ambiguous:
                # In a repeated round the outcome of the first request is unknown, so only a new round ends here.
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
        """Return the provider's id of work whose reply was lost, if a webhook has named it in the meantime."""
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
            # The next attempt then asks with the same key. The provider refused that key's first request, so it begins
            # the work now.
            _log.warning("the refusal of %s cannot be recorded now: %s", key, error)

    # Work without an attempt.

    async def _disown(self, handed: _Handed) -> None:
        for tries in range(1, _TRIES_MAX + 1):
            try:
                await external.orphaned(self._db, handed.key, handed.provider, handed.external_id)
                return
            except (Unavailable, OSError) as error:
                _log.warning("work %s at %s cannot be recorded now: %s", handed.external_id, handed.provider, error)
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
            # Marks the error as retrieved. A waiting caller gets it too.
            task.exception()


def no_provider(name: str, known: Mapping[str, object]) -> BadSetting:
    """Build the error for a step whose provider this process does not know."""
    if known:
        return BadSetting(
            f"there is no provider {name!r} here",
            remedy=f"Add it to the file that WINDLASS_PROVIDERS names; it has {', '.join(sorted(known))}",
        )
    return BadSetting(
        f"there is no provider {name!r} here: no providers are configured",
        remedy="Write a providers.yaml with it, and set WINDLASS_PROVIDERS to its path for workers and engines",
    )
