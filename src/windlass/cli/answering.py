"""The API within a command: who may be let in, at which port, with whose key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from windlass.app.demo.demo import Demo
from windlass.app.first_key import announced, first_key, has_keys, secret_of
from windlass.app.settings import LISTEN_DEFAULT
from windlass.app.windlass import Windlass
from windlass.core.errors import BadSetting
from windlass.pure.service import Services

_NEEDED = ("fastapi", "httpcore", "httptools", "httpx", "prometheus_client", "uvicorn")


def is_installed() -> bool:
    """Whether this installation of the package can serve."""
    return all(find_spec(name) is not None for name in _NEEDED)


@asynccontextmanager
async def measured(windlass: Windlass, role: str, *, is_served: bool = False) -> AsyncIterator[None]:
    """Measure this process if somebody can see it: a server's `/metrics`, or where the settings say."""
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
    services: Services | None = None,
    demo: Demo | None = None,
) -> AsyncIterator[str]:
    """The API while the block lasts; gives its address. `with_key` makes a first key and leaves the address at home.

    Whoever is not on this machine gets in only with a key, so nobody is let in while there is none.
    """
    from windlass.app import http
    from windlass.telemetry.meters import Meters

    settings = windlass.settings
    address = listen or settings.listen
    is_here = http.is_loopback(address)
    secret = secret_of(settings)
    has_membership = settings.membership_url is not None
    http.check_bind(address, is_here or has_membership or await has_keys(windlass, secret), has_membership)
    # Nobody chose the port: several may be started side by side.
    tries = http.PORTS_TRIED if with_key and listen is None and settings.listen == LISTEN_DEFAULT else 1
    meters = windlass.observer if isinstance(windlass.observer, Meters) else None
    async with (
        http.making_parts(windlass, secret, meters=meters, observer=meters, services=services, demo=demo) as parts,
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
    windlass: Windlass, listen: str | None, services: Services, demo: Demo | None
) -> AsyncIterator[str | None]:
    """The same for `up`, which works without an API too."""
    if not is_installed():
        yield None
        return
    async with answering(windlass, listen, with_key=True, services=services, demo=demo) as url:
        yield url
