"""The callers of a chaos run.

They submit each job under a key, and repeat the submit until they get an answer. They cancel, pause, resume and retry
jobs while the processes fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from windlass.app.windlass import Windlass
from windlass.core.errors import Unavailable, WrongState
from windlass.engine import control, rerun, signals
from windlass.testing.chaos import other_workload, workload
from windlass.testing.chaos.answers import FAILS_WITH
from windlass.testing.chaos.ledger import Ledger, Wish
from windlass.testing.chaos.workload import APPROVED, POISON

T = TypeVar("T")

RECIPES = {recipe.name: recipe for recipe in (*workload.RECIPES, *other_workload.RECIPES)}
SUBMITTERS = 10
# One submitter submits a poison job: its third job, and then one in this many.
POISON_AT, POISON_EVERY = 3, 100
# Each submitter waits this long between two jobs.
REST_S = (0.05, 0.4)
AGAIN_AFTER_S = 0.2
# This share of jobs is submitted twice at once, or again after the answer.
DOUBLED = 0.15
DEADLINE_S = 2.0
DEADLINES = 0.05
# How often each recipe is submitted. Providers have few slots, and should finish most work while faults go on.
WEIGHTS: dict[str, float] = {
    "chain": 6, "diamond": 4, "fan": 3, "cpu_fan": 2, "choice": 4, "patient": 3, "bulk": 2, "family": 2,
    "picture": 1, "album": 0.5, "approval": 2, "wide": 0.1, "visitor": 3,
}  # fmt: skip
MEDDLE_EVERY_S = 0.5
MEDDLE_AMONG = 15
PAUSE_S = (0.5, 3.0)


class GaveUp(Exception):
    """The answer was an error that a caller should never get; the ledger holds it."""


class Clients:
    """Runs submitters and a meddler side by side; the ledger holds their results."""

    def __init__(self, windlass: Windlass, ledger: Ledger, seed: int) -> None:
        self._windlass = windlass
        self._ledger = ledger
        self._seed = seed
        self._rng = random.Random(f"clients {seed}")
        self._is_over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the submitters and the meddler."""
        self._tasks = [asyncio.create_task(self._submit_on(place)) for place in range(SUBMITTERS)]
        self._tasks.append(asyncio.create_task(self._meddle_on()))

    async def finish(self, within_s: float) -> bool:
        """Submit nothing more; return whether every started call got its answer within this time."""
        self._is_over.set()
        _, unanswered = await asyncio.wait(self._tasks, timeout=within_s)
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=bool(unanswered))
        return not unanswered

    # Submitting.

    async def _submit_on(self, place: int) -> None:
        count = 0
        while not await self._rest(self._rng.uniform(*REST_S)):
            count += 1
            with contextlib.suppress(GaveUp):
                is_poison = place == 0 and count % POISON_EVERY == POISON_AT
                await self._submit(self._wish(f"{self._seed}-{place}-{count}", is_poison=is_poison))

    def _wish(self, key: str, *, is_poison: bool) -> Wish:
        names = [name for name in RECIPES if name != POISON.name]
        name = POISON.name if is_poison else self._rng.choices(names, [WEIGHTS.get(name, 1) for name in names])[0]
        deadline_s = DEADLINE_S if self._rng.random() < DEADLINES else None
        wish = self._ledger.wishes[key] = Wish(key, name, self._rng.randrange(1000), deadline_s)
        return wish

    async def _submit(self, wish: Wish) -> None:
        asks = [self._ask(wish)]
        if self._rng.random() < DOUBLED:
            asks.append(self._ask(wish))
        await asyncio.gather(*asks)
        if wish.recipe == "approval":
            await self._approve(wish)
        if self._rng.random() < DOUBLED:
            await self._ask(wish)

    async def _ask(self, wish: Wish) -> None:
        recipe = RECIPES[wish.recipe]
        job = await self._insist(
            lambda: self._windlass.submit(recipe, key=wish.key, deadline=wish.deadline_s, inputs={"n": wish.n})
        )
        wish.answers.append(job.job_id)
        self._ledger.count("submitted again" if len(wish.answers) > 1 else "submitted")

    async def _approve(self, wish: Wish) -> None:
        """Send the event that the job waits for: sometimes after a wrong event, sometimes twice."""
        if self._rng.random() < DOUBLED:
            await self._tell(wish, f"{wish.key}-other", wish.n + 1)
        if self._rng.random() < DOUBLED:
            await self._rest(self._rng.uniform(0.1, 2.0))
        for _ in range(2 if self._rng.random() < DOUBLED else 1):
            await self._tell(wish, wish.key, wish.n)

    async def _tell(self, wish: Wish, id: str, n: int) -> None:
        job_id, db = wish.answers[0], self._windlass.db
        try:
            said = await self._insist(
                lambda: signals.send(db, job_id, APPROVED, {"n": n, "by": wish.key}, id=id, sender="chaos")
            )
        except WrongState:
            # The job was cancelled, or its deadline passed.
            self._ledger.count("told too late")
            return
        self._ledger.signals[job_id, id] = said
        self._ledger.count("told")

    # Meddling.

    async def _meddle_on(self) -> None:
        while not await self._rest(MEDDLE_EVERY_S * self._rng.uniform(0.5, 1.5)):
            meddle = self._rng.choice((self._cancel, self._pause_a_while, self._retry))
            jobs = self._failing() if meddle == self._retry else self._ledger.accepted[-MEDDLE_AMONG:]
            if not jobs:
                continue
            try:
                await meddle(self._rng.choice(jobs))
            except WrongState:
                # The job ended first, or has not ended yet.
                self._ledger.count("meddled at the wrong time")
            except GaveUp:
                continue

    def _failing(self) -> list[UUID]:
        """Return jobs that fail for good, which a retry is for."""
        wishes = [wish for wish in self._ledger.wishes.values() if wish.recipe in FAILS_WITH]
        return [wish.answers[0] for wish in wishes[-MEDDLE_AMONG:] if wish.answers]

    async def _cancel(self, job_id: UUID) -> None:
        # Recorded first: without an answer, the cancellation may still have happened.
        self._ledger.cancelled.add(job_id)
        await self._insist(lambda: control.cancel(self._windlass.db, job_id, reason="chaos"))
        self._ledger.count("cancelled")

    async def _pause_a_while(self, job_id: UUID) -> None:
        await self._insist(lambda: control.pause(self._windlass.db, job_id))
        self._ledger.count("paused")
        await self._rest(self._rng.uniform(*PAUSE_S))
        await self._insist(lambda: control.resume(self._windlass.db, job_id))
        self._ledger.count("resumed")

    async def _retry(self, job_id: UUID) -> None:
        new_id = self._windlass.ids.new()
        self._ledger.retries[new_id] = job_id
        await self._insist(lambda: rerun.retry(self._windlass.db, job_id, new_id))
        self._ledger.retried.add(new_id)
        self._ledger.count("retried")

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call until there is an answer."""
        while True:
            try:
                return await ask()
            except WrongState:
                raise
            except Unavailable:
                self._ledger.count("asked again")
                await asyncio.sleep(AGAIN_AFTER_S)
            except Exception as error:
                # Under every fault of the cluster, the only error that a caller may get is Unavailable.
                self._ledger.surprises.append(f"{type(error).__name__}: {error}")
                raise GaveUp from error

    async def _rest(self, seconds: float) -> bool:
        """Wait; return True when the run is over."""
        try:
            await asyncio.wait_for(self._is_over.wait(), seconds)
        except TimeoutError:
            return False
        return True
