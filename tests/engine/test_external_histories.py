"""Random histories of external work, on a real database: in any order of events, nothing is left behind."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from tests.engine.outside import DONE, FAILED, FAL, answer, due, grant, poll, webhook, work
from tests.engine.rig import QUEUE, Rig, plan, task
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Failure, Fault, Lost, Outcome, Parked, Released, Snooze, Success
from windlass.core.queue import apart
from windlass.core.retry import Retry
from windlass.core.states import JOB_TERMINAL, STEP_TERMINAL
from windlass.engine import control, external
from windlass.engine.claim import Claimed
from windlass.engine.external import Applied, Intent, Polled
from windlass.engine.loops.webhook_applier import WebhookApplier
from windlass.views import read

RETRY = Retry(max_attempts=9, base_s=1, jitter=0)
PLAN = plan(task("a", provider=FAL, retry=RETRY), task("b", "a", provider=FAL, retry=RETRY))
STEPS = 90
WAIT_S = 70.0
SEEDS = range(12)


class Provider:
    """Does what it is asked, once per key if it honours them, and remembers what is still to be done."""

    def __init__(self, name: str, honours_keys: bool) -> None:
        self.name = name
        self.honours_keys = honours_keys
        self.by_key: dict[str, str] = {}
        self.going: list[str] = []
        self.accepted: list[tuple[str, str]] = []

    def start(self, key: str) -> str:
        if self.honours_keys and key in self.by_key:
            return self.by_key[key]
        external_id = f"{self.name}-{len(self.accepted)}"
        self.accepted.append((key, external_id))
        self.by_key[key] = external_id
        self.going.append(external_id)
        return external_id


class History:
    """One job, one provider, and all actors at random."""

    def __init__(self, rig: Rig, job: UUID, dice: random.Random, honours_keys: bool) -> None:
        self.rig, self.job, self.dice = rig, job, dice
        self.provider = Provider(str(job), honours_keys)
        self.running: list[tuple[Claimed, Intent | None, str | None]] = []
        self.dead: list[Claimed] = []
        self.said: list[tuple[str, Said]] = []
        self.applied = 0
        self.serial = 0

    async def claim(self) -> None:
        await self.rig.loops.router.run_once()
        await grant(self.rig, self.job)
        self.running += [(one, None, None) for one in await self.rig.claim(queues=[QUEUE, apart(QUEUE)])]

    async def ask(self) -> None:
        """One worker gets one step further, or ends in some way."""
        if not self.running:
            return
        one, intent, external_id = self.running.pop(self.dice.randrange(len(self.running)))
        if intent is None:
            found = await external.intend(self.rig.db, one.job_id, one.no, one.attempt, FAL)
            if found is not None:
                self.running.append((one, found, found.external_id))
        elif external_id is None:
            external_id = self.provider.start(str(intent.key))
            if self.dice.random() < 0.8:
                self.running.append((one, intent, external_id))
            else:
                self.dead.append(one)  # before it has heard
        else:
            await self.end(one, intent, external_id)

    async def end(self, one: Claimed, intent: Intent, external_id: str) -> None:
        outcomes: list[Outcome] = [Parked(FAL, WAIT_S, external_id)] * 6
        outcomes += [Success("1"), Failure(Fault("x", "")), Snooze(1), Released(), Lost()]
        outcome = self.dice.choice(outcomes)
        is_heard = await self.rig.settle(one, outcome)
        if not (is_heard and isinstance(outcome, Parked)):
            await external.orphaned(self.rig.db, intent.key, FAL, external_id)

    async def lose(self) -> None:
        """The engine gives up a worker, which knows nothing of it."""
        lost = [*self.dead, *(one for one, _, _ in self.running)]
        if lost:
            await self.rig.settle(self.dice.choice(lost), Lost())

    async def finish_work(self) -> None:
        if self.provider.going:
            external_id = self.provider.going.pop(self.dice.randrange(len(self.provider.going)))
            self.said += [(external_id, self.dice.choice([DONE, FAILED]))] * self.dice.choice([1, 1, 2])

    async def tell(self) -> None:
        """A webhook, late or early, perhaps again, perhaps by our key, in any order."""
        if not self.said:
            return
        external_id, said = self.dice.choice(self.said)
        self.serial += 1
        key = external.WorkKey.parse(next(k for k, e in self.provider.accepted if e == external_id))
        given = {"key": key} if self.dice.random() < 0.3 else {}
        await self.heard(webhook(external_id, said, str(self.serial // 2), **given))

    async def poll(self) -> None:
        for taken in await due(self.rig, 5, 10.0):
            over = [said for external_id, said in self.said if external_id == taken.external_id]
            if taken.state == "CANCELLING":
                if taken.external_id in self.provider.going:
                    self.provider.going.remove(taken.external_id)
                await external.polled(self.rig.db, [Polled(taken, "CANCELLED", None, is_over=True)])
            elif over:
                assert taken.external_id is not None
                await self.heard(poll(taken.external_id, over[0]))
                await external.polled(self.rig.db, [Polled(taken, over[0].status, 5.0)])
            else:
                status = self.dice.choice([ProviderStatus.RUNNING, ProviderStatus.UNKNOWN])
                await external.polled(self.rig.db, [Polled(taken, status, 5.0)])

    async def heard(self, one: external.Answer) -> None:
        [result] = await answer(self.rig, one)
        self.applied += result is Applied.APPLIED

    async def pass_time(self) -> None:
        self.rig.clock.advance(self.dice.choice([1.0, 2.0, 5.0, 31.0]))
        await self.rig.loops.waker.run_once()

    async def engine(self) -> None:
        await self.rig.loops.router.run_once()
        await WebhookApplier(self.rig.db, lambda: 0.0).run_once()

    async def cancel(self) -> None:
        if self.dice.random() < 0.03:
            await control.cancel(self.rig.db, self.job)

    async def act(self) -> None:
        usual: list[Callable[[], Awaitable[None]]] = [
            self.claim, *[self.ask] * 4, *[self.finish_work] * 2, *[self.tell] * 2, self.poll, self.engine,
        ]  # fmt: skip
        rare = [self.lose, self.pass_time, self.pass_time, self.cancel]
        await self.dice.choice(usual if self.dice.random() < 0.75 else rare)()

    async def check(self) -> None:
        """What must hold after everything that happens."""
        job = await read.job(self.rig.db, self.job)
        steps = {step.no: step for step in await read.steps(self.rig.db, self.job)}
        rows = await work(self.rig, self.job)
        for no, step in steps.items():
            going = [row for row in rows if row.no == no and row.state in ("SUBMITTING", "RUNNING")]
            assert len(going) <= 1, "two rounds at once"
            if step.state in STEP_TERMINAL:
                assert going == [], "nobody waits for it any more"
            if step.state == "PARKED" and (step.waiting_for or "").startswith("external"):
                assert [(row.state, row.attempt) for row in going] == [("RUNNING", step.attempt)]
        for row in rows:
            assert (row.due_at is not None) == (row.state in ("RUNNING", "CANCELLING"))
            assert (row.ended_at is not None) == (row.state == "ENDED")
            assert row.state != "RUNNING" or row.external_id is not None
        types = [(event.type, event.no) for event in await read.events(self.rig.db, self.job)]
        ends = [one for one in types if one[0] in ("step.completed", "step.failed")]
        assert len(ends) == len(set(ends)), "a step ended twice"
        assert job.state not in JOB_TERMINAL or job.steps_open == 0

    async def drain(self) -> None:
        """Run every duty until the job has ended and the provider has no unwanted work left."""
        for one in self.dead:
            await self.rig.settle(one, Lost())
        for _ in range(60):
            await self.engine()
            await self.claim()
            while self.running:
                one, intent, external_id = self.running[0]
                if intent is not None and external_id is not None:
                    self.running.pop(0)
                    if not await self.rig.settle(one, Parked(FAL, WAIT_S, external_id)):
                        await external.orphaned(self.rig.db, intent.key, FAL, external_id)
                else:
                    self.running.insert(0, self.running.pop(0))
                    await self._first_on()
            for external_id in self.provider.going:
                self.said.append((external_id, DONE))
            self.provider.going.clear()
            self.rig.clock.advance(31)
            await self.poll()
            await self.rig.loops.waker.run_once()
            await self.check()
            rows = await work(self.rig, self.job)
            if await self.rig.state(self.job) in JOB_TERMINAL and all(row.state == "ENDED" for row in rows):
                return
        raise AssertionError([await self.rig.states(self.job), await work(self.rig, self.job)])

    async def _first_on(self) -> None:
        one, intent, _ = self.running.pop(0)
        if intent is None:
            found = await external.intend(self.rig.db, one.job_id, one.no, one.attempt, FAL)
            if found is not None:
                self.running.insert(0, (one, found, found.external_id))
        else:
            self.running.insert(0, (one, intent, self.provider.start(str(intent.key))))


@pytest.mark.covers("SCR-65")
@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_is_done_twice_and_nothing_left_behind(rig: Rig, seed: int) -> None:
    dice = random.Random(seed)
    job = await rig.submit(PLAN)
    history = History(rig, job, dice, honours_keys=seed % 3 > 0)
    for _ in range(STEPS):
        await history.act()
        await history.check()
    await history.drain()
    rounds = {str(external.WorkKey(row.job_id, row.no, row.round)) for row in await work(rig, job)}
    assert {key for key, _ in history.provider.accepted} <= rounds
    if history.provider.honours_keys:
        assert len(history.provider.accepted) == len(history.provider.by_key), "one piece of work per key"
    completed = [event for event in await read.events(rig.db, job) if event.type == "step.completed"]
    assert len(completed) <= 2
