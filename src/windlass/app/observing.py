"""What measures this process: meters, traces and a place to read them, put together as the settings say.

It needs the extra `service`, so whoever wants no measuring does not import it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from prometheus_client import CollectorRegistry

from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.store.database import Database
from windlass.telemetry.exposition import Exposition, exposed
from windlass.telemetry.meters import Meters
from windlass.telemetry.traces import open_tracer
from windlass.views import gauge, providers


@asynccontextmanager
async def observing(db: Database, settings: Settings, role: str) -> AsyncIterator[Meters]:
    """Measure while the block lasts. `role` is what traces call the process: api, engine, worker, up."""
    async with AsyncExitStack() as stack:
        tracer = None
        if settings.traces is not None:
            tracer = open_tracer(settings.traces, f"windlass-{role}", is_default=True)
            stack.push_async_callback(tracer.close)
        meters = Meters(CollectorRegistry(), tracer)
        meters.watch_pool(lambda: db.busy, lambda: db.idle)
        if settings.metrics_listen is not None:
            exposition = Exposition(meters.registry, looks(db, meters, settings.queue_depth_max))
            await stack.enter_async_context(exposed(exposition, settings.metrics_listen))
        yield meters


@asynccontextmanager
async def measured(windlass: Windlass, role: str) -> AsyncIterator[Meters]:
    """Measure what workers, loops and submits of this connection do, while the block lasts."""
    async with observing(windlass.db, windlass.settings, role) as meters:
        windlass.observe(meters)
        yield meters


def looks(
    db: Database,
    meters: Meters,
    depth_max: int,
    queues: Callable[[], Awaitable[Mapping[str, tuple[int, float]]]] | None = None,
) -> Callable[[], Awaitable[None]]:
    """Bring up to date what is read from the database: one bounded look each, when somebody asks for metrics.

    `queues` spares a look of our own where somebody looks at them anyway.
    """

    async def look() -> None:
        meters.show_queues(await queues() if queues else await gauge.queues(db, depth_max + 1), depth_max)
        meters.show_tallies(await gauge.tallies(db))
        meters.show_installation(await gauge.engines(db), await gauge.feed_lag_s(db))
        meters.show_providers(
            (one.name, one.concurrency, one.held, one.waiting, one.breaker != "closed")
            for one in await providers.views(db)
        )

    return look
