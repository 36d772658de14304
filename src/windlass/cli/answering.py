"""Serves the API within a command: checks the address, chooses the port and makes the first key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from windlass.app.demo.demo import Demo
from windlass.app.first_key import announced, first_key, has_keys, secret_of
from windlass.app.settings import LISTEN_DEFAULT
from windlass.app.windlass import Windlass
from windlass.core.errors import BadSetting

_NEEDED = ("fastapi", "httpcore", "httptools", "httpx", "prometheus_client", "uvicorn")


def is_installed() -> bool:
    """Return whether the packages that the server needs are installed."""
    return all(find_spec(name) is not None for name in _NEEDED)


@asynccontextmanager
async def measured(windlass: Windlass, role: str, *, is_served: bool = False) -> AsyncIterator[None]:
    """Measure this process if it serves `/metrics`, or if the settings name a metrics address or a trace collector."""
    settings = windlass.settings
    if not is_served and settings.metrics_listen is None and settings.traces is None:
        yield
        return
    if find_spec("prometheus_client") is None:
        raise BadSetting("metrics_listen or traces is set", remedy="pip install 'windlass[service,otel]'")
    from windlass.app import observing

    async with observing.measured(windlass, role):
        yield


@asynccontextmanager
async def answering(
    windlass: Windlass,
    listen: str | None,
    *,
    with_key: bool,
    demo: Demo | None = None,
) -> AsyncIterator[str]:
    """Serve the API while the block runs, and yield its address.

    `with_key` makes a first key and writes the address into the home folder. Callers from other machines need a key.
    So an address that other machines can reach is refused while neither a key nor a membership service exists.
    """
    from windlass.app import http
    from windlass.telemetry.meters import Meters

    settings = windlass.settings
    address = listen or settings.listen
    is_here = http.is_loopback(address)
    secret = secret_of(settings)
    has_membership = settings.membership_url is not None
    http.check_bind(address, is_here or has_membership or await has_keys(windlass, secret), has_membership)
    # The user did not choose the port, so several servers may start side by side on the next free ports.
    tries = http.PORTS_TRIED if with_key and listen is None and settings.listen == LISTEN_DEFAULT else 1
    meters = windlass.observer if isinstance(windlass.observer, Meters) else None
    async with (
        http.making_parts(windlass, secret, meters=meters, observer=meters, demo=demo) as parts,
        http.listening(parts, address, tries=tries) as found,
    ):
        if not with_key:
            yield found.url
            return
        await first_key(windlass, secret)
        with announced(settings.home, found.url):
            yield found.url


@asynccontextmanager
async def answering_if_installed(
    windlass: Windlass, listen: str | None, demo: Demo | None
) -> AsyncIterator[str | None]:
    """Serve the API for `up` if its packages are installed; yield None otherwise, since `up` works without an API."""
    if not is_installed():
        yield None
        return
    async with answering(windlass, listen, with_key=True, demo=demo) as url:
        yield url
