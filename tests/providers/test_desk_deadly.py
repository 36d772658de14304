"""Workers that are killed with a request in hand: the work is begun once, and its result is the step's."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.providers.deadly import DIE_AT, DIE_FLAG
from tests.providers.ground import Ground, providers_yaml
from windlass.core.external import WorkKey

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def worker(on: Ground, place: str, **given: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    folder = on.yard.folder
    text = providers_yaml(on.fake, adapter="tests.providers.deadly:DeadlyAdapter", **given)
    (folder / "providers.yaml").write_text(text)
    environ = {**os.environ, DIE_AT: place, DIE_FLAG: str(folder / "died")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.providers.process", on.yard.dsn, on.yard.queue, str(folder),
        cwd=ROOT, env=environ, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


@pytest.mark.covers("SCR-57")
@pytest.mark.parametrize("place", ["before the start", "after the start"])
async def test_a_worker_killed_with_a_request_in_hand_leaves_one_piece_of_work(on: Ground, place: str) -> None:
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit()
    async with on.yard.loops(), on.polling():
        async with worker(on, place) as killed:
            assert await asyncio.wait_for(killed.wait(), 60) == -signal.SIGKILL
        async with worker(on, place):
            await on.until_work(job_id, "RUNNING")
            await on.fake.finish()
            assert (await on.yard.end(job_id)).state == "COMPLETED"
    assert on.fake.accepted() == {str(WorkKey(job_id, 0, 1)): 1}
    assert (await on.yard.step(job_id)).attempt == 2
    assert await on.open_slots() == 0


async def test_a_provider_that_knows_no_keys_is_asked_whether_it_has_the_work(on: Ground) -> None:
    # It makes two of two requests; that it can look work up is all that keeps it from that.
    await on.fake.behave(seconds=None, honours_keys=False)
    options = "{honours_keys: false, cancel: 'DELETE /jobs/{id}', find: 'GET /jobs?key={key}'}"
    [job_id] = await on.submit()
    async with on.yard.loops(), on.polling():
        async with worker(on, "after the start", options=options) as killed:
            assert await asyncio.wait_for(killed.wait(), 60) == -signal.SIGKILL
        async with worker(on, "after the start", options=options):
            await on.until_work(job_id, "RUNNING")
            await on.fake.finish()
            assert (await on.yard.end(job_id)).state == "COMPLETED"
    assert on.fake.accepted() == {str(WorkKey(job_id, 0, 1)): 1}
