"""Three engines, and a kernel that is killed: checks 10 and 12 from outside."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.rig import plan, task
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.plan import Plan
from windlass.store.database import Database
from windlass.views import explain

WITHIN_S = 120.0
ENGINES = 3
RECIPE: Plan = plan(task("a"), recipe="mail")
# The waits of the breaker and of the jobs are over.
_LATER = """
    UPDATE windlass.kernels SET opened_at = opened_at - interval '31 s' WHERE opened_at IS NOT NULL;
    UPDATE windlass.jobs SET gate_at = windlass.clock() WHERE gate_at IS NOT NULL;
"""
_STATES = "SELECT state, count(*) FROM windlass.jobs GROUP BY state"


class KernelProcess:
    """The kernel, at one port."""

    def __init__(self) -> None:
        self.port = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, word: str) -> None:
        command = [sys.executable, "-m", "tests.engine.kernel_server_process", str(self.port), word]
        # What it prints later is not read: few lines fit into the pipe.
        self._process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            self.port = int(await self._process.stdout.readline())

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def engine(dsn: str, folder: Path, port: int, fail_mode: str) -> AsyncIterator[None]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("WINDLASS_")}
    environ |= {
        "WINDLASS_DATABASE_URL": dsn,
        "WINDLASS_HOME": str(folder),
        "SAFETY_KERNEL_ADDR": f"localhost:{port}",
        "POLICY_CHECK_FAIL_MODE": fail_mode,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "windlass.cli.main", "serve", "engine",
        env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Ground:
    """Three engines, their kernel, and a program that submits."""

    def __init__(self, windlass: Windlass, kernel: KernelProcess) -> None:
        self.windlass = windlass
        self.kernel = kernel

    @property
    def db(self) -> Database:
        return self.windlass.db

    async def states(self) -> dict[str, int]:
        rows = await self.db.run(lambda connection: connection.fetch(_STATES))
        return {row["state"]: row["count"] for row in rows}

    async def later(self) -> None:
        await self.db.run(lambda connection: connection.execute(_LATER))

    async def until(self, is_so: Callable[[], Awaitable[Any]], *, later: bool = False) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not await is_so():
                if later:
                    await self.later()
                # A probe that is under way while the waits end counts for the round before, so the rounds take a while.
                pause = "SELECT pg_sleep(3)" if later else "SELECT pg_sleep(0.1)"
                await self.db.run(lambda connection, pause=pause: connection.fetchval(pause))  # type: ignore[misc]


@asynccontextmanager
async def ground(dsn: str, folder: Path, fail_mode: str) -> AsyncIterator[Ground]:
    kernel = KernelProcess()
    await kernel.start("allow")
    try:
        async with AsyncExitStack() as stack:
            for no in range(ENGINES):
                home = folder / str(no)
                home.mkdir()
                await stack.enter_async_context(engine(dsn, home, kernel.port, fail_mode))
            settings = Settings(database_url=dsn, home=folder)
            windlass = await stack.enter_async_context(Windlass.connect(settings=settings))
            on = Ground(windlass, kernel)
            await on.until(lambda: _is_announced(on.db))
            yield on
    finally:
        await kernel.kill()


async def _is_announced(db: Database) -> bool:
    row = await db.run(
        lambda connection: connection.fetchrow(
            "SELECT kernel, (SELECT count(*) FROM windlass.engines) AS engines FROM windlass.policy_now"
        )
    )
    return row["kernel"] == "safety_kernel" and row["engines"] == ENGINES


@pytest.mark.slow
@pytest.mark.covers("COR-71")
async def test_a_killed_kernel_holds_jobs_and_they_go_on_when_it_is_back(fresh_dsn: str, tmp_path: Path) -> None:
    async with ground(fresh_dsn, tmp_path, "closed") as on:
        await on.windlass.submit(RECIPE)

        async def is_through() -> bool:
            return (await on.states()).get("QUEUED") == 1

        await on.until(is_through)
        await on.kernel.kill()
        jobs = [await on.windlass.submit(RECIPE) for _ in range(9)]

        async def is_explained() -> bool:
            return "does not answer" in str(await explain.why(on.db, jobs[0].job_id))

        await on.until(is_explained)
        await on.later()
        await on.until(is_explained)
        assert await on.states() == {"QUEUED": 1, "PENDING": 9}
        await on.kernel.start("allow")

        async def are_through() -> bool:
            return await on.states() == {"QUEUED": 10}

        await on.until(are_through, later=True)


@pytest.mark.slow
@pytest.mark.covers("COR-72")
async def test_in_the_open_mode_jobs_run_and_the_kernel_that_is_back_ends_them(fresh_dsn: str, tmp_path: Path) -> None:
    async with ground(fresh_dsn, tmp_path, "open") as on:
        await on.kernel.kill()
        for _ in range(5):
            await on.windlass.submit(RECIPE)

        async def is_through() -> bool:
            return await on.states() == {"QUEUED": 5}

        await on.until(is_through, later=True)
        marked = "SELECT count(*) FROM windlass.jobs WHERE bypassed_at IS NOT NULL"
        assert await on.db.run(lambda connection: connection.fetchval(marked)) == 5
        await on.kernel.start("deny")

        async def is_denied() -> bool:
            return await on.states() == {"DENIED": 5}

        await on.until(is_denied, later=True)
