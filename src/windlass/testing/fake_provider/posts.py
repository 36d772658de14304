"""Posts webhooks over persistent connections, so that a load measurement does not measure the sender."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

CONNECTIONS_MAX = 32
WITHIN_S = 10.0

_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Poster:
    """Keeps a few connections to each receiver."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, str, int], list[_Line]] = {}
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post, and return the status of the receiver's answer, 0 if there was none."""
        async with self._places:
            try:
                async with asyncio.timeout(WITHIN_S):
                    return await self._post(url, body, headers)
            except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
                return 0

    def close(self) -> None:
        """Close all connections."""
        for lines in self._idle.values():
            for _, writer in lines:
                writer.close()
        self._idle.clear()

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        place = (parts.scheme, parts.hostname or "", port)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [f"POST {target} HTTP/1.1", f"host: {parts.netloc}", f"content-length: {len(body)}"]
        lines += ["content-type: application/json", *(f"{name}: {value}" for name, value in headers.items())]
        request = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
        idle = self._idle.setdefault(place, [])
        while idle:
            line = idle.pop()
            try:
                return await self._exchange(line, request, idle)
            except (OSError, asyncio.IncompleteReadError):
                # The receiver most likely closed the idle connection; a new connection will tell.
                line[1].close()
        context = ssl.create_default_context() if parts.scheme == "https" else None
        line = await asyncio.open_connection(place[1], port, ssl=context)
        try:
            return await self._exchange(line, request, idle)
        except BaseException:
            line[1].close()
            raise

    async def _exchange(self, line: _Line, request: bytes, idle: list[_Line]) -> int:
        reader, writer = line
        writer.write(request)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split(" ", 2)[1])
        fields = dict(text.split(":", 1) for text in head.split("\r\n")[1:] if ":" in text)
        length = fields.get("content-length", "").strip()
        if length.isdigit():
            await reader.readexactly(int(length))
        if (length.isdigit() or status == 204) and "close" not in fields.get("connection", ""):
            idle.append(line)
        else:
            writer.close()
        return status
