"""The API in this process: creates and starts its parts, binds a socket, and runs uvicorn on the process's loop.

uvicorn gets a bound socket, so a taken port is reported as a setting to correct and not as a line in a log. uvicorn
does not handle signals: `app/service.py` ends the process, in its own order.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import uvicorn
from prometheus_client import CollectorRegistry

from windlass.access.audit import Audit
from windlass.access.callbacks import Callbacks
from windlass.access.callers import Callers
from windlass.access.depth import Depth
from windlass.access.keys import Keys
from windlass.access.limiter import Limiter, PostgresLimits
from windlass.access.membership import Membership
from windlass.access.secret import Secret
from windlass.access.sessions import Sessions
from windlass.access.tickets import Tickets
from windlass.access.verifier import Verifier
from windlass.api.app import create
from windlass.api.connection import Connection
from windlass.api.connections import Connections, HttpLimits, raise_open_files, room_for
from windlass.api.hub import Hub
from windlass.api.job_reader import JobReader
from windlass.api.parts import Demo, Extra, Parts
from windlass.app import extending
from windlass.app.entropy import spread
from windlass.app.extended import extended
from windlass.app.extension_routes import extras_of
from windlass.app.observing import gauge_updater
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadSetting
from windlass.core.limit import Composite, FairShare, MembershipTier
from windlass.documents.tracebacks import expose_to_all
from windlass.engine import installation
from windlass.engine.recipes import NamedPlans
from windlass.engine.submitter import Submitter
from windlass.outbound.send import Sender
from windlass.providers.receiver import Receiver
from windlass.pure.observer import Observer
from windlass.pure.service import Part, Services
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.database import Database
from windlass.store.migrate import Folder, check
from windlass.telemetry.exposition import Exposition
from windlass.telemetry.meters import Meters
from windlass.views.read import Waiter

DRAIN_S = 10
BACKLOG = 2048
# How many waiting connections the loop accepts at once. Each takes a descriptor before it can be refused.
ACCEPTED_AT_ONCE = 100
# Without a configured port, `up` takes the first free port of this many.
PORTS_TRIED = 20


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process."""
        yield


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach HOST:PORT."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_bind(address: str, has_keys: bool, has_membership: bool) -> None:
    """Refuse to listen beyond this machine while no key exists."""
    if not is_loopback(address) and not has_keys and not has_membership:
        raise BadSetting(
            f"listen={address!r} is open to other machines, and there is no key yet",
            remedy="Create a key first: windlass keys create --caller NAME --scope admin",
        )


def bound(address: str, tries: int = 1) -> socket.socket:
    """Bind a socket at HOST:PORT, or at the first free port after it."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for offset in range(tries if int(port) else 1):
        # With TCP named, asyncio sends an answer's head and body without waiting for an acknowledgement.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, int(port) + offset))
            # Two sockets that are only bound can share a port; listening makes the port exclusive.
            made.listen(BACKLOG)
        except OSError as error:
            made.close()
            if offset + 1 == tries or int(port) == 0:
                raise BadSetting(
                    f"nothing can listen at {address}: {error.strerror or error}",
                    remedy="Set listen to another address, or stop what uses it; port 0 takes any free one",
                ) from error
            continue
        made.setblocking(False)
        return made
    raise AssertionError("a port was neither taken nor refused")


class HttpServer:
    """uvicorn as a service. `url` is its address, once it has started."""

    name = "http"

    def __init__(self, parts: Parts, address: str, *, tries: int = 1) -> None:
        self._parts = parts
        self._address = address
        self._tries = tries
        self._connections = _connections(parts)
        self._server = _Server(_config(parts, self._connections))
        self._socket: socket.socket | None = None
        self.url = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bind the port; return once the server answers requests."""
        self._socket = bound(self._address, self._tries)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="windlass-http")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise BadSetting(f"nothing listens at {self._address}", remedy="See the log for the reason")
            await asyncio.sleep(0.005)
        # asyncio has set the kernel's queue to the number that it accepts at once.
        self._socket.listen(BACKLOG)
        self._connections.start()

    async def stop(self) -> None:
        """Close the streams, so that clients reconnect elsewhere; finish running requests, and release the port."""
        self._parts.is_draining = True
        await self._parts.hub.stop()
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._connections.stop()
        if self._socket is not None:
            self._socket.close()

    def alive(self) -> float | None:
        """Return None: an answer over HTTP tells it."""
        return None

    def ready(self) -> bool:
        """Tell whether it accepts requests."""
        return self._server.started and self._task is not None and not self._task.done()


def _config(parts: Parts, connections: Connections) -> uvicorn.Config:
    return uvicorn.Config(
        create(parts),
        # uvicorn's default h11 connection would not apply the limits of Windlass.
        http=partial(Connection, connections=connections),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=parts.settings.keep_alive_s,
        timeout_graceful_shutdown=DRAIN_S,
        backlog=ACCEPTED_AT_ONCE,
    )


@asynccontextmanager
async def listening(parts: Parts, address: str, *, tries: int = 1) -> AsyncIterator[HttpServer]:
    """Answer requests at this address until the block ends; then finish the running requests."""
    services = Services(parts.services)
    try:
        yield await services.start(HttpServer(parts, address, tries=tries))
    finally:
        await services.stop()


def _connections(parts: Parts) -> Connections:
    settings = parts.settings
    limits = HttpLimits(
        head_max_bytes=settings.head_max_bytes,
        url_max_bytes=settings.head_max_bytes // 2,
        head_s=settings.head_timeout_s,
        body_s=settings.body_timeout_s,
    )
    most = room_for(raise_open_files(), settings.connections_max)
    per_address_max = settings.connections_per_address_max or max(1, most // 2)
    return Connections(limits, most, per_address_max, frozenset(settings.proxies))


@asynccontextmanager
async def making_parts(
    windlass: Windlass,
    secret: Secret,
    *,
    meters: Meters | None = None,
    observer: Observer | None = None,
    demo: Demo | None = None,
) -> AsyncIterator[Parts]:
    """Start every part that the routes need; stop them when the block ends."""
    db, settings = windlass.db, windlass.settings
    meters = meters or _own_meters(db)
    expose_to_all(settings.expose_tracebacks)
    served = await _serve(windlass, secret)
    services = Services(windlass.services)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(services.stop)
        await windlass.watch_policy(services)
        keys, verifier = await _verifier(windlass, secret, meters, services)
        audit = await services.start(Audit(db))
        hub = await services.start(_hub(windlass, served.epoch, meters))
        verifier.close_on(hub.forget)
        sessions = await services.start(Sessions(db, secret, verifier, entropy=secrets.token_bytes))
        sessions.close_on(hub.forget)
        depth = Depth(db, settings.queue_depth_max, time.monotonic, per_caller_max=settings.caller_depth_max)
        extras, folders = await _extensions(windlass, meters, stack)
        exposition = Exposition(meters.registry, gauge_updater(db, meters, depth.most, depth.look))
        await services.start(Part("metrics", exposition.close))
        yield Parts(
            db=db,
            artifacts=windlass.artifacts,
            resolver=shared_evaluator(),
            waiter=Waiter(db),
            job_reader=JobReader(db),
            submitter=Submitter(db, observer, time.perf_counter, gathers=True),
            plans=NamedPlans(db, time.monotonic),
            ids=windlass.ids,
            verifier=verifier,
            keys=keys,
            limiter=_limiter(windlass),
            depth=depth,
            tickets=Tickets(db, secret, entropy=secrets.token_bytes),
            sessions=sessions,
            audit=audit,
            secret=secret,
            callbacks=Callbacks(secret),
            spread=spread,
            receiver=_receiver(windlass, meters),
            sender=Sender(is_loopback_allowed=settings.webhook_loopback),
            hub=hub,
            registry=meters.registry,
            meters=meters,
            exposition=exposition,
            settings=settings,
            installation=served,
            policies=windlass.policies,
            services=windlass.services,
            extras=extras,
            folders=folders,
            demo=demo,
        )


async def _extensions(windlass: Windlass, meters: Meters, stack: AsyncExitStack) -> tuple[list[Extra], list[Folder]]:
    """Return the routes and pages of the extensions, and the migrations that they need."""
    found = extending.load(windlass.settings)
    folders = extending.folders(found)
    await check(windlass.db, folders)
    return extras_of(found, stack.enter_context(extended(windlass, found, meters.registry))), folders


async def _serve(windlass: Windlass, secret: Secret) -> installation.Installation:
    served = await installation.serve(windlass.db, *_checks(secret))
    windlass.is_served = True
    return served


def _hub(windlass: Windlass, epoch: int, meters: Meters) -> Hub:
    settings = windlass.settings
    return Hub(
        windlass.db,
        epoch=epoch,
        streams_max=settings.streams_max,
        per_caller_max=settings.streams_per_caller_max,
        clock=time.monotonic,
        meters=meters,
    )


def _checks(secret: Secret) -> tuple[bytes, list[bytes]]:
    first, *former = secret.digests("check", b"")
    return first, former


def _own_meters(db: Database) -> Meters:
    meters = Meters(CollectorRegistry())
    meters.watch_pool(lambda: db.busy, lambda: db.idle)
    return meters


async def _verifier(
    windlass: Windlass, secret: Secret, meters: Meters, services: Services
) -> tuple[Keys | None, Verifier]:
    if windlass.settings.membership_url is None:
        keys = await services.start(Keys(windlass.db, secret, entropy=secrets.token_bytes))
        return keys, keys
    callers = Callers(windlass.db, entropy=secrets.token_bytes)
    membership = Membership.open(windlass.settings.membership_url, secret, callers, meters)
    await services.start(Part("membership", membership.close))
    return None, membership


def _receiver(windlass: Windlass, meters: Meters) -> Receiver:
    return Receiver(
        windlass.db,
        windlass.providers,
        windlass.artifacts,
        spread=spread,
        clock=time.time,
        inline_max=windlass.settings.inline_max_bytes,
        counts=meters,
    )


def _limiter(windlass: Windlass) -> Limiter:
    settings: Settings = windlass.settings
    fair = FairShare(
        capacity=settings.limit_capacity,
        floor=settings.limit_floor,
        burst=settings.limit_burst,
        window_s=settings.limit_window_s,
        internal=frozenset(settings.internal_callers),
    )
    strategy = Composite(fair, MembershipTier(dict(settings.tiers), fair))
    return Limiter(PostgresLimits(windlass.db), strategy)
