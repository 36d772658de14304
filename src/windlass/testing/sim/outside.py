"""The processes that bring external news: webhooks, signals to jobs, polls, and budgets."""

from __future__ import annotations

import random
from decimal import Decimal
from functools import partial
from uuid import UUID

import msgspec

from windlass.core.signal import fits
from windlass.engine import budgets, external, signals
from windlass.engine.external import Applied, InEvent
from windlass.engine.submit import Submission
from windlass.providers.poller import Poller
from windlass.testing.sim.cast import CALLERS, MemoryArtifacts, Stage
from windlass.testing.sim.plans import EVENTS
from windlass.testing.sim.world import Letter, World
from windlass.worker.resolve import is_away

LOOK_EVERY_S = 30.0
PLENTY = Decimal(1_000_000)


async def run_receiver(stage: Stage, world: World, rng: random.Random) -> None:
    """Receive the webhooks that have arrived. An unanswered webhook arrives again."""
    while True:
        arrived = world.due_letters()
        if not arrived:
            now = stage.db.scheduler.now
            wait_s = min([LOOK_EVERY_S, *(letter.at - now for letter in world.letters)])
            await stage.db.scheduler.sleep(wait_s, hears_bells=True)
            continue
        chosen = rng.sample(arrived, min(len(arrived), rng.choice([1, 1, 2, 4])))
        batch = list({letter.event_id: letter for letter in chosen}.values())
        answers = [answer_of(one) for one in batch]
        applied = await stage.patiently(rng, partial(external.answer, stage.db, answers, spread=rng.random))
        for letter, what in zip(batch, applied, strict=True):
            world.letters = [one for one in world.letters if one is not letter]
            stage.log.answered.add(letter.event_id)
            told = f"webhook {letter.event_id} of {letter.external_id} {letter.said.status}: {what}"
            stage.log.outside.append((stage.db.scheduler.now, told))
            await _check_replay(stage, world, letter, what)
        await stage.db.scheduler.sleep(rng.uniform(0, 0.5))


def answer_of(letter: Letter) -> external.Answer:
    """Return a webhook as the API hands it on."""
    event = InEvent(letter.event_id, {"x-event": letter.event_id}, msgspec.json.encode(letter.said))
    provider = letter.external_id.partition("-")[0]
    return external.Answer(provider, letter.external_id, letter.said, "webhook", letter.key, event)


async def _check_replay(stage: Stage, world: World, letter: Letter, what: Applied) -> None:
    """Check that an event refused as a replay had its effect."""
    if what is not Applied.REPLAYED or not letter.said.status.is_terminal:
        return
    key = world.wares[letter.external_id].key
    row = await world.connection.fetchrow(
        "SELECT e.state, p.state AS work FROM windlass.provider_events e"
        " LEFT JOIN windlass.provider_jobs p ON (p.job_id, p.no, p.round) = ($2, $3, $4) WHERE e.id = $1",
        *(letter.event_id, key.job_id, key.no, key.round),
    )
    if row is None or (row["state"] not in ("WAITING", "DUE") and row["work"] != "ENDED"):
        stage.log.violations.append(f"webhook {letter.event_id} of {key} was called a replay and had no effect")


async def run_signaller(stage: Stage, rng: random.Random) -> None:
    """Send jobs the events that they wait for: too early, twice, or not matching; in the last phase matching."""
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 5.0))
        if stage.is_kind:
            await _tell_all(stage, rng)
        elif stage.listening:
            await tell(stage, rng, rng.choice(stage.listening), rng.choice(EVENTS), rng.random() < 0.6)


async def tell(stage: Stage, rng: random.Random, job_id: UUID, name: str, flag: bool) -> None:
    """Send a job an event, sometimes twice under one id."""
    stage.log.signals += 1
    id = f"s{stage.log.signals}"
    body = {"flag": flag, "ok": True, "items": [1], "signal": id}
    for _ in range(rng.choice([1, 1, 2])):
        said = await stage.patiently(
            rng, partial(signals.send, stage.db, job_id, name, body, id=id, sender=rng.choice(CALLERS))
        )
        if said is not None:
            stage.log.signalled.setdefault((job_id, id), []).append(str(said))


async def _tell_all(stage: Stage, rng: random.Random) -> None:
    query = "SELECT job_id, name, match FROM windlass.waits ORDER BY job_id, no"
    rows = await stage.patiently(rng, lambda: stage.db.run(lambda c: c.fetch(query)))
    for row in rows:
        match = msgspec.json.decode(row["match"])
        body = {"flag": match.get("flag", True)}
        assert fits(match, body)
        await tell(stage, rng, row["job_id"], row["name"], body["flag"])


async def run_treasurer(stage: Stage, rng: random.Random) -> None:
    """Set budgets, and raise them; in the last phase every budget is ample."""
    scopes = [("caller", caller) for caller in CALLERS] + [("recipe", plan.recipe) for plan in stage.plans]
    while not stage.is_kind:
        scope, name = rng.choice(scopes)
        most = stage.log.budgets.get((scope, name), Decimal(0)) + rng.choice([2, 4, 8, 16])
        stage.log.budgets[scope, name] = most
        await stage.patiently(rng, partial(budgets.set, stage.db, scope, name, most))
        await stage.db.scheduler.sleep(min(rng.expovariate(1 / 20.0), 30.0))
    while True:
        # Raise the budgets of jobs as well, which the submits brought.
        for view in await stage.patiently(rng, partial(budgets.list, stage.db)):
            if view.most < PLENTY:
                await stage.patiently(rng, partial(budgets.set, stage.db, view.scope, view.name, PLENTY))
        await stage.db.scheduler.sleep(20.0)


def with_budget(wish: Submission, rng: random.Random) -> Submission:
    """Give some jobs a budget."""
    return wish._replace(budget=Decimal(rng.choice([2, 4, 8]))) if rng.random() < 0.15 else wish


async def run_poller(stage: Stage, world: World, rng: random.Random) -> None:
    """Run the real poller, one request at a time."""
    poller = Poller(
        stage.db,
        world.providers,
        MemoryArtifacts(),
        spread=rng.random,
        clock_s=lambda: stage.db.scheduler.now,
        at_once=1,
    )
    while True:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 3.0), hears_bells=True)
        try:
            await poller.run_once()
        except Exception as error:
            if not is_away(error):
                raise
