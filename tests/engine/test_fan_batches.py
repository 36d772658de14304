"""A fan-out that the router makes in several batches, with children that settle between them."""

from __future__ import annotations

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core import route
from windlass.core.outcome import Success
from windlass.core.states import JobState, StepState
from windlass.engine.settle import settle
from windlass.testing.checker import Tables, check_tables
from windlass.views import read

READY, COMPLETED, BLOCKED = StepState.READY, StepState.COMPLETED, StepState.BLOCKED


async def _unmet(rig: Rig, no: int) -> int:
    query = "SELECT unmet FROM windlass.steps WHERE no = $1"
    return int(await rig.db.run(lambda connection: connection.fetchval(query, no)))


async def _settle_next(rig: Rig) -> int:
    """Claim one step and report its success with the claim's view of the job, as a worker does."""
    one = await rig.claim_one()
    settled = await settle(rig.db, [one.report(Success("1"))], spread=lambda: 0.0)
    assert settled.took_effect == (True,)
    return one.no


async def test_a_child_that_completes_between_two_batches_is_counted_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "FAN_BATCH_MAX", 2)
    job = await rig.submit(plan(task("fan", each="inputs.items"), task("total", "fan")), {"items": [1, 2, 3, 4, 5]})
    [router] = [duty for duty in rig.loops.duties if duty.name == "router"]
    open_children = 5
    for _ in range(3):
        await router.run_once()
        await _settle_next(rig)
        open_children -= 1
        assert await _unmet(rig, 0) == open_children
        assert (await rig.states(job))[1] is BLOCKED
    for _ in range(2):
        await _settle_next(rig)
    assert (await rig.states(job))[:2] == [COMPLETED, StepState.QUEUED]
    assert await _settle_next(rig) == 1
    assert await rig.state(job) is JobState.COMPLETED
    assert (await read.job(rig.db, job)).steps_open == 0
    async with rig.db.connection() as connection:
        assert check_tables(await Tables.read(connection), is_serial=False) == []
