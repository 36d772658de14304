"""What both clients have in common towards httpx."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from windlass.client.exchange import Lost
from windlass.client.place import Place

try:
    import httpx as httpx
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "the client needs httpx: pip install 'windlass[client]'", name=missing.name, path=missing.path
    ) from None

# The request cannot have arrived: there was no connection for it.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)


def options_of(place: Place, timeout_s: float) -> dict[str, Any]:
    """How the connections are set up."""
    headers = {"user-agent": f"windlass-python/{_version()}", "accept": "application/json"}
    if place.api_key is not None:
        headers["x-api-key"] = place.api_key
    # Redirects are not followed: a key must not go to an address that nobody named. A proxy is of no use towards this
    # machine, and the environment's would be asked all the same.
    return {
        "base_url": place.url,
        "headers": headers,
        "timeout": timeout_s,
        "follow_redirects": False,
        "trust_env": not place.is_here,
    }


def lost_of(error: httpx.TransportError) -> Lost:
    """A failed exchange, in a word and without what was sent."""
    told = str(error) or type(error).__name__
    return Lost(told, is_sent=not isinstance(error, _NOT_SENT))


def _version() -> str:
    try:
        return version("windlass")
    except PackageNotFoundError:
        return "unknown"
