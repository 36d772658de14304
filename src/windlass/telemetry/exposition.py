"""The text of `/metrics`, and a separate listener for processes without an API.

Metrics from the database are read on a scrape, at most once in LOOK_EVERY_S seconds for all scrapers. If the database
does not answer, the last values are shown: a process must report its state just then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from windlass.core.errors import BadSetting

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LOOK_EVERY_S = 1.0
LOOK_WITHIN_S = 2.0
REQUEST_WITHIN_S = 5.0
REQUEST_MAX_BYTES = 8 * 1024

_log = logging.getLogger("windlass.metrics")


class _Plain:
    """A registry without the creation time of each series, which would double the output."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


class Exposition:
    """The metrics of this process as text. `look` updates the metrics that are not counted in this process."""

    def __init__(
        self,
        registry: CollectorRegistry,
        look: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = _Plain(registry)
        self._look = look
        self._clock = clock
        self._looked_s = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def text(self) -> bytes:
        """Return all metrics for a scrape. Takes at most LOOK_WITHIN_S."""
        if self._look is not None:
            if self._looking is None and self._clock() - self._looked_s >= LOOK_EVERY_S:
                self._looking = asyncio.create_task(self._look_once(self._look), name="windlass-gauges")
            if self._looking is not None:
                await asyncio.wait([self._looking], timeout=LOOK_WITHIN_S)
        return generate_latest(self._registry)

    async def close(self) -> None:
        """Stop reading."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look_once(self, look: Callable[[], Awaitable[None]]) -> None:
        try:
            await look()
        except Exception as error:
            _log.warning("metrics from the database are out of date: %s", error)
        finally:
            self._looked_s = self._clock()
            self._looking = None


class MetricsServer:
    """Serves `GET /metrics` and `GET /healthz` on a separate address, which is `url` once it has started."""

    name = "metrics_listen"

    def __init__(self, exposition: Exposition, address: str) -> None:
        self._exposition = exposition
        self._address = address
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        """Bind the port."""
        host, _, port = self._address.rpartition(":")
        try:
            self._server = await asyncio.start_server(
                lambda reader, writer: _serve(self._exposition, reader, writer),
                host.strip("[]") or "127.0.0.1",
                int(port),
                limit=REQUEST_MAX_BYTES,
            )
        except (OSError, ValueError) as error:
            raise BadSetting(
                f"metrics cannot be served at {self._address!r}: {error}",
                remedy="Set metrics_listen to host:port with a port that is free, such as 127.0.0.1:9464",
            ) from error
        taken = self._server.sockets[0].getsockname()
        self.url = f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"

    async def stop(self) -> None:
        """Release the port and stop reading."""
        if self._server is not None:
            self._server.close()
        await self._exposition.close()

    def alive(self) -> float | None:
        """Return None: it acts only on requests."""
        return None

    def ready(self) -> bool:
        """Whether it accepts requests."""
        return self._server is not None and self._server.is_serving()


async def _serve(exposition: Exposition, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request and close the connection."""
    try:
        async with asyncio.timeout(REQUEST_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
            status, kind, body = await _answer(exposition, head)
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                "Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.transport.abort()
    except Exception:
        _log.exception("a request for metrics failed")
        writer.transport.abort()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _answer(exposition: Exposition, head: bytes) -> tuple[str, str, bytes]:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method != b"GET":
        return "405 Method Not Allowed", "text/plain", b"only GET\n"
    match path:
        case b"/metrics":
            return "200 OK", CONTENT_TYPE, await exposition.text()
        case b"/healthz":
            return "200 OK", "application/json", b'{"status":"ok"}'
        case _:
            return "404 Not Found", "text/plain", b"ask for /metrics\n"
