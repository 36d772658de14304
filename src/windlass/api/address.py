"""Finds the address of a request's client: the peer of its connection, or the client that trusted proxies name.

Each proxy appends the address of its peer to `X-Forwarded-For`, either to the line that it received or as a new line.
All lines therefore form one list, and only its right end was written by known proxies. The list is read from the right.
The first address that is no trusted proxy is the client. The client may have invented everything to the left of it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope as AsgiScope

_FORWARDED_FOR = b"x-forwarded-for"


def client_address(scope: AsgiScope, proxies: frozenset[str]) -> str:
    """Return the client's address; only trusted proxies may name another address than the peer's."""
    peer = str(scope["client"][0]) if scope.get("client") else "local"
    if peer not in proxies:
        return peer
    lines = (value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED_FOR)
    return forwarded_for(lines, proxies) or peer


def forwarded_for(lines: Iterable[str], proxies: frozenset[str]) -> str | None:
    """Return the client that these lines of `X-Forwarded-For` name; None if they name no trustworthy address."""
    for text in reversed(",".join(lines).split(",")):
        address = _without_port(text.strip())
        if address is None:
            return None
        if address not in proxies:
            return address
    return None


def network_of(address: str) -> str:
    """Return the network that an address is counted by. An IPv6 client can choose its address from a whole /64."""
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, 64), strict=False))


def _without_port(text: str) -> str | None:
    """Return the address in its canonical spelling, without the port that some proxies add."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
