from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.rig import QUEUE, Rig, plan, task
from windlass.access.depth import Depth
from windlass.app.entropy import Ids
from windlass.core.errors import Busy
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock


@pytest.fixture
async def rig(timed_db: Database, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Rig:
    made = Rig(timed_db, clock, ids, artifacts)
    await made.enlist()
    return made


async def test_submits_are_refused_above_the_depth_and_not_at_it(rig: Rig) -> None:
    now_s = 0.0
    depth = Depth(rig.db, 2, lambda: now_s)
    await depth.check()
    assert depth.last == {}
    for _ in range(2):
        await rig.submit(plan(task("a")))
    now_s += 1.0
    await depth.check()
    await rig.submit(plan(task("a", queue="other"), recipe="s"))
    now_s += 1.0
    with pytest.raises(Busy) as refused:
        await depth.check()
    assert refused.value.retry_after_s == 30
    assert refused.value.code == "busy"
    await rig.run_one()
    now_s += 1.0
    await depth.check()


async def test_it_looks_once_a_second_however_many_ask(rig: Rig) -> None:
    now_s, looks, real = 0.0, 0, rig.db.run

    async def counted(operation: Any) -> Any:
        nonlocal looks
        looks += 1
        return await real(operation)

    rig.db.run = counted  # type: ignore[method-assign]
    depth = Depth(rig.db, 2, lambda: now_s)
    await asyncio.gather(*(depth.check() for _ in range(20)))
    now_s += 0.9
    await depth.check()
    assert looks == 1
    now_s += 0.2
    await asyncio.gather(*(depth.check() for _ in range(20)))
    assert looks == 2


async def test_it_tells_how_many_wait_and_for_how_long(rig: Rig) -> None:
    await rig.submit(plan(task("a")))
    rig.clock.advance(5)
    await rig.submit(plan(task("a")))
    rig.clock.advance(2)
    depth = Depth(rig.db, 1)
    assert await depth.look() == {QUEUE: (2, pytest.approx(7.0))}
    # It counts no further than it needs to.
    for _ in range(3):
        await rig.submit(plan(task("a")))
    assert (await Depth(rig.db, 1).look())[QUEUE][0] == 2
