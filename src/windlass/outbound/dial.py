"""Opens connections for URLs that users name. It resolves a name once, and dials only the checked addresses.

    name ─► resolve ─► every address is checked ─► the first that answers is dialled, by address
                            │ one is not public
                            ▼
                          BadUrl, and no address was dialled

A separate check would resolve the name once, and the connection would resolve it again. Between the two, its owner can
change the answer (DNS rebinding). Here there is one answer. TLS and the Host header still use the name, because the
layers above have it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

import httpcore

from windlass.core.errors import BadUrl
from windlass.outbound.resolver import not_resolved
from windlass.pure.address import may_dial, refusal

RESOLVE_WITHIN_S = 5.0
CONNECT_WITHIN_S = 3.0
# A name may have any number of addresses. All are checked, but only this many dialled.
DIALS_MAX = 3

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """The network as a webhook may see it."""

    def __init__(self, resolve: Resolve, *, is_loopback_allowed: bool = False) -> None:
        self._resolve = resolve
        self._is_loopback_allowed = is_loopback_allowed
        self._plain = httpcore.AnyIOBackend()

    async def addresses(self, host: str, port: int) -> list[str]:
        """Resolve a name and check every address.

        Raises BadUrl, also for a name that does not exist; Unavailable when the name's servers do not answer.
        """
        try:
            async with asyncio.timeout(RESOLVE_WITHIN_S):
                found = await self._resolve(host, port)
        except TimeoutError:
            raise not_resolved() from None
        except (OSError, UnicodeError, ValueError) as error:
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
                raise not_resolved() from None
            raise refusal() from None
        may = partial(may_dial, port=port, is_loopback_allowed=self._is_loopback_allowed)
        if not found or not all(may(address) for address in found):
            raise refusal()
        return found

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the port's own parameter
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address that answers."""
        failed: Exception = httpcore.ConnectError("no address answered")
        for address in (await self.addresses(host, port))[:DIALS_MAX]:
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  # the port's own parameter
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse every local socket."""
        raise BadUrl("a webhook does not go to a local socket")

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries of a connection; there is only one try."""
        await asyncio.sleep(seconds)
