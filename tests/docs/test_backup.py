"""The page on backups says which artifacts may be removed: its query is run, not only planned."""

from __future__ import annotations

import pytest

from tests.docs.blocks import ROOT, blocks
from tests.engine.rig import Rig, plan, task
from windlass.app.entropy import Ids
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import Node, NodeKind
from windlass.engine import recipes, rerun
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock
from windlass.views import read


@pytest.fixture
async def rig(timed_db: Database, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Rig:
    made = Rig(timed_db, clock, ids, artifacts)
    await made.enlist()
    return made


async def in_use(rig: Rig) -> set[str]:
    [query] = [block.text for block in blocks("sql") if block.page == ROOT / "docs/operating/backup.md"]
    async with rig.db.connection() as connection:
        return {row["sha256"] for row in await connection.fetch(query.rstrip().rstrip(";"))}


async def test_an_artifact_of_a_removed_job_is_in_use_while_its_retry_keeps_the_step(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child", output="${inputs.big}"))
    large = Node("c", NodeKind.RECIPE, run="child", with_={"big": "${inputs.big}"})
    old = await rig.submit(plan(large, task("b", "c")), {"big": "x" * 300_000})
    await rig.loops.run_until_idle()
    await rig.run_one()
    await rig.loops.run_until_idle()
    await rig.run_one(Failure(Fault("x", ""), is_retryable=False))
    new = await rerun.retry(rig.db, old, rig.ids.new())
    [kept, _] = await read.steps(rig.db, new)
    name = kept.output["$artifact"]["sha256"]
    for job, expected in ((old, {name}), (new, set())):
        async with rig.db.connection() as connection:
            await connection.execute("DELETE FROM windlass.steps WHERE job_id = $1", job)
            await connection.execute("DELETE FROM windlass.inbox")
        assert await in_use(rig) == expected
