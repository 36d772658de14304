"""What the tests of external work share: steps that ask a provider, and the provider's side by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from tests.engine.rig import Rig, plan, task
from windlass.core import slot
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Outcome, Parked
from windlass.core.plan import Plan
from windlass.core.retry import Retry
from windlass.core.states import StepState
from windlass.engine import external
from windlass.engine.claim import Claimed
from windlass.engine.external import Answer, Applied, InEvent, Intent, Work
from windlass.store import drafts
from windlass.store.plans import read_plan
from windlass.views.work import WorkView, work_of

P = ProviderStatus
FAL = "fal"
ONCE = Retry(max_attempts=1)
ONE = plan(task("a", provider=FAL, retry=Retry(max_attempts=3, base_s=1, jitter=0)))
CHAIN = plan(task("a", provider=FAL), task("b", "a"))
DONE = Said(P.SUCCEEDED, '{"url":"x"}')
FAILED = Said(P.FAILED)


class Asked(NamedTuple):
    """A step whose provider was asked."""

    job: UUID
    one: Claimed
    intent: Intent
    external_id: str


async def grant(rig: Rig, job: UUID) -> None:
    """Give every step of the job that stands in line what it waits for, as the granter would."""

    async def operation(connection: Any) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [job])
            found = await drafts.load_open(connection, job, [StepState.HELD], lambda h: read_plan(connection, h))
            assert found is not None
            for no in sorted(found.steps):
                slot.grant(found, no)
            await drafts.write(connection, [found])

    await rig.db.run(operation)


async def claimed(rig: Rig, of: Plan = ONE) -> Claimed:
    """A running step that may ask its provider."""
    job = await rig.submit(of)
    await rig.loops.router.run_once()
    await grant(rig, job)
    return next(one for one in await rig.claim(1000) if one.job_id == job)


async def claim_again(rig: Rig, job: UUID) -> Claimed:
    await grant(rig, job)
    [one] = [one for one in await rig.claim() if one.job_id == job]
    return one


async def intend(rig: Rig, one: Claimed) -> Intent:
    intent = await external.intend(rig.db, one.job_id, one.no, one.attempt, FAL)
    assert intent is not None
    return intent


async def asked(rig: Rig, of: Plan = ONE, external_id: str = "") -> Asked:
    """A step whose provider is about to answer; only the provider knows its id yet."""
    one = await claimed(rig, of)
    return Asked(one.job_id, one, await intend(rig, one), external_id or f"req-{one.job_id}-{one.no}")


async def park(rig: Rig, ask: Asked, within_s: float = 3600.0) -> bool:
    return await rig.settle(ask.one, Parked(FAL, within_s, ask.external_id))


async def parked(rig: Rig, of: Plan = ONE, external_id: str = "", within_s: float = 3600.0) -> Asked:
    """A step that waits for its provider."""
    ask = await asked(rig, of, external_id)
    assert await park(rig, ask, within_s)
    return ask


def webhook(external_id: str | None, said: Said = DONE, id: str = "evt-1", **given: Any) -> Answer:
    return Answer(FAL, external_id, said, "webhook", event=InEvent(id, {"x-a": "b"}, b'{"raw":1}'), **given)


def poll(external_id: str, said: Said = DONE) -> Answer:
    return Answer(FAL, external_id, said, "poller")


async def answer(rig: Rig, *answers: Answer) -> list[Applied]:
    return await external.answer(rig.db, answers, spread=lambda: 0.0)


async def work(rig: Rig, job: UUID) -> list[WorkView]:
    return await work_of(rig.db, job)


async def states(rig: Rig, job: UUID) -> list[str]:
    """The states of the rounds."""
    return [view.state for view in await work(rig, job)]


async def due(rig: Rig, limit: int = 100, lease_s: float = 60.0) -> list[Work]:
    return await external.due(rig.db, limit, lease_s, provider=FAL)


async def event_states(rig: Rig) -> list[str]:
    return [row.state for row in await external.events(rig.db, FAL)]


async def tell(rig: Rig, ones: Sequence[Claimed], outcome: Outcome) -> None:
    for one in ones:
        await rig.settle(one, outcome)
