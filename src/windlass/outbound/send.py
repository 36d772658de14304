"""Sends one guarded request: only to the checked host, within limits of time and size.

Redirects are not followed, the environment's proxies are not used, and no cookie is kept. Each request has its own
connection, so no request goes out unchecked. Of the receiver's answer only the status is used.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import httpcore

from windlass.core.errors import BadUrl, Broken, Unavailable
from windlass.outbound.dial import CONNECT_WITHIN_S, GuardedBackend, Resolve
from windlass.outbound.resolver import SystemResolver
from windlass.pure.address import URL_LENGTH_MAX, Target, check_target

SEND_WITHIN_S = 10.0
ANSWER_MAX_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}
# Printable, no space; and no backslash, which some parsers take for a slash and others do not.
_URL_TEXT = re.compile(r"[!-\[\]-~]+")

log = logging.getLogger("windlass.outbound")


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a request: a status, or the code of the error before there was one."""

    status: int | None
    fault: str | None
    retry_after_s: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class _Request:
    target: Target
    path: str


def _split(url: str) -> _Request:
    """Split the URL as it will be sent. No later code parses it again, so it cannot be read in two ways."""
    if len(url) > URL_LENGTH_MAX or not _URL_TEXT.fullmatch(url):
        raise BadUrl(f"a webhook's URL has 1 to {URL_LENGTH_MAX} printable ASCII characters and no backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadUrl("a webhook's URL cannot be read") from None
    if port is None:
        port = _PORTS.get(parts.scheme, 0)
    target = Target(parts.scheme, parts.hostname or "", port, "@" in parts.netloc)
    return _Request(target, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


class Sender:
    """Posts to addresses that users name."""

    def __init__(
        self,
        *,
        is_loopback_allowed: bool = False,
        resolve: Resolve | None = None,
        resolver: SystemResolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        within_s: float = SEND_WITHIN_S,
    ) -> None:
        self._is_loopback_allowed = is_loopback_allowed
        self._resolve = resolve
        self._system = resolver or SystemResolver()
        self._ssl = ssl_context or ssl.create_default_context()
        self._within_s = within_s

    async def check(self, url: str, *, caller: str = "") -> None:
        """Check a URL when it is saved. Its addresses may change, so every request checks again.

        Raises Unavailable when its name is not resolved in time. Look-ups use the caller's share of threads.
        """
        request = self._checked(url)
        await self._backend(caller).addresses(request.target.host, request.target.port)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, caller: str = "") -> Sent:
        """Send it once. Every error becomes a result, not an exception."""
        begun_s = time.monotonic()
        status, fault, retry_after_s = None, None, None
        try:
            request = self._checked(url)
            async with asyncio.timeout(self._within_s):
                status, retry_after_s = await self._exchange(request, body, headers, self._backend(caller))
        except BadUrl:
            fault = BadUrl.code
        except Unavailable:
            fault = "not_resolved"
        except (TimeoutError, httpcore.TimeoutException):
            fault = "timeout"
        except httpcore.ConnectError as error:
            fault = "bad_certificate" if isinstance(error.__cause__, ssl.SSLError) else "not_connected"
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
            fault = "bad_answer"
        except Exception:
            # A request that we cannot handle must not be retried for ever: it counts as a failure like any other.
            log.exception("a webhook could not be sent, because of an internal error")
            fault = Broken.code
        return Sent(status, fault, retry_after_s, time.monotonic() - begun_s)

    def _backend(self, caller: str) -> GuardedBackend:
        resolve = self._resolve or partial(self._system.resolve, caller=caller)
        return GuardedBackend(resolve, is_loopback_allowed=self._is_loopback_allowed)

    def _checked(self, url: str) -> _Request:
        request = _split(url)
        check_target(request.target, is_loopback_allowed=self._is_loopback_allowed)
        return request

    async def _exchange(
        self, request: _Request, body: bytes, headers: Mapping[str, str], backend: GuardedBackend
    ) -> tuple[int, float | None]:
        scheme, host = request.target.scheme.encode(), request.target.host
        port = request.target.port
        url = httpcore.URL(scheme=scheme, host=host.encode(), port=port, target=request.path.encode())
        name = f"[{host}]" if ":" in host else host
        sent = {
            "Host": name if port == _PORTS[request.target.scheme] else f"{name}:{port}",
            "Connection": "close",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **headers,
        }
        timeout = {"connect": CONNECT_WITHIN_S, "read": self._within_s, "write": self._within_s}
        connection = httpcore.AsyncHTTPConnection(
            origin=url.origin, ssl_context=self._ssl, network_backend=backend, retries=0
        )
        async with (
            connection,
            connection.stream(
                "POST", url, headers=list(sent.items()), content=body, extensions={"timeout": timeout}
            ) as answer,
        ):
            retry_after_s = _retry_after_s(answer.headers)
            await _throw_away(answer, self._within_s)
            return answer.status, retry_after_s


async def _throw_away(answer: httpcore.Response, within_s: float) -> None:
    """Let the receiver finish, if its answer is quick and short. Its status counts in any case."""
    size = 0
    try:
        async with asyncio.timeout(within_s / 4):
            async for chunk in answer.aiter_stream():
                size += len(chunk)
                if size > ANSWER_MAX_BYTES:
                    return
    except (TimeoutError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError):
        return


def _retry_after_s(headers: list[tuple[bytes, bytes]]) -> float | None:
    """Return Retry-After in seconds. The form with a date is ignored, because two clocks would have to agree."""
    for name, value in headers:
        if name.lower() == b"retry-after":
            return float(value) if value.isdigit() and len(value) <= 9 else None
    return None
