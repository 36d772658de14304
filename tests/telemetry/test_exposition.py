"""Where metrics are read: the listener, and looks at the database that neither pile up nor stand in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry, Counter

from windlass.core.errors import BadSetting
from windlass.pure.service import Services
from windlass.telemetry import exposition as room
from windlass.telemetry.exposition import LOOK_EVERY_S, Exposition, MetricsServer


@asynccontextmanager
async def exposed(exposition: Exposition, address: str) -> AsyncIterator[str]:
    services = Services()
    try:
        server = await services.start(MetricsServer(exposition, address))
        assert services.states() == {"metrics_listen": "ok"}
        yield server.url
    finally:
        await services.stop()


@pytest.fixture
def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    Counter("things", "Things.", registry=made).inc(3)
    return made


async def asked(url: str, request: bytes) -> bytes:
    host, port = url.removeprefix("http://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_line", "status", "has"),
    [
        (b"GET /metrics HTTP/1.1", b"200", b"things_total 3.0"),
        (b"GET /metrics?name=x HTTP/1.0", b"200", b"things_total 3.0"),
        (b"GET /healthz HTTP/1.1", b"200", b'"ok"'),
        (b"GET /else HTTP/1.1", b"404", b"/metrics"),
        (b"POST /metrics HTTP/1.1", b"405", b"GET"),
        (b"\xff\x00\xfe", b"405", b"GET"),
    ],
)
async def test_the_listener_answers(
    registry: CollectorRegistry, request_line: bytes, status: bytes, has: bytes
) -> None:
    async with exposed(Exposition(registry), "127.0.0.1:0") as url:
        answer = await asked(url, request_line + b"\r\nHost: x\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split()[1] == status
        assert has in body
        assert f"Content-Length: {len(body)}".encode() in head


async def test_a_series_is_shown_once_without_its_birthday(registry: CollectorRegistry) -> None:
    assert b"_created" not in await Exposition(registry).text()


async def test_a_head_without_end_is_cut_off_and_others_are_served(registry: CollectorRegistry) -> None:
    async with exposed(Exposition(registry), "127.0.0.1:0") as url:
        with pytest.raises(OSError):
            # It is either cut off while it is read or before it was written.
            if await asked(url, b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 10_000) == b"":
                raise OSError
        assert b"things_total" in await asked(url, b"GET /metrics HTTP/1.1\r\n\r\n")


async def test_a_client_that_says_nothing_is_not_waited_for(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "REQUEST_WITHIN_S", 0.05)
    async with exposed(Exposition(registry), "127.0.0.1:0") as url:
        with pytest.raises((OSError, AssertionError)):
            assert await asked(url, b"GET ") != b""


async def test_an_address_that_is_taken_is_a_setting_to_correct(registry: CollectorRegistry) -> None:
    async with exposed(Exposition(registry), "127.0.0.1:0") as url:
        for address in (url.removeprefix("http://"), "nonsense", "127.0.0.1:x"):
            with pytest.raises(BadSetting, match="metrics cannot be served"):
                async with exposed(Exposition(registry), address):
                    pass


async def test_however_many_ask_the_database_is_asked_once_a_second(registry: CollectorRegistry) -> None:
    looks, now = 0, 100.0

    async def look() -> None:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)

    exposition = Exposition(registry, look, lambda: now)
    await asyncio.gather(*(exposition.text() for _ in range(50)))
    assert looks == 1
    now += LOOK_EVERY_S / 2
    await exposition.text()
    assert looks == 1
    now += LOOK_EVERY_S
    await exposition.text()
    assert looks == 2


async def test_a_database_that_hangs_or_fails_leaves_the_rest_readable(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "LOOK_WITHIN_S", 0.02)
    hangs = Exposition(registry, asyncio.Event().wait)  # type: ignore[arg-type]
    assert b"things_total 3.0" in await hangs.text()
    await hangs.close()

    async def fails() -> None:
        raise ConnectionError

    assert b"things_total 3.0" in await Exposition(registry, fails).text()
