"""Performs the requests of flows over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from windlass.client.exchange import Answer, Ask, Give, Got, Lost, More, Pause, Wish
from windlass.client.line import httpx, lost_of, options_of
from windlass.client.place import Place


class AsyncHttp:
    """The connections to a server."""

    def __init__(self, place: Place, timeout_s: float, transport: Any) -> None:
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(transport=transport, **options_of(place, timeout_s))

    def performer(self) -> AsyncHttpPerformer:
        """Return the performer of one flow."""
        return AsyncHttpPerformer(self._http, self._timeout_s)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class AsyncHttpPerformer:
    """Performs the requests of one flow; it has one stream open at most."""

    def __init__(self, http: httpx.AsyncClient, timeout_s: float) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._stream = AsyncExitStack()
        self._chunks: AsyncIterator[bytes] | None = None

    async def __aenter__(self) -> AsyncHttpPerformer:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.aclose()

    async def perform(self, wish: Wish) -> Got:
        """Perform one request of the flow and return its result."""
        match wish:
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Ask():
                return await self._ask(wish)
            case More():
                try:
                    return b"" if self._chunks is None else await anext(self._chunks, b"")
                except httpx.TransportError as error:
                    return lost_of(error)
            case Give():
                pass  # `run` drives this flow and takes only its return value
        return None

    async def _ask(self, ask: Ask) -> Answer | Lost:
        await self._stream.aclose()
        self._chunks = None
        timeout = httpx.Timeout(self._timeout_s, read=ask.timeout_s or self._timeout_s)
        request = self._http.build_request(
            ask.method, ask.path, params=ask.query or None, headers=dict(ask.headers), content=ask.body, timeout=timeout
        )
        try:
            response = await self._http.send(request, stream=ask.is_stream)
            if ask.is_stream and response.status_code == 200:
                self._stream.push_async_callback(response.aclose)
                self._chunks = response.aiter_bytes()
                return Answer(200, dict(response.headers))
            if ask.is_stream:
                await response.aread()
        except httpx.TransportError as error:
            return lost_of(error)
        return Answer(response.status_code, dict(response.headers), response.content)
