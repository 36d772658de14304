"""URLs that must not be called: each is refused when it is saved and when it is sent, and no connection is made.

A listener stands on the loopback's addresses, webhooks may use its port, and an audit hook hears of
every connection that this process begins. So the address alone is what each URL is refused for.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpcore
import pytest

from windlass.core.errors import BadUrl
from windlass.outbound.dial import GuardedBackend
from windlass.outbound.send import Sender
from windlass.pure import address as law

PUBLIC = "93.184.215.14"
# What the test's resolver answers. Any other name is not there.
NAMES: dict[str, list[str]] = {
    "public.example": [PUBLIC],
    "loopback.example": ["127.0.0.1"],
    "loopback6.example": ["::1"],
    "private.example": ["10.0.0.5"],
    "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "mixed.example": [PUBLIC, "127.0.0.1"],
    "mixed-last.example": ["127.0.0.1", PUBLIC],
    "many.example": [f"93.184.215.{n}" for n in range(1, 250)] + ["192.168.0.1"],
    "empty.example": [],
    "localhost": ["127.0.0.1", "::1"],
    "metadata.google.internal": ["169.254.169.254"],
}
HOSTS = [
    # Loopback and its spellings
    "127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "0.0.0.0", "0", "2130706433", "0x7f000001", "0x7f.0.0.1",
    "0177.0.0.1", "017700000001", "127.0.0.1.", "localhost", "localhost.", "LOCALHOST", "[::1]", "[::]",
    "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
    # Private, link-local, metadata
    "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "2852039166", "0xa9fea9fe",
    "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "192.0.0.192", "100.100.100.200", "168.63.129.16",
    "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25lo]", "[::1%25lo]", "[fc00::1]", "metadata.google.internal",
    # Wrapped IPv4
    "[64:ff9b::7f00:1]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001::7f00:1]",
    # Multicast, reserved, broadcast
    "224.0.0.1", "255.255.255.255", "240.0.0.1", "[ff02::1]",
    # Names that resolve to such, and names with other letters
    "loopback.example", "loopback6.example", "private.example", "metadata.example", "mapped.example", "nat64.example",
    "mixed.example", "mixed-last.example", "many.example", "empty.example", "nowhere.example", "１２７.０.０.１",
    "①②⑦.⓪.⓪.①", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127。0。0。1", "loc\u00adalhost",
]  # fmt: skip
URLS = [
    # Whom does it go to?
    "http://public.example@127.0.0.1:{port}/", "http://127.0.0.1:{port}@public.example/", "http://user:pw@public.example/",
    "http://@127.0.0.1:{port}/", "http://public.example\\@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@public.example/",
    "http://127.0.0.1:{port}#@public.example/", "http://127.0.0.1:{port}?@public.example/",
    "http://public.example#@127.0.0.1:{port}/x\\", "http:///127.0.0.1:{port}/", "http:127.0.0.1:{port}",
    "//127.0.0.1:{port}/",
    "http://[::1:{port}/", "http://::1:{port}/", "http://[127.0.0.1]:{port}/", "http://127.0.0.1%00.public.example:{port}/",
    "http://127.0.0.1:{port}:80/", "http://127.0.0.1 :{port}/", "http://127.0.0.1\t:{port}/", "http://127.0.0.1\r\n:{port}/",
    "http://%31%32%37.0.0.1:{port}/", "http://127.0.0.1,public.example:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    # Other schemes
    "file:///etc/passwd", "ftp://public.example/", "gopher://127.0.0.1:{port}/", "unix:///run/postgresql/.s.PGSQL.5432",
    "http+unix://%2Frun%2Fx.sock/", "ws://public.example/", "data:text/plain,x", "javascript:x",
    "127.0.0.1:{port}", "", " ", "http://",
    # Ports
    "http://public.example:22/", "http://public.example:5432/", "http://public.example:0/", "http://public.example:-80/",
    "http://public.example:65536/", "http://public.example:８０/", "https://public.example:8443/", "http://public.example:80x/",
    # Sizes and letters
    "http://public.example/" + "x" * 2048, "http://public.example/\x00", "http://public.example/ä", "http://public.example/\ud800",
    "http://" + "a." * 200 + "example/", "http://" + "a" * 64 + ".example/",
]  # fmt: skip


@dataclass
class Watch:
    """Who was connected to, and by whom the listener was."""

    ports: dict[str, int]
    begun: list[Any] = field(default_factory=list)
    accepted: int = 0


_watching: list[Watch] = []


def _hear(event: str, given: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for watch in _watching:
            watch.begun.append(given[1])


sys.addaudithook(_hear)


@pytest.fixture
async def watch(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watch]:
    made = Watch({})

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.accepted += 1
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    first = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = first.sockets[0].getsockname()[1]
    servers = [first]
    for other in ("::1", "127.255.255.254"):
        try:
            servers.append(await asyncio.start_server(accept, other, port))
        except OSError:
            continue
    made.ports["port"] = port
    monkeypatch.setattr(law, "PORTS", frozenset({80, 443, port}))
    _watching.append(made)
    yield made
    _watching.remove(made)
    for server in servers:
        server.close()


async def resolve(host: str, port: int) -> list[str]:
    """Names by the table, numbers as the system has them: it knows all the old spellings."""
    if host in NAMES:
        return NAMES[host]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        raise socket.gaierror(socket.EAI_NONAME, "no such name") from None
    return [str(address[0]) for *_, address in found]


def urls() -> Iterator[str]:
    for host in HOSTS:
        yield f"http://{host}:{{port}}/hook"
        yield f"http://{host}/hook"
        yield f"https://{host}/hook"
    yield from URLS


@pytest.mark.parametrize("url", list(urls()), ids=ascii)
async def test_a_hostile_url_is_refused_at_save_and_at_send_and_nobody_is_connected_to(url: str, watch: Watch) -> None:
    url = url.replace("{port}", str(watch.ports["port"]))
    sender = Sender(resolve=resolve)
    with pytest.raises(BadUrl) as caught:
        await sender.check(url)
    for names in NAMES.values():
        assert not any(address in str(caught.value) for address in names if address not in url)
    sent = await sender.post(url, b"{}", {})
    assert (sent.status, sent.fault) == (None, "bad_url")
    assert (watch.begun, watch.accepted) == ([], 0)


def test_the_table_is_as_long_as_it_says() -> None:
    assert len(list(urls())) > 200


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "loopback.example", "LOCALHOST", "[::ffff:127.0.0.1]"])
async def test_the_listener_and_the_hook_would_notice(host: str, watch: Watch) -> None:
    sender = Sender(resolve=resolve, is_loopback_allowed=True)
    url = f"http://{host}:{watch.ports['port']}/hook"
    await sender.check(url)
    assert (await sender.post(url, b"{}", {})).status == 204
    assert watch.begun
    assert watch.accepted == 1


@pytest.mark.parametrize("url", list(urls()), ids=ascii)
async def test_allowing_loopback_lets_nothing_else_through(url: str, watch: Watch) -> None:
    async def without_public(host: str, port: int) -> list[str]:
        return [address for address in await resolve(host, port) if not address.startswith("93.")]

    sender = Sender(resolve=without_public, is_loopback_allowed=True)
    await sender.post(url.replace("{port}", str(watch.ports["port"])), b"{}", {})
    reached = {str(address[0]).removeprefix("::ffff:") for address in watch.begun}
    assert all(one.startswith("127.") or one in ("::1", "7f00:1") for one in reached), reached


async def test_a_name_that_changes_its_address_after_the_check_is_refused_at_the_dial(watch: Watch) -> None:
    answers = [[PUBLIC], ["127.0.0.1"], ["169.254.169.254"]]
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    sender = Sender(resolve=rebinding)
    url = f"http://rebind.example:{watch.ports['port']}/"
    await sender.check(url)
    assert [(await sender.post(url, b"{}", {})).fault for _ in range(2)] == ["bad_url", "bad_url"]
    assert len(asked) == 3
    assert (watch.begun, watch.accepted) == ([], 0)


async def test_a_name_is_resolved_once_for_each_request_and_the_answer_is_what_is_dialled(watch: Watch) -> None:
    asked: list[str] = []

    async def changing(host: str, port: int) -> list[str]:
        # Were it asked a second time for the same request, the answer would be another.
        asked.append(host)
        return ["127.0.0.1"] if len(asked) % 2 else ["10.0.0.1"]

    sender = Sender(resolve=changing, is_loopback_allowed=True)
    url = f"http://rebind.example:{watch.ports['port']}/"
    assert (await sender.post(url, b"{}", {})).status == 204
    assert (await sender.post(url, b"{}", {})).fault == "bad_url"
    assert (len(asked), watch.accepted) == (2, 1)
    assert [address[0] for address in watch.begun] == ["127.0.0.1"]


async def test_every_request_has_a_connection_and_a_check_of_its_own(watch: Watch) -> None:
    sender = Sender(resolve=resolve, is_loopback_allowed=True)
    for _ in range(3):
        await sender.post(f"http://127.0.0.1:{watch.ports['port']}/", b"{}", {})
    assert (len(watch.begun), watch.accepted) == (3, 3)


async def test_a_local_socket_is_never_opened() -> None:
    with pytest.raises(BadUrl):
        await GuardedBackend(resolve, is_loopback_allowed=True).connect_unix_socket("/run/x.sock")


async def test_a_refused_name_says_the_same_as_one_that_is_not_there() -> None:
    """Otherwise callers could probe the names of our network."""
    texts = set()
    for host in ("private.example", "nowhere.example", "mixed.example", "empty.example"):
        with pytest.raises(BadUrl) as caught:
            await Sender(resolve=resolve).check(f"https://{host}/")
        texts.add(str(caught.value))
    assert len(texts) == 1


async def test_a_public_name_passes() -> None:
    await Sender(resolve=resolve).check("https://public.example/hook?x=1")


async def test_the_backend_is_what_refuses_whoever_uses_it(watch: Watch) -> None:
    """Without the checks above it: as if a later change had forgotten them."""
    async with httpcore.AsyncConnectionPool(network_backend=GuardedBackend(resolve)) as pool:
        for host in ("127.0.0.1", "2130706433", "0x7f.1", "loopback.example", "mixed.example", "metadata.example"):
            with pytest.raises(BadUrl):
                await pool.request("GET", f"http://{host}:{watch.ports['port']}/")
    assert (watch.begun, watch.accepted) == ([], 0)
