"""Decides which URLs a user may name, and which addresses may be dialled for them.

The standard library's `is_global` is not used. It accepts addresses that stand for others (6to4, NAT64, the protocol
assignments, among which one cloud has its metadata service). Its table is as old as the interpreter. Here IPv4 is
open except for a list, and IPv6 is closed except for the ranges that are assigned to networks today.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from windlass.core.errors import BadUrl

PORTS: Final = frozenset({80, 443})
URL_LENGTH_MAX: Final = 2048

_CLOSED_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own agent, on a formally public address
        "169.254.0.0/16",  # link-local: metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; a cloud's metadata
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_OPEN_6 = IPv6Network("2000::/3")
_CLOSED_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, which wraps IPv4, and others
        "2001:db8::/32",
        "2002::/16",  # 6to4 wraps IPv4
        "3fff::/20",
    )
)
_LOOPBACK_4 = IPv4Network("127.0.0.0/8")
_LOOPBACK_6 = IPv6Address("::1")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# Old parsers read these as numbers: 127.1, 0177.0.0.1, 0x7f000001, 2130706433. Only the plain form is a host.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_NAME_LENGTH_MAX = 253
_REMEDY = "Name a public http or https address, on port 80 or 443, without a user name"


@dataclass(frozen=True, slots=True)
class Target:
    """A split URL; `host` is in lower case and without the brackets of an IPv6 address."""

    scheme: str
    host: str
    port: int
    has_userinfo: bool


def refusal() -> BadUrl:
    """Return the same error for every forbidden address and for every name that cannot be resolved.

    So a request reveals nothing about names and addresses of the server's network.
    """
    return BadUrl("this URL may not be called: its host is not a public address", remedy=_REMEDY)


def check_target(target: Target, *, is_loopback_allowed: bool) -> None:
    """Refuse a URL by its text, before a name is resolved."""
    if target.scheme not in ("http", "https"):
        raise BadUrl("this URL may not be called: it is neither http nor https", remedy=_REMEDY)
    if target.has_userinfo:
        raise BadUrl("this URL may not be called: it holds a user name or password", remedy=_REMEDY)
    if target.port == 0 or (not is_loopback_allowed and target.port not in PORTS):
        raise BadUrl(f"this URL may not be called: port {target.port} is neither 80 nor 443", remedy=_REMEDY)
    if _parse(target.host) is not None:
        if not may_dial(target.host, target.port, is_loopback_allowed=is_loopback_allowed):
            raise refusal()
    elif not _is_name(target.host):
        raise BadUrl("this URL may not be called: its host is not a plain name or address", remedy=_REMEDY)


def _is_name(host: str) -> bool:
    labels = host.split(".")
    is_plain = len(host) <= _NAME_LENGTH_MAX and all(_LABEL.fullmatch(label) for label in labels)
    return is_plain and not _NUMBER.fullmatch(labels[-1])


def may_dial(address: str, port: int, *, is_loopback_allowed: bool) -> bool:
    """Return whether a connection may be opened. Loopback, if allowed, is open on every port."""
    found = _parse(address)
    if found is None:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if isinstance(found, IPv4Address):
        if found in _LOOPBACK_4:
            return is_loopback_allowed
        return port in PORTS and not any(found in network for network in _CLOSED_4)
    if found == _LOOPBACK_6:
        return is_loopback_allowed
    return port in PORTS and found in _OPEN_6 and not any(found in network for network in _CLOSED_6)


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    # A zone (`fe80::1%eth0`) names an interface of this machine, which a URL must not choose.
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None
