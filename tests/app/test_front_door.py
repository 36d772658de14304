"""What a client without a key can do to the port: a server in a process of its own, raw sockets, no client library."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from pathlib import Path

from tests.api.process import GET, MB, WITHIN_S, Server, server
from windlass.api.connections import DEFAULT_MAX, Connections, HttpLimits, room_for

POST = b"POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


async def flood(at: Server, first: bytes, piece: bytes, pieces: int) -> bytes:
    """Send all of it, unless the server ends the connection; what it answered."""
    reader, writer = await at.open()
    with contextlib.suppress(ConnectionError):
        writer.write(first)
        for _ in range(pieces):
            writer.write(piece)
            await writer.drain()
    answer = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(WITHIN_S):
            answer = await reader.read()
    writer.transport.abort()
    return answer


async def test_heads_without_end_cost_no_memory_and_stall_nobody(fresh_dsn: str, tmp_path: Path) -> None:
    async with server(fresh_dsn, tmp_path) as at:
        await at.is_well()
        before = at.peak_bytes
        one, line = b"y" * MB, b"X-Pad: " + b"z" * 1000 + b"\r\n"
        floods = [
            flood(at, GET + b"X-Pad: ", one, 105),
            flood(at, b"GET /", one, 105),
            flood(at, GET, line * 1000, 105),
            flood(at, b"\r\n" * 1000, b"\r\n" * 500_000, 5),
            flood(at, b"G" * 1000, one, 5),
            flood(at, GET + b"Transfer-Encoding: chunked\r\n\r\n1;", one, 20),
            flood(at, GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Pad: ", one, 20),
        ]
        under_way = asyncio.gather(*floods)
        answered = 0
        while not under_way.done():
            await at.is_well()
            answered += 1
        header, url, headers, *_ = await under_way
        assert answered
        assert at.peak_bytes - before < 24 * MB
    # The answer reaches a client that never stops sending, or the connection is cut: never anything else.
    assert header[:12] in (b"HTTP/1.1 431", b"") and headers[:12] in (b"HTTP/1.1 431", b"")
    assert url[:12] in (b"HTTP/1.1 414", b"")


HEADS = [
    (GET + b"X-Pad: " + b"y" * 40_000 + b"\r\n\r\n", 431),
    (GET + b"X-Pad: " + b"y" * 40_000, 431),
    (GET + b"X: y\r\n" * 150 + b"\r\n", 431),
    (GET + b"X: y\r\n" * 90 + b"\r\n", 200),
    (GET + b"X-Pad: " + b"y" * 30_000 + b"\r\n\r\n", 200),
    (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    (b"GET /" + b"x" * 40_000, 414),
    (b"GET /" + b"x" * 15_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"nonsense\r\n\r\n", 400),
]


async def test_a_head_or_a_body_over_a_limit_is_answered_and_the_client_reads_it(
    fresh_dsn: str, tmp_path: Path
) -> None:
    async with server(fresh_dsn, tmp_path) as at:
        answers = [(head, await at.status_of(head)) for head, _ in HEADS]
        assert answers == HEADS
        await _too_large(at)
        await _ended_after_that(at)


async def _too_large(shared: Server) -> None:
    """The client sends all of it before it reads, as most do."""
    big = b"x" * (10 * MB)
    assert await shared.status_of(POST + b"Content-Length: %d\r\n\r\n" % len(big), big) == 413
    chunk = b"%x\r\n%b\r\n" % (MB, b"x" * MB)
    assert await shared.status_of(POST + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 10, b"0\r\n\r\n") == 413
    expects = POST + b"Expect: 100-continue\r\n"
    assert await shared.status_of(expects + b"Content-Length: %d\r\n\r\n" % len(big)) == 413
    assert await shared.status_of(expects + b"Content-Length: %d\r\n\r\n" % len(big), big) == 413
    assert await shared.status_of(expects + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 10) == 100


async def _ended_after_that(shared: Server) -> None:
    reader, writer = await shared.open()
    writer.write(POST + b"Content-Length: %d\r\n\r\n" % (10 * MB))
    async with asyncio.timeout(WITHIN_S):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 413") and b"\r\nconnection: close\r\n" in answer
    writer.transport.abort()


async def test_half_sent_requests_crowd_nobody_out(fresh_dsn: str, tmp_path: Path) -> None:
    async with server(fresh_dsn, tmp_path, files=1024, head_timeout_s="600", body_timeout_s="600") as at:
        halves = []
        for number in range(1_100):
            made = await at.open()
            made[1].write(GET if number % 2 else POST + b'Content-Length: 100\r\n\r\n{"key":')
            halves.append(made)
            if number % 100 == 0:
                await at.is_well()
        await at.is_well()
        # The oldest had to go.
        async with asyncio.timeout(WITHIN_S):
            with contextlib.suppress(ConnectionError):
                assert await halves[0][0].read() == b""
        for _, writer in halves:
            writer.transport.abort()
        await at.is_well()


async def test_a_request_that_does_not_arrive_is_given_up(fresh_dsn: str, tmp_path: Path) -> None:
    async with server(fresh_dsn, tmp_path, head_timeout_s="1", body_timeout_s="1", keep_alive_s="1") as at:
        halves = (
            GET,
            b"",
            POST + b'Content-Length: 100\r\n\r\n{"key":',
            POST + b"Transfer-Encoding: chunked\r\n\r\n",
        )
        assert await asyncio.gather(*(at.status_of(sent) for sent in halves)) == [408] * 4
        reader, writer = await at.open()
        writer.write(GET + b"\r\n")
        async with asyncio.timeout(WITHIN_S):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200") and answer.count(b"HTTP/1.1") == 1
        writer.close()
        await at.is_well()


async def test_one_address_has_a_cap_of_its_own_unless_it_is_a_proxy(fresh_dsn: str, tmp_path: Path) -> None:
    caps = {"connections_per_address_max": "5", "connections_max": "50"}

    async def is_first_kept(at: Server) -> bool:
        """Whether the first of six connections, each answered once and then idle, answers again."""
        made = []
        for _ in range(6):
            made.append(await at.open())
            assert await asked(*made[-1])
        is_kept = await asked(*made[0])
        for _, writer in made:
            writer.transport.abort()
        return is_kept

    async with server(fresh_dsn, tmp_path, **caps) as at:
        assert not await is_first_kept(at)
    async with server(fresh_dsn, tmp_path, proxies="127.0.0.1", **caps) as at:
        assert await is_first_kept(at)


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether a request on this connection is answered."""
    try:
        writer.write(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(WITHIN_S):
            return (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 ")
    except (ConnectionError, asyncio.IncompleteReadError):
        return False


# ---------------------------------------------------------------- the caps alone


class Fake:
    def __init__(self, *, is_half_sent: bool = False, is_idle: bool = False) -> None:
        self.is_half_sent, self.is_idle = is_half_sent, is_idle
        self.is_dropped = False

    def drop(self) -> None:
        self.is_dropped = True

    def tick(self, step_s: float) -> None:
        pass


async def entered(caps: Connections, one: Fake, address: str) -> str | None:
    refusal = caps.enter(one, address)
    if refusal is None:
        caps.moved(one)
    return None if refusal is None else refusal.code


async def test_the_oldest_half_sent_goes_first_then_the_oldest_idle_and_never_one_that_is_answered() -> None:
    caps = Connections(HttpLimits(), 4, 4, frozenset())
    idle, busy, old, new = Fake(is_idle=True), Fake(), Fake(is_half_sent=True), Fake(is_half_sent=True)
    for one in (idle, busy, old, new):
        assert await entered(caps, one, "a") is None
    more = [Fake() for _ in range(4)]
    for one, gone in zip(more, (old, new, idle), strict=False):
        assert await entered(caps, one, "b") is None
        assert gone.is_dropped
    assert await entered(caps, more[3], "b") == "unavailable"
    assert not busy.is_dropped and len(caps) == 4
    caps.leave(busy)
    caps.leave(busy)
    assert await entered(caps, more[3], "b") is None


async def test_an_address_at_its_cap_takes_room_from_itself_only() -> None:
    caps = Connections(HttpLimits(), 10, 1, frozenset({"10.0.0.7"}))
    half, mine = Fake(is_half_sent=True), Fake()
    assert await entered(caps, half, "2001:db8::1") is None
    assert await entered(caps, mine, "10.0.0.1") is None
    assert await entered(caps, Fake(), "10.0.0.1") == "rate_limited"
    assert await entered(caps, Fake(), "::ffff:10.0.0.1") == "rate_limited"
    assert not half.is_dropped
    # One client of IPv6 has a whole network to choose its address from.
    assert await entered(caps, Fake(), "2001:db8::ffff:2") is None
    assert half.is_dropped
    for _ in range(3):
        assert await entered(caps, Fake(), "10.0.0.7") is None


def test_connections_leave_descriptors_for_the_rest() -> None:
    assert room_for(1024, None) == 768
    assert room_for(1024, 5_000) == 768
    assert room_for(300, None) == 150
    assert room_for(1_000_000, None) == DEFAULT_MAX
    assert room_for(1_000_000, 20_000) == 20_000
    assert room_for(resource.RLIM_INFINITY, None) == DEFAULT_MAX
