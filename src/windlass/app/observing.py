"""Builds the meters, traces and metrics server of this process, as the settings say.

It needs the extra `service`, so a process without measuring does not import it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.pure.service import Part, Services
from windlass.store.database import Database
from windlass.telemetry.exposition import Exposition, MetricsServer
from windlass.telemetry.meters import Meters
from windlass.telemetry.traces import open_tracer
from windlass.views import gauge, providers


@asynccontextmanager
async def observing(
    db: Database, settings: Settings, role: str, within: Services | None = None
) -> AsyncIterator[Meters]:
    """Measure while the block lasts. `role` is the process's name in traces: api, engine, worker, up."""
    services = Services(within)
    try:
        tracer = None
        if settings.traces is not None:
            tracer = open_tracer(settings.traces, f"windlass-{role}", is_default=True)
            await services.start(Part("traces", tracer.close))
        meters = Meters(CollectorRegistry(), tracer)
        meters.watch_pool(lambda: db.busy, lambda: db.idle)
        if settings.metrics_listen is not None:
            exposition = Exposition(meters.registry, gauge_updater(db, meters, settings.queue_depth_max))
            await services.start(MetricsServer(exposition, settings.metrics_listen))
        yield meters
    finally:
        await services.stop()


@asynccontextmanager
async def measured(windlass: Windlass, role: str) -> AsyncIterator[Meters]:
    """Measure the workers, loops and submits of this connection while the block lasts."""
    async with observing(windlass.db, windlass.settings, role, windlass.services) as meters:
        windlass.observe(meters)
        windlass.policies.on_load = meters.policy_loaded
        yield meters


def gauge_updater(
    db: Database,
    meters: Meters,
    depth_max: int,
    queues: Callable[[], Awaitable[Mapping[str, tuple[int, float]]]] | None = None,
) -> Callable[[], Awaitable[None]]:
    """Return a function that updates the gauges read from the database: one bounded query each, for each scrape.

    `queues` saves the query for the depths where the process counts them anyway.
    """

    async def update() -> None:
        meters.show_queues(await queues() if queues else await gauge.queues(db, depth_max + 1), depth_max)
        meters.show_tallies(await gauge.tallies(db))
        meters.show_installation(await gauge.engines(db), await gauge.feed_lag_s(db))
        meters.show_providers(
            (one.name, one.concurrency, one.held, one.waiting, one.breaker != "closed")
            for one in await providers.views(db)
        )

    return update
