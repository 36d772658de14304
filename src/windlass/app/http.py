"""The API in this process: its parts made and started, a socket bound, uvicorn on our own loop.

uvicorn is given a socket that is bound already, so that a taken port is a setting to correct and not a line in a log;
and it keeps its hands off signals: the process is ended by `app/service.py`, in its own order.
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
from dataclasses import dataclass
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
from windlass.api.looks import JobLooks
from windlass.api.parts import Demo, Extra, Parts
from windlass.api.tracebacks import expose_to_all
from windlass.app import extending
from windlass.app.entropy import chance
from windlass.app.extended import extended
from windlass.app.extension_routes import extras_of
from windlass.app.observing import looks
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadSetting
from windlass.core.limit import Composite, FairShare, MembershipTier
from windlass.engine import installation
from windlass.engine.recipes import NamedPlans
from windlass.engine.submitter import Submitter
from windlass.outbound.send import Sender
from windlass.providers.receiver import Receiver
from windlass.pure.observer import Observer
from windlass.pure.service import Services
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.database import Database
from windlass.store.migrate import Folder, check
from windlass.telemetry.exposition import Exposition
from windlass.telemetry.meters import Meters
from windlass.views.read import Waiter

DRAIN_S = 10
BACKLOG = 2048
# How many waiting connections the loop takes at once. Each takes a descriptor before it can be refused.
ACCEPTED_AT_ONCE = 100
# Without a port of one's own choice, `up` takes the first of these that is free.
PORTS_TRIED = 20


@dataclass(frozen=True, slots=True)
class Listening:
    """An API that answers; `url` is where."""

    url: str


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process."""
        yield


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach HOST:PORT."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_bind(address: str, has_keys: bool, has_membership: bool) -> None:
    """Refuse to listen to the world while nobody has a key."""
    if not is_loopback(address) and not has_keys and not has_membership:
        raise BadSetting(
            f"listen={address!r} would let others in, and there is no key yet",
            remedy="Make one first: windlass keys create --caller NAME --scope admin",
        )


def bound(address: str, tries: int = 1) -> socket.socket:
    """A socket at HOST:PORT, or at the first free port after it."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for offset in range(tries if int(port) else 1):
        # Named as TCP: only then does asyncio send an answer's head and body without waiting for an acknowledgement.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, int(port) + offset))
            # Two that are only bound share a port; the port is ours once one listens.
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


@asynccontextmanager
async def listening(parts: Parts, address: str, *, tries: int = 1) -> AsyncIterator[Listening]:
    """Answer requests at this address until the block ends; then finish those under way."""
    server_socket = bound(address, tries)
    connections = _connections(parts)
    config = uvicorn.Config(
        create(parts),
        # Never uvicorn's own choice: its h11 connection has no limits of ours.
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
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[server_socket]), name="windlass-http")
    try:
        while not server.started:
            if running.done():
                running.result()
                raise BadSetting(f"nothing listens at {address}", remedy="See the log for the reason")
            await asyncio.sleep(0.005)
        # The loop has set the length of the kernel's queue to the number that it takes at once.
        server_socket.listen(BACKLOG)
        connections.start()
        host, port = server_socket.getsockname()[:2]
        yield Listening(f"http://{f'[{host}]' if ':' in host else host}:{port}")
    finally:
        parts.is_draining = True
        await parts.hub.stop()
        server.should_exit = True
        await asyncio.gather(running, return_exceptions=True)
        connections.stop()
        server_socket.close()


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
    services: Services | None = None,
    demo: Demo | None = None,
) -> AsyncIterator[Parts]:
    """Everything that routes need, started; stopped again when the block ends."""
    db, settings = windlass.db, windlass.settings
    meters = meters or _own_meters(db)
    expose_to_all(settings.expose_tracebacks)
    served = await installation.serve(db, *_checks(secret))
    windlass.is_served = True
    async with AsyncExitStack() as stack:
        keys, verifier = await _verifier(windlass, secret, meters, stack)
        audit = await _audit(db, stack)
        sender = Sender(is_loopback_allowed=settings.webhook_loopback)
        own = Services()
        stack.push_async_callback(own.stop)
        hub = await own.start(_hub(windlass, served.epoch, meters))
        verifier.close_on(hub.forget)
        sessions = await _sessions(windlass, secret, verifier, hub)
        depth = Depth(db, settings.queue_depth_max, time.monotonic, per_caller_max=settings.caller_depth_max)
        extras, folders = await _extensions(windlass, meters, stack)
        exposition = Exposition(meters.registry, looks(db, meters, depth.most, depth.look))
        stack.push_async_callback(exposition.close)
        yield Parts(
            db=db,
            artifacts=windlass.artifacts,
            resolver=shared_evaluator(),
            waiter=Waiter(db),
            looks=JobLooks(db),
            submitter=Submitter(db, observer, time.perf_counter),
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
            chance=chance,
            receiver=_receiver(windlass, meters),
            sender=sender,
            hub=hub,
            registry=meters.registry,
            meters=meters,
            exposition=exposition,
            settings=settings,
            installation=served,
            states=lambda: {**own.states(), **(services.states() if services is not None else {})},
            extras=extras,
            folders=folders,
            demo=demo,
        )


async def _extensions(windlass: Windlass, meters: Meters, stack: AsyncExitStack) -> tuple[list[Extra], list[Folder]]:
    """What extensions add to the API, and the migrations that they need."""
    found = extending.load(windlass.settings)
    folders = extending.folders(found)
    await check(windlass.db, folders)
    return extras_of(found, stack.enter_context(extended(windlass, found, meters.registry))), folders


async def _audit(db: Database, stack: AsyncExitStack) -> Audit:
    audit = Audit(db)
    await audit.start()
    stack.push_async_callback(audit.stop)
    return audit


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


async def _sessions(windlass: Windlass, secret: Secret, verifier: Verifier, hub: Hub) -> Sessions:
    sessions = Sessions(windlass.db, secret, verifier, entropy=secrets.token_bytes)
    await sessions.start()
    sessions.close_on(hub.forget)
    return sessions


def _checks(secret: Secret) -> tuple[bytes, list[bytes]]:
    first, *former = secret.digests("check", b"")
    return first, former


def _own_meters(db: Database) -> Meters:
    meters = Meters(CollectorRegistry())
    meters.watch_pool(lambda: db.busy, lambda: db.idle)
    return meters


async def _verifier(
    windlass: Windlass, secret: Secret, meters: Meters, stack: AsyncExitStack
) -> tuple[Keys | None, Verifier]:
    if windlass.settings.membership_url is None:
        keys = Keys(windlass.db, secret, entropy=secrets.token_bytes)
        await keys.start()
        stack.push_async_callback(keys.stop)
        return keys, keys
    callers = Callers(windlass.db, entropy=secrets.token_bytes)
    membership = Membership.open(windlass.settings.membership_url, secret, callers, meters)
    stack.push_async_callback(membership.close)
    return None, membership


def _receiver(windlass: Windlass, meters: Meters) -> Receiver:
    return Receiver(
        windlass.db,
        windlass.providers,
        windlass.artifacts,
        chance=chance,
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
