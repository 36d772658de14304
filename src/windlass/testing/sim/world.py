"""The providers of a simulation: their work, its results, and their answers.

A provider honours idempotency keys and reports finished work correctly. Apart from that it is as bad as the seed says:
it is busy, refuses, loses answers, reports UNKNOWN, and forgets work. Its webhooks are dropped, doubled, late, in the
wrong order, or arrive before the answer to the request.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from windlass.core.external import ProviderStatus, Said, WorkKey
from windlass.core.outcome import Cost, Fault
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import ConnectionLost, InvalidRequest, ProviderDown, ProviderError, RateLimited
from windlass.providers.registry import Provider
from windlass.testing.faults import Moment
from windlass.testing.sim.database import Faults, RealConnection
from windlass.testing.sim.log import Log
from windlass.testing.sim.plans import COST
from windlass.testing.sim.scheduler import Scheduler

# Each provider's name, its slots, and its requests a second.
PROVIDERS = {"alpha": (1, 1.0), "beta": (3, 4.0)}
RECEIVER = "receiver"
POLLS_S = (3.0, 6.0, 12.0)
WAIT_S = 60.0


@dataclass
class Ware:
    """A piece of work that a provider accepted. Its result is decided at that moment."""

    provider: str
    id: str
    key: WorkKey
    accepted_at: float
    ends_at: float
    end: Said
    # When it was cancelled, before its end.
    cancelled_at: float = math.inf
    forgotten_at: float = math.inf

    def is_over(self, now: float) -> bool:
        """Tell whether the work uses nothing any more."""
        return now >= min(self.ends_at, self.cancelled_at, self.forgotten_at)

    def said(self, now: float) -> Said:
        """Return the true status."""
        if now >= self.forgotten_at:
            return Said(ProviderStatus.UNKNOWN)
        if now >= self.cancelled_at < self.ends_at:
            return Said(ProviderStatus.CANCELLED)
        if now >= self.ends_at:
            return self.end
        return Said(ProviderStatus.RUNNING, progress_pct=50.0)


@dataclass
class Letter:
    """A webhook under way."""

    at: float
    event_id: str
    external_id: str
    said: Said
    # Whether it names the request's key as well.
    key: WorkKey | None = None


@dataclass
class _Journey:
    """One request, and its fault."""

    world: World
    moment: Moment | None
    is_kill: bool

    async def back(self) -> None:
        """Let the answer travel back."""
        if self.moment is not None:
            await self.fail()
        await self.world.scheduler.sleep(self.world.rng.uniform(0, 0.2))

    async def fail(self) -> None:
        """Lose the answer: kill the requesting process, or break its connection."""
        if self.is_kill:
            await self.world.scheduler.die()
        raise ConnectionLost("the connection broke")


@dataclass
class World:
    """All providers. `violations` in the log are requests that a provider should never see."""

    scheduler: Scheduler
    faults: Faults
    rng: random.Random
    log: Log
    connection: RealConnection
    # How often each thing fails; nothing fails in the last phase.
    trouble: float
    wares: dict[str, Ware] = field(default_factory=dict)
    by_key: dict[WorkKey, str] = field(default_factory=dict)
    letters: list[Letter] = field(default_factory=list)
    letters_sent: int = 0

    def __post_init__(self) -> None:
        configs = [
            ProviderConfig(name, "model", concurrency=places, rate=rate, timeout_s=15.0, wait_s=WAIT_S, poll_s=POLLS_S)
            for name, (places, rate) in PROVIDERS.items()
        ]
        self.providers = {config.name: Provider(config, ModelAdapter(self, config)) for config in configs}

    @property
    def is_kind(self) -> bool:
        """Tell whether the faults are over."""
        return not self.faults.is_on

    def _note(self, text: str) -> None:
        self.log.outside.append((self.scheduler.now, text))

    def is_bad(self, share: float = 1.0) -> bool:
        """Draw whether something fails now; `share` is its part of the world's trouble."""
        return not self.is_kind and self.rng.random() < self.trouble * share

    async def _request(self) -> _Journey:
        """Let a request travel: it may be lost on the way there, or its answer on the way back."""
        await self.scheduler.sleep(self.rng.uniform(0, 8) if self.is_bad(0.5) else self.rng.uniform(0, 0.2))
        moment, is_kill = self.faults.draw(can_die=True)
        if moment is None and self.is_bad(0.5):
            moment, is_kill = self.rng.choice(tuple(Moment)), self.rng.random() < 0.3
            self.faults.kills += is_kill
        journey = _Journey(self, moment, is_kill)
        if moment is Moment.BEFORE:
            await journey.fail()
        return journey

    async def start(self, provider: str, key: WorkKey) -> Started:
        """Accept the work, or return its status if it was accepted before. Some work is done at once."""
        journey = await self._request()
        refusal = self._refusal() if key not in self.by_key else None
        if refusal is None and key not in self.by_key:
            await self._accept(provider, key)
        self._note(f"{provider} is asked to start {key}: {refusal!r} {self.by_key.get(key)} {journey.moment}")
        await journey.back()
        if refusal is not None:
            raise refusal
        ware = self.wares[self.by_key[key]]
        is_instant = ware.ends_at <= ware.accepted_at
        return Started(None, ware.end) if is_instant else Started(ware.id)

    def _refusal(self) -> ProviderError | None:
        if self.is_bad():
            return RateLimited("busy", after_s=self.rng.uniform(1, 10))
        if self.is_bad(0.3):
            return InvalidRequest("no")
        return ProviderDown("503") if self.is_bad(0.3) else None

    async def _accept(self, provider: str, key: WorkKey) -> None:
        rng, now = self.rng, self.scheduler.now
        await self._look(provider, key)
        number = len(self.wares)
        takes_s = rng.choice([0.0, rng.uniform(0, 0.5), rng.uniform(0, 4), rng.uniform(0, 20), rng.uniform(5, 40)])
        takes_s = min(takes_s, 1.0) if self.is_kind else takes_s
        ware = Ware(provider, f"{provider}-{number}", key, now, now + takes_s, self._end(number))
        if self.is_bad(0.5):
            ware.ends_at = math.inf
        if self.is_bad(0.3):
            ware.forgotten_at = now + rng.uniform(0, 20)
        self.wares[ware.id] = ware
        self.by_key[key] = ware.id
        if takes_s > 0:
            self._write_letters(ware)

    def _end(self, number: int) -> Said:
        rng = self.rng
        cost = Cost(str(rng.choice([0, 1, COST])), tokens_in=number) if rng.random() < 0.7 else None
        if not self.is_kind and rng.random() < 0.2:
            fault = Fault("provider_failed", f"ware {number}")
            return Said(ProviderStatus.FAILED, fault=fault, is_retryable=rng.random() < 0.7, cost=cost)
        body = {"ok": rng.random() < 0.6, "items": list(range(rng.choice([0, 1, 2]))), "ware": number}
        return Said(ProviderStatus.SUCCEEDED, msgspec.json.encode(body).decode(), cost=cost)

    def _write_letters(self, ware: Ware) -> None:
        rng = self.rng
        if rng.random() < 0.3:
            # It may be so late that it arrives after the end.
            at = ware.accepted_at + rng.uniform(0, 6)
            self._send(ware, at, Said(ProviderStatus.RUNNING, progress_pct=10.0))
        if math.isfinite(ware.ends_at):
            self._send(ware, ware.ends_at, ware.end)

    def _send(self, ware: Ware, at: float, said: Said) -> None:
        rng = self.rng
        if min(ware.cancelled_at, ware.forgotten_at) <= at or rng.random() < 0.3:
            return
        late_s = rng.choice([0.0, 0.0, rng.uniform(0, 1), rng.uniform(0, 30)])
        self.letters_sent += 1
        letter = Letter(at + late_s, f"e{self.letters_sent}", ware.id, said, ware.key if rng.random() < 0.15 else None)
        self._post(letter)
        if rng.random() < 0.3:
            self._post(Letter(at + rng.uniform(0, 10), letter.event_id, ware.id, said, letter.key))
        if rng.random() < 0.3:
            self.letters_sent += 1
            self._post(Letter(at + rng.uniform(0, 40), f"e{self.letters_sent}", ware.id, said))

    def _post(self, letter: Letter) -> None:
        self.letters.append(letter)
        self.scheduler.wake(RECEIVER, letter.at)

    def due_letters(self) -> list[Letter]:
        """Return the webhooks that have arrived. The receiver removes a webhook when it has handled it."""
        now = self.scheduler.now
        arrived = []
        for letter in sorted(self.letters, key=lambda one: (one.at, one.event_id)):
            ware = self.wares[letter.external_id]
            if letter.said.status.is_terminal and min(ware.cancelled_at, ware.forgotten_at) < ware.ends_at:
                # The work never reached this end.
                self.letters.remove(letter)
            elif letter.at <= now:
                arrived.append(letter)
        return arrived

    async def status(self, provider: str, external_id: str) -> Said:
        """Answer a poll."""
        journey = await self._request()
        said = self.wares[external_id].said(self.scheduler.now)
        self._note(f"{provider} is asked about {external_id}: {said.status} {journey.moment}")
        await journey.back()
        return Said(ProviderStatus.UNKNOWN) if self.is_bad() else said

    async def find(self, provider: str, key: WorkKey) -> str | None:
        """Return the work of a key."""
        journey = await self._request()
        found = self.by_key.get(key)
        self._note(f"{provider} is asked for {key}: {found} {journey.moment}")
        await journey.back()
        return found

    async def cancel(self, provider: str, external_id: str) -> ProviderStatus:
        """Stop the work, if it still runs, now or a little later; return its status."""
        journey = await self._request()
        ware, now = self.wares[external_id], self.scheduler.now
        if not ware.is_over(now) and not self.is_bad():
            ware.cancelled_at = now + self.rng.choice([0.0, 0.0, 5.0])
        self._note(f"{provider} is asked to cancel {external_id}: {ware.said(now).status} {journey.moment}")
        await journey.back()
        return ware.said(now).status

    async def _look(self, provider: str, key: WorkKey) -> None:
        """Check the rules at acceptance: the work was recorded before, and the step has no other work."""
        row = await self.connection.fetchrow(
            "SELECT state, provider FROM windlass.provider_jobs WHERE (job_id, no, round) = ($1, $2, $3)",
            *(key.job_id, key.no, key.round),
        )
        if row is None or row["provider"] != provider:
            self.log.violations.append(f"{provider} was given {key}, which was not written down before")
        for ware in self.wares.values():
            is_same_step = (ware.key.job_id, ware.key.no) == (key.job_id, key.no)
            if is_same_step and not ware.is_over(self.scheduler.now) and not await self._is_given_up(ware.key):
                self.log.violations.append(f"{provider} was given {key} while {ware.key} goes on")

    async def _is_given_up(self, key: WorkKey) -> bool:
        state = await self.connection.fetchval(
            "SELECT state FROM windlass.provider_jobs WHERE (job_id, no, round) = ($1, $2, $3)",
            *(key.job_id, key.no, key.round),
        )
        return bool(state == "CANCELLING")

    def of_step(self, job_id: UUID, no: int) -> list[Ware]:
        """Return all work ever done for a step."""
        return [ware for ware in self.wares.values() if (ware.key.job_id, ware.key.no) == (job_id, no)]


class ModelAdapter(ProviderAdapter):
    """A provider of the world, as an adapter of Windlass."""

    honours_keys = True
    can_find = True

    def __init__(self, world: World, config: ProviderConfig) -> None:
        super().__init__(config)
        self.world = world
        self.name = config.name

    async def start_job(self, request: StartRequest) -> Started:
        """Start the work."""
        key = WorkKey.parse(request.key)
        assert key is not None
        return await self.world.start(self.name, key)

    async def get_job_status(self, external_id: str) -> Said:
        """Poll the work."""
        return await self.world.status(self.name, external_id)

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Cancel the work."""
        return await self.world.cancel(self.name, external_id)

    async def find_job(self, key: str) -> str | None:
        """Find the work by its key."""
        parsed = WorkKey.parse(key)
        assert parsed is not None
        return await self.world.find(self.name, parsed)

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Refuse: the simulation delivers webhooks without bytes."""
        raise NotImplementedError
