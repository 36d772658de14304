"""Which addresses may be dialled, and which URLs may be named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadUrl
from windlass.pure.address import Target, check_target, may_dial

CLOSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.0.8", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:7f00:1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:10::1",
    "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "4000::1", "1fff::1",
]  # fmt: skip
NO_ADDRESS = ["", "localhost", "127.1", "0177.0.0.1", "0x7f000001", "2130706433", "2606:4700::1%eth0", "１.1.1.1"]
OPEN = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "193.0.0.1",
        "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "2001:4860:4860::8888"]  # fmt: skip


@pytest.mark.parametrize("address", CLOSED + NO_ADDRESS)
def test_an_address_that_is_not_public_is_not_dialled(address: str) -> None:
    assert not may_dial(address, 443, is_loopback_allowed=False)


@pytest.mark.parametrize("address", OPEN)
def test_a_public_address_is_dialled_on_the_ports_of_http_only(address: str) -> None:
    assert may_dial(address, 443, is_loopback_allowed=False)
    assert may_dial(address, 80, is_loopback_allowed=True)
    for port in (0, 22, 81, 5432, 8080, 65535):
        assert not may_dial(address, port, is_loopback_allowed=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_open_on_every_port_where_it_is_allowed(address: str) -> None:
    assert may_dial(address, 9, is_loopback_allowed=True)
    assert not may_dial(address, 80, is_loopback_allowed=False)


def test_allowing_loopback_opens_nothing_else() -> None:
    loopback = {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"}
    assert [a for a in CLOSED + NO_ADDRESS if may_dial(a, 80, is_loopback_allowed=True) != (a in loopback)] == []


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_what_it_stands_for(address: object) -> None:
    assert may_dial(f"::ffff:{address}", 80, is_loopback_allowed=False) == may_dial(
        str(address), 80, is_loopback_allowed=False
    )


@given(st.ip_addresses())
def test_whatever_is_open_is_global_for_the_standard_library_too(address: object) -> None:
    if may_dial(str(address), 80, is_loopback_allowed=False):
        mapped = getattr(address, "ipv4_mapped", None) or address
        assert mapped.is_global and not mapped.is_private and not mapped.is_multicast  # type: ignore[attr-defined]


def refused(
    host: str, *, scheme: str = "https", port: int = 443, userinfo: bool = False, loopback: bool = False
) -> str:
    with pytest.raises(BadUrl) as caught:
        check_target(Target(scheme, host, port, userinfo), is_loopback_allowed=loopback)
    return str(caught.value)


@pytest.mark.parametrize("scheme", ["", "ftp", "file", "gopher", "unix", "httpx", "HTTP"])
def test_only_http_is_called(scheme: str) -> None:
    assert "neither http nor https" in refused("example.org", scheme=scheme)


def test_a_user_name_is_refused() -> None:
    assert "user name" in refused("example.org", userinfo=True)


@pytest.mark.parametrize("port", [0, 22, 25, 8080, 8443, 65535])
def test_odd_ports_are_refused(port: int) -> None:
    assert f"port {port}" in refused("example.org", port=port)
    assert "port 0" in refused("example.org", port=0, loopback=True)


@pytest.mark.parametrize(
    "host",
    [
        "", ".", "a..b", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "0", "1.2.3.4.5",
        "256.1.1.1", "a.0x", "example.org.", "127.0.0.1.", "１２７.0.0.1", "ⓛocalhost", "exämple.org", "a b", "a%00b",
        "a\\b", "-a.org", "a-.org", "a" * 64 + ".org", ".".join(["a" * 60] * 5), "fe80::1%eth0", "[::1]", "a,b", "a@b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("loopback", [False, True])
def test_a_host_that_is_neither_a_plain_name_nor_an_address_is_refused(host: str, loopback: bool) -> None:
    assert "plain name" in refused(host, loopback=loopback)


@pytest.mark.parametrize("host", CLOSED)
def test_an_address_in_a_url_is_refused_as_it_would_be_at_the_dial(host: str) -> None:
    assert "not a public address" in refused(host)


@pytest.mark.parametrize("host", ["example.org", "a", "localhost", "a_b.example.org", "x1.2y", "1a.org", *OPEN])
def test_a_plain_host_passes(host: str) -> None:
    check_target(Target("https", host, 443, False), is_loopback_allowed=False)
    check_target(Target("http", host, 80, False), is_loopback_allowed=False)


def test_with_loopback_allowed_any_port_may_be_named_and_the_dial_decides() -> None:
    check_target(Target("http", "127.0.0.1", 8420, False), is_loopback_allowed=True)
    check_target(Target("http", "localhost", 8420, False), is_loopback_allowed=True)
    assert "not a public address" in refused("8.8.8.8", port=8420, loopback=True)
    assert "not a public address" in refused("10.0.0.1", port=80, loopback=True)
