"""Where a request comes from: the peer of its connection, or the client that trusted proxies name.

Each proxy appends the address of its peer to `X-Forwarded-For`, to the line that it received or as a line of its own.
So all lines are one list, and only its right end was written by proxies that are known. The list is read from the
right; the first address that is no trusted proxy is the client. What stands left of it, the client may have invented.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope as AsgiScope

_FORWARDED_FOR = b"x-forwarded-for"


def client_address(scope: AsgiScope, proxies: frozenset[str]) -> str:
    """The client's address, as far as proxies can be believed."""
    peer = str(scope["client"][0]) if scope.get("client") else "local"
    if peer not in proxies:
        return peer
    lines = (value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED_FOR)
    return forwarded_for(lines, proxies) or peer


def forwarded_for(lines: Iterable[str], proxies: frozenset[str]) -> str | None:
    """The client that these lines of `X-Forwarded-For` name; None if they name none that can be believed."""
    for text in reversed(",".join(lines).split(",")):
        address = _without_port(text.strip())
        if address is None:
            return None
        if address not in proxies:
            return address
    return None


def network_of(address: str) -> str:
    """The network that an address is counted by. An IPv6 client has a whole /64 to choose its address from."""
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
    """The address, in its usual spelling; some proxies add the client's port."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
