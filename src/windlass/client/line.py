"""The httpx settings and errors that both clients share."""

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

# After these errors the request cannot have arrived, because it had no connection.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)


def options_of(place: Place, timeout_s: float) -> dict[str, Any]:
    """Return the arguments of the httpx client for a server."""
    headers = {"user-agent": f"windlass-python/{_version()}", "accept": "application/json"}
    if place.api_key is not None:
        headers["x-api-key"] = place.api_key
    # Redirects are not followed, because a key must not go to an address that the user did not name. For a server on
    # this machine the environment is not trusted, because httpx would send the requests to the proxy that it names.
    return {
        "base_url": place.url,
        "headers": headers,
        "timeout": timeout_s,
        "follow_redirects": False,
        "trust_env": not place.is_here,
    }


def lost_of(error: httpx.TransportError) -> Lost:
    """Describe a failed exchange without the contents of the request."""
    told = str(error) or type(error).__name__
    return Lost(told, is_sent=not isinstance(error, _NOT_SENT))


def _version() -> str:
    try:
        return version("windlass")
    except PackageNotFoundError:
        return "unknown"
