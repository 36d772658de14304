"""What these tests share: an engine, real workers, a poller, and a provider that is a process of its own."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

from tests.providers.steps import STEPS
from tests.worker.yard import PATIENCE_S, Yard
from windlass.app.providing import announce
from windlass.core.plan import PROVIDER_HANDLER, Node
from windlass.core.retry import Retry
from windlass.providers.desk import Desk
from windlass.providers.poller import Poller
from windlass.providers.registry import Registry
from windlass.store.database import Database
from windlass.testing.fake_provider import FakeProvider
from windlass.views import work
from windlass.views.work import WorkView
from windlass.worker.outside import Capabilities
from windlass.worker.worker import Worker

RETRY = Retry(max_attempts=3, base_s=0.05, jitter=0)


def providers_yaml(fake: FakeProvider, **given: Any) -> str:
    """A file with one provider, `fake`, which is asked often."""
    settings = {
        "adapter": "http",
        "base_url": fake.base_url("generic"),
        "concurrency": 50,
        "rate": 1000,
        "timeout": "2s",
        "wait": "30s",
        "poll": "[100ms, 200ms]",
        "options": "{cancel: 'DELETE /jobs/{id}', find: 'GET /jobs?key={key}', list: 'GET /jobs?since={since}'}",
    } | given
    return "providers:\n  fake:\n" + "".join(f"    {name}: {value}\n" for name, value in settings.items())


def node(name: str = "render", run: str | None = None, **given: Any) -> Node:
    """A step that asks the provider, by a handler of `steps.py` or by the built-in one."""
    run = run or (name if name in STEPS else PROVIDER_HANDLER)
    values: dict[str, Any] = {"provider": "fake", "retry": RETRY, "timeout_s": 20.0, "with_": {"prompt": "a fox"}}
    if run == PROVIDER_HANDLER:
        values["with_"] = {"model": "image", "input": {"prompt": "a fox"}}
    return Node(name=name, run=run, **(values | given))


class Ground:
    def __init__(self, yard: Yard, fake: FakeProvider, registry: Registry) -> None:
        self.yard = yard
        self.db = yard.db
        self.fake = fake
        self._used: list[Registry] = []
        self.use(registry)

    def use(self, registry: Registry) -> None:
        self.registry = registry
        self._used.append(registry)
        self.by_name = {one.name: one for one in registry}

    async def close(self) -> None:
        for registry in self._used:
            await registry.close()

    async def set_up(self, **given: Any) -> None:
        """Read the providers again, as this says."""
        self.use(Registry.read(providers_yaml(self.fake, **given), {}))
        await announce(self.db, self.registry)

    def desk(self, **given: Any) -> Desk:
        return Desk(self.db, self.by_name, **given)

    def poller(self, **given: Any) -> Poller:
        return Poller(self.db, self.by_name, self.yard.artifacts, spread=random.random, clock_s=time.monotonic, **given)

    @asynccontextmanager
    async def polling(self, **given: Any) -> AsyncIterator[Poller]:
        poller = self.poller(**given)
        await poller.start()
        try:
            yield poller
        finally:
            await poller.stop()

    @asynccontextmanager
    async def running(self, *, with_poller: bool = True, **given: Any) -> AsyncIterator[Worker]:
        """Loops, a worker and a poller."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.yard.loops())
            if with_poller:
                await stack.enter_async_context(self.polling())
            settings = {"steps": STEPS, "capabilities": Capabilities(self.desk())} | given
            yield await stack.enter_async_context(self.yard.working(**settings))

    async def submit(self, *nodes: Node, count: int = 1) -> list[UUID]:
        return await self.yard.submit(*(nodes or (node(),)), count=count)

    async def work(self, job_id: UUID) -> list[WorkView]:
        return await work.work_of(self.db, job_id)

    async def until_work(self, job_id: UUID, *states: str) -> WorkView:
        """The last round of the job's only step, once it is in one of these states."""
        found: list[WorkView] = []

        async def is_so() -> bool:
            found[:] = await self.work(job_id)
            return bool(found) and found[-1].state in states

        await until(is_so)
        return found[-1]

    async def open_slots(self) -> int:
        """How many steps stand in line, or hold a place."""
        async with self.db.connection() as connection:
            return await connection.fetchval("SELECT count(*) FROM windlass.slots")

    async def costs(self, job_id: UUID) -> list[Any]:
        async with self.db.connection() as connection:
            return await connection.fetch(
                "SELECT attempt, provider, amount, tokens_in, tokens_out, seconds FROM windlass.costs"
                " WHERE job_id = $1 ORDER BY no, attempt",
                job_id,
            )


async def until(is_so: Callable[[], Awaitable[bool]], within_s: float = PATIENCE_S) -> None:
    """Return when it is so."""
    async with asyncio.timeout(within_s):
        while not await is_so():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def ground(dsn: str, folder: Any, evaluator: Any, artifacts: Any) -> AsyncIterator[Ground]:
    db = await Database.open(dsn)
    async with FakeProvider(folder / "journal", is_durable=False) as fake:
        on = Ground(Yard(db, dsn, folder, artifacts, evaluator), fake, Registry.read(providers_yaml(fake), {}))
        try:
            await announce(db, on.registry)
            yield on
        finally:
            await on.close()
            await db.close()
