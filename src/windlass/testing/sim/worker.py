"""A model of the worker process: the same calls in the same order as `worker/worker.py`, with handlers that only take
time. It can be killed anywhere, be paused past its lease, report twice, and report what is no longer its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from weakref import finalize

import msgspec

from windlass.app.entropy import Ids
from windlass.core.errors import Unavailable, WrongState
from windlass.core.outcome import (
    Cancel,
    Cost,
    Failure,
    Fault,
    Outcome,
    Parked,
    Released,
    Report,
    Snooze,
    Success,
)
from windlass.core.plan import Node
from windlass.core.queue import apart
from windlass.core.settle import DATABASE_LOST
from windlass.engine import workers
from windlass.engine.claim import Claimed, Turns, claim, held
from windlass.engine.note import Note, note
from windlass.engine.settle import settle
from windlass.providers.desk import Desk, HasAdapter, Place, Worked, _Handed
from windlass.providers.errors import ProviderError, failure_of
from windlass.store.outage import is_transient
from windlass.store.plans import PLANS
from windlass.testing.sim.database import SimDatabase
from windlass.testing.sim.log import Key, Log, Told
from windlass.testing.sim.plans import HANDLERS, QUEUES
from windlass.testing.sim.suspects import is_poison

CONCURRENCY = 3
TWINS = tuple(map(apart, QUEUES))
_SUSPECTS_WAIT = "SELECT EXISTS (SELECT FROM windlass.steps WHERE state = 'QUEUED' AND queue = ANY ($1::text[]))"
RENEW_EVERY_S = 5.0
POLL_S = 10.0
AGAIN_S = 1.0
# So few that the lanes of a few jobs are more than one walk sees.
LANES_MAX = 2


def is_away(error: BaseException) -> bool:
    """Whether a process may meet this error and go on."""
    return isinstance(error, Unavailable) or is_transient(error)


@dataclass
class Running:
    """An attempt in hand."""

    claimed: Claimed
    ends_at: float
    # None: the handler hangs, or a provider is being asked.
    outcome: Outcome | None
    cost: Cost | None = None
    # Its handler was stopped.
    is_over: bool = False
    # Its handler begins a moment after the claim.
    begins_at: float = 0.0


class SimDesk(Desk):
    """The real one; what it does aside is another strand of its process."""

    def _put_aside(self, work: Coroutine[Any, Any, Any]) -> Any:
        assert isinstance(self._db, SimDatabase)
        body = _quietly(work)
        # A process that is killed before the strand has begun has not begun the work either.
        finalize(body, work.close)
        return self._db.scheduler.spawn_here(body)

    async def _disown(self, handed: _Handed) -> None:
        await super()._disown(handed)
        assert isinstance(self._db, SimDatabase)
        name = await self._db.real.fetchval(
            "SELECT external_id FROM windlass.provider_jobs WHERE (job_id, no, round) = ($1, $2, $3)",
            *(handed.key.job_id, handed.key.no, handed.key.round),
        )
        if name != handed.external_id:
            self._db.log.violations.append(f"{handed.key} came too late, and is known as {name}")


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except Exception as error:
        if not is_away(error):
            raise


def _node(one: Claimed) -> Node:
    plan = PLANS.get(one.plan_hash)
    assert plan is not None
    return plan.nodes[one.node]


class ModelWorker:
    """One incarnation of a worker process."""

    def __init__(
        self,
        db: SimDatabase,
        log: Log,
        ids: Ids,
        rng: random.Random,
        is_kind: Callable[[], bool],
        providers: Mapping[str, HasAdapter] | None = None,
        handlers: str = HANDLERS,
    ) -> None:
        self._db = db
        self._scheduler = db.scheduler
        self._log = log
        self._ids = ids
        self._rng = rng
        # In the last phase handlers do their best.
        self._is_kind = is_kind
        self._desk = SimDesk(db, providers or {}, is_alone=True)
        self.id = ids.new()
        self._handlers = handlers
        self._turns = Turns(handlers, LANES_MAX)
        self._is_ready = False
        self._is_unsure = False
        self._running: dict[Key, Running] = {}
        self._hung: set[Key] = set()
        # Attempts that were lost with the lease, of which the handlers do not know yet.
        self._ghosts: list[Running] = []
        # A suspect is in hand, and nothing else may be.
        self._is_alone = False

    def dies(self) -> set[Key]:
        """The process is dead: the attempts whose handlers had begun."""
        now = self._scheduler.now
        fresh = {key for key, one in self._running.items() if one.begins_at > now}
        self._log.fresh |= fresh
        return (self._running.keys() | self._hung) - fresh

    async def main(self) -> None:
        """Claim, run, report."""
        while True:
            wait_s = AGAIN_S
            try:
                wait_s = await self._act()
            except Exception as error:
                if not is_away(error):
                    raise
            await self._scheduler.sleep(wait_s, hears_bells=True)

    async def pulse(self) -> None:
        """Renew the lease, and notice when it is lost."""
        while True:
            await self._scheduler.sleep(RENEW_EVERY_S)
            if not self._is_ready:
                continue
            worker = self.id
            try:
                is_ours = await workers.renew(self._db, worker)
            except Exception as error:
                if not is_away(error):
                    raise
                continue
            if not is_ours and worker == self.id:
                self._lose_everything()

    def _lose_everything(self) -> None:
        for key, one in self._running.items():
            if self._rng.random() < 0.5:
                self._ghosts.append(one)
            else:
                one.is_over = True
                self._desk.abandoned(key)
        self._running.clear()
        self.id = self._ids.new()
        self._is_ready = self._is_unsure = False

    async def _act(self) -> float:
        """Do the next thing there is to do, and say how long there is nothing else."""
        if not self._is_ready:
            await self._enlist()
            return 0.0
        if self._is_unsure:
            worker, taken = self.id, await held(self._db, self.id)
            self._is_unsure = False
            if self._is_alone:
                self._log.apart.update((one.job_id, one.no, one.attempt) for one in taken)
            self._begin(worker, sorted(taken, key=lambda one: (one.job_id, one.no)))
            return 0.0
        if self._log.has_poison and any(self._is_deadly(one) for one in self._running.values()):
            await self._scheduler.die()
        if due := self._due():
            await self._report(due)
            return 0.0
        if self._running and self._rng.random() < 0.05:
            await self._speak(self._rng.choice(list(self._running.values())))
        if not self._running:
            self._is_alone = False
        if self._may_claim() and (queues := await self._queues()):
            self._is_alone = queues is TWINS
            worker, limit = self.id, 1 if self._is_alone else CONCURRENCY - len(self._running)
            try:
                taken = await claim(self._db, worker=worker, queues=queues, limit=limit, turns=self._turns)
            except Unavailable:
                self._is_unsure = True
                raise
            if self._is_alone:
                self._log.apart.update((one.job_id, one.no, one.attempt) for one in taken)
            self._begin(worker, taken)
            if taken.is_lost and worker == self.id:
                self._lose_everything()
            if taken or taken.is_lost:
                return 0.0
            if taken.is_lapsed:
                return AGAIN_S
        ends = [max(one.ends_at, one.begins_at) for one in (*self._running.values(), *self._ghosts)]
        return max(0.0, min([POLL_S, *(end - self._scheduler.now for end in ends)]))

    def _may_claim(self) -> bool:
        # The lease may have been lost while it spoke; a claim under the next one has to wait for that to begin.
        return self._is_ready and len(self._running) < CONCURRENCY and not self._is_alone

    async def _queues(self) -> Sequence[str]:
        """Where to claim from: all queues, or one, for which the cheaper claims are.

        While suspects wait, it claims from their queues once nothing runs here, and until then from none.

        The look is not part of the simulated history: where there are no suspects it must change nothing.
        """
        if not await self._has_suspects():
            return QUEUES if self._rng.random() < 0.5 else [self._rng.choice(QUEUES)]
        return () if self._running else TWINS

    async def _has_suspects(self) -> bool:
        # A crowd of these workers (tests/engine/crowd.py) has an ordinary database.
        real: Any = getattr(self._db, "real", None)
        if real is not None:
            return bool(await real.fetchval(_SUSPECTS_WAIT, list(TWINS)))
        async with self._db.connection() as connection:
            return bool(await connection.fetchval(_SUSPECTS_WAIT, list(TWINS)))

    def _is_deadly(self, one: Running) -> bool:
        return self._scheduler.now >= max(one.begins_at, one.ends_at) and is_poison(one.claimed.job_id, one.claimed.no)

    async def _enlist(self) -> None:
        worker = self.id
        await workers.enlist(
            self._db, worker, host="sim", pid=1, queues=QUEUES, concurrency=CONCURRENCY, handlers=self._handlers
        )
        self._is_ready = worker == self.id

    def _begin(self, worker: UUID, taken: Sequence[Claimed]) -> None:
        if worker != self.id:
            return
        for one in taken:
            key = (one.job_id, one.no, one.attempt)
            if key in self._running or key in self._hung:
                continue
            now = self._scheduler.now
            self._log.started.setdefault(key, []).append((worker, now))
            if (one.job_id, one.no) in self._log.over:
                self._log.violations.append(f"step {one.no} of {one.job_id} runs again after it was over")
            node = _node(one)
            if node.run not in self._handlers:
                self._log.violations.append(f"a worker without the handler {node.run} claimed a step of it")
            if node.provider and (self._is_kind() or self._rng.random() < 0.93):
                self._running[key] = running = Running(one, math.inf, None)
                self._scheduler.spawn_here(self._ask(running, node))
                continue
            outcome = self._outcome(one)
            takes_s = self._rng.expovariate(1 / 2.0) if outcome is not None else one.timeout_s + 15
            self._running[key] = running = Running(one, now + min(takes_s, one.timeout_s + 15), outcome)
            if self._log.has_poison:
                running.begins_at = now + self._rng.choice([0.0, 0.0, 0.5])
                running.ends_at = max(running.ends_at, running.begins_at)

    async def _ask(self, running: Running, node: Node) -> None:
        """Have a provider do it, as a handler does that calls `ctx.provider.start`."""
        one = running.claimed
        place = Place(
            one.job_id, one.no, one.attempt, node.name, node.provider, node.wait_s, lambda: running.is_over, one.worker
        )
        try:
            started = await self._desk.start(place, input={"n": one.no})
        except ProviderError as error:
            running.outcome = failure_of(error)
        except WrongState:
            self._running.pop((one.job_id, one.no, one.attempt), None)
        except Exception as error:
            if not is_away(error):
                raise
            running.outcome = Failure(Fault(DATABASE_LOST, "gone"))
        else:
            if isinstance(started, Worked):
                running.outcome, running.cost = Success(msgspec.json.encode(started.value).decode()), started.cost
            else:
                running.outcome = started
        running.ends_at = self._scheduler.now
        self._scheduler.nudge()

    def _outcome(self, one: Claimed) -> Outcome | None:
        rng = self._rng
        body = {"ok": rng.random() < 0.6, "items": list(range(rng.choice([0, 1, 2, 3, 6]))), "v": rng.getrandbits(32)}
        success = Success(msgspec.json.encode(body).decode())
        if self._is_kind() or rng.random() < 0.72:
            return success
        boom = Fault("boom", f"attempt {one.attempt}")
        return rng.choice(
            [
                Failure(boom), Failure(boom), Failure(boom), Failure(boom, after_s=rng.uniform(0, 8)),
                Failure(Fault(DATABASE_LOST, "gone")), Failure(boom, is_retryable=False),
                Snooze(rng.uniform(0, 10)), Parked("outside"), Parked("outside", rng.uniform(1, 30)),
                Released(), Cancel() if rng.random() < 0.3 else success, None,
            ]
        )  # fmt: skip

    def _due(self) -> list[Running]:
        now = self._scheduler.now
        for key, one in list(self._running.items()):
            if one.outcome is None and one.ends_at <= now:
                # It hung; the engine takes it away, or has done so already.
                del self._running[key]
                self._hung.add(key)
        due = [one for one in self._running.values() if one.ends_at <= now]
        late = [one for one in self._ghosts if one.ends_at <= now]
        self._ghosts = [one for one in self._ghosts if one.ends_at > now]
        return due + [one for one in late if one.outcome is not None]

    async def _report(self, due: list[Running]) -> None:
        rng = self._rng
        if len(due) > 1 and rng.random() < 0.3:
            due = rng.sample(due, rng.randint(1, len(due)))
        if rng.random() < 0.05:
            due = [*due, rng.choice(due)]
        reports = [self._report_of(one) for one in due]
        for report in reports:
            self._log.send((report.job_id, report.no, report.attempt), report.outcome)
        settled = await settle(self._db, reports, chance=rng.random)
        self._desk.heard(reports, settled.took_effect)
        for report, took_effect in zip(reports, settled.took_effect, strict=True):
            key = (report.job_id, report.no, report.attempt)
            self._log.told.append(Told(key, report.outcome, "worker", took_effect, report.worker))
            self._running.pop(key, None)
            if took_effect and isinstance(report.outcome, Success):
                self._log.over.setdefault((report.job_id, report.no), self._scheduler.now)
        if rng.random() < 0.05:
            # Said again, by a network that repeats itself.
            self._ghosts.append(rng.choice(due))

    def _report_of(self, one: Running) -> Report:
        assert one.outcome is not None
        claimed = one.claimed
        if self._rng.random() < 0.8:
            return claimed.report(one.outcome)._replace(cost=one.cost)
        # As somebody who knows no more than which attempt it was.
        return Report(claimed.job_id, claimed.no, claimed.attempt, one.outcome, cost=one.cost, worker=claimed.worker)

    async def _speak(self, one: Running) -> None:
        claimed, rng = one.claimed, self._rng
        said = Note(
            claimed.job_id,
            claimed.no,
            claimed.attempt,
            progress_pct=float(rng.randint(0, 100)) if rng.random() < 0.7 else None,
            preview="1" if rng.random() < 0.3 else None,
            checkpoint=str(rng.randint(0, 9)) if rng.random() < 0.5 else None,
            worker=claimed.worker,
        )
        await note(self._db, [said])
