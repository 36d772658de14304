"""What measures this process: meters, traces and a place to read them, put together as the settings say.

It needs the extra `service`, so whoever wants no measuring does not import it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from prometheus_client import CollectorRegistry

from windlass.app.settings import Settings
from windlass.engine import gauge
from windlass.store.database import Database
from windlass.telemetry import logs
from windlass.telemetry.exposition import Exposition, exposed
from windlass.telemetry.meters import Meters
from windlass.telemetry.traces import open_tracer


def configure_logs(settings: Settings) -> None:
    """Write this process's log as the settings say."""
    logs.configure(settings.log_format, settings.log_level)


def is_wanted(settings: Settings) -> bool:
    """Whether anybody asked for this process to be measured; one that has an API always is."""
    return settings.metrics_listen is not None or settings.traces is not None


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


def looks(db: Database, meters: Meters, depth_max: int) -> Callable[[], Awaitable[None]]:
    """Bring up to date what is read from the database: one bounded look each, when somebody asks for metrics."""

    async def look() -> None:
        meters.show_queues(await gauge.queues(db, depth_max + 1), depth_max)
        meters.show_tallies(await gauge.tallies(db))
        meters.show_installation(await gauge.engines(db), await gauge.feed_lag_s(db))

    return look
