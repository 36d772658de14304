"""The demo job of `up`, of which every start makes one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

from windlass.app.demo.demo import LABELS, Demo
from windlass.app.demo.worker import QUEUE
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.examples.first_minute import first_minute
from windlass.recipe.app import load
from windlass.views import read


async def waits_for_a_person(windlass: Windlass, job_id: UUID) -> None:
    async with asyncio.timeout(60):
        while not any(step.waiting_for == "event:approved" for step in await read.steps(windlass.db, job_id)):
            await asyncio.sleep(0.02)


async def test_a_new_demo_ends_those_that_nobody_will_ever_approve(dsn: str, tmp_path: Path) -> None:
    async with Windlass.connect(dsn, settings=Settings(home=tmp_path, database_url=dsn)) as windlass:
        async with serving(windlass, load("windlass.examples.first_minute"), queues=[QUEUE]):
            left = await windlass.submit(first_minute, labels=LABELS, photos=1, pace=0.01)
            own = await windlass.submit(first_minute, photos=1, pace=0.01)
            for job in (left, own):
                await waits_for_a_person(windlass, job.job_id)
        # No worker runs now, so these two have not begun; only the one that waits for a person is given up.
        demo = Demo(windlass)
        first, second = await demo.submit(), await demo.submit()
        states = {view.id: str(view.state) for view in await read.jobs(windlass.db)}
        assert states == {left.job_id: "CANCELLED", own.job_id: "PROCESSING", first: "QUEUED", second: "QUEUED"}
        assert demo.job_id == second
        [event] = [one for one in await read.events(windlass.db, left.job_id) if one.type == "job.cancelled"]
        assert event.source == "demo"
