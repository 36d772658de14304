# Made from async_line.py by scripts/unasync.py: edit that file, then run the script.
"""Performs the requests of flows over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from windlass.client.exchange import Answer, Ask, Give, Got, Lost, More, Pause, Wish
from windlass.client.line import httpx, lost_of, options_of
from windlass.client.place import Place


class Http:
    """The connections to a server."""

    def __init__(self, place: Place, timeout_s: float, transport: Any) -> None:
        self._timeout_s = timeout_s
        self._http = httpx.Client(transport=transport, **options_of(place, timeout_s))

    def performer(self) -> HttpPerformer:
        """Return the performer of one flow."""
        return HttpPerformer(self._http, self._timeout_s)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class HttpPerformer:
    """Performs the requests of one flow; it has one stream open at most."""

    def __init__(self, http: httpx.Client, timeout_s: float) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._stream = ExitStack()
        self._chunks: Iterator[bytes] | None = None

    def __enter__(self) -> HttpPerformer:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def perform(self, wish: Wish) -> Got:
        """Perform one request of the flow and return its result."""
        match wish:
            case Pause(seconds):
                time.sleep(seconds)
            case Ask():
                return self._ask(wish)
            case More():
                try:
                    return b"" if self._chunks is None else next(self._chunks, b"")
                except httpx.TransportError as error:
                    return lost_of(error)
            case Give():
                pass  # `run` drives this flow and takes only its return value
        return None

    def _ask(self, ask: Ask) -> Answer | Lost:
        self._stream.close()
        self._chunks = None
        timeout = httpx.Timeout(self._timeout_s, read=ask.timeout_s or self._timeout_s)
        request = self._http.build_request(
            ask.method, ask.path, params=ask.query or None, headers=dict(ask.headers), content=ask.body, timeout=timeout
        )
        try:
            response = self._http.send(request, stream=ask.is_stream)
            if ask.is_stream and response.status_code == 200:
                self._stream.callback(response.close)
                self._chunks = response.iter_bytes()
                return Answer(200, dict(response.headers))
            if ask.is_stream:
                response.read()
        except httpx.TransportError as error:
            return lost_of(error)
        return Answer(response.status_code, dict(response.headers), response.content)
