"""Whose address a request has, behind proxies that are known and behind others."""

from __future__ import annotations

import pytest

from windlass.api.address import client_address, network_of

PROXIES = frozenset({"10.0.0.7", "10.0.0.8", "::1"})


@pytest.mark.parametrize(
    ("peer", "lines", "found"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        # A client that is no proxy is believed nothing.
        ("203.0.113.9", ["1.1.1.1"], "203.0.113.9"),
        ("10.0.0.7", [], "10.0.0.7"),
        ("10.0.0.7", ["203.0.113.9"], "203.0.113.9"),
        # The proxy appends to the client's own line, or adds a line of its own.
        ("10.0.0.7", ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.7", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.7", ["1.1.1.1", "2.2.2.2", "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.7", ["1.1.1.1,10.0.0.7", "2.2.2.2, 203.0.113.9"], "203.0.113.9"),
        # Several proxies, each in its own way.
        ("10.0.0.7", ["1.1.1.1", "203.0.113.9, 10.0.0.8"], "203.0.113.9"),
        ("10.0.0.7", ["1.1.1.1", "203.0.113.9", "10.0.0.8"], "203.0.113.9"),
        ("::1", ["10.0.0.7", "203.0.113.9", "10.0.0.8, 10.0.0.7"], "203.0.113.9"),
        # Ports, IPv6, and spellings of it.
        ("10.0.0.7", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.7", ["[2001:DB8::1]:4711"], "2001:db8::1"),
        ("10.0.0.7", ["203.0.113.9, 0:0:0:0:0:0:0:1"], "203.0.113.9"),
        # What cannot be read ends the trust.
        ("10.0.0.7", ["203.0.113.9", "unknown"], "10.0.0.7"),
        ("10.0.0.7", ["203.0.113.9, "], "10.0.0.7"),
        ("10.0.0.7", ["10.0.0.8"], "10.0.0.7"),
        ("10.0.0.7", ["' OR 1=1"], "10.0.0.7"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(peer: str, lines: list[str], found: str) -> None:
    headers = [(b"host", b"x"), *((b"x-forwarded-for", line.encode()) for line in lines)]
    assert client_address({"client": (peer, 1), "headers": headers}, PROXIES) == found


def test_a_request_without_a_peer_is_local() -> None:
    assert client_address({"client": None, "headers": []}, PROXIES) == "local"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8::ffff:2", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"), ("::ffff:10.0.0.1", "10.0.0.1"), ("local", "local"), ("a:b", "a:b"),
    ],
)  # fmt: skip
def test_an_ipv6_client_counts_by_its_network(address: str, network: str) -> None:
    assert network_of(address) == network
