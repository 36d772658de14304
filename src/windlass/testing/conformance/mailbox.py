"""Where the webhooks of a test arrive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windlass.providers.adapter import ProviderAdapter, WebhookNews
from windlass.testing.fake_provider.wire import Reply, Request, reply, serve

WITHIN_S = 30.0


class Mailbox:
    """Where webhooks arrive."""

    def __init__(self, status: int = 200) -> None:
        self.url = ""
        self._status = status
        self._letters: asyncio.Queue[Request] = asyncio.Queue()

    async def take(self, request: Request) -> Reply:
        """One arrived."""
        self._letters.put_nowait(request)
        return reply({"status": "applied"}, self._status)

    @property
    def count(self) -> int:
        """How many wait to be read."""
        return self._letters.qsize()

    async def next(self) -> Request:
        """The next one."""
        async with asyncio.timeout(WITHIN_S):
            return await self._letters.get()

    async def end_of(self, adapter: ProviderAdapter) -> WebhookNews:
        """The next one that tells an end, verified and read."""
        while True:
            letter = await self.next()
            await adapter.verify_webhook(letter.headers, letter.body, time.time())
            news = adapter.parse_webhook(letter.headers, letter.body, letter.query)
            if news.needs_look or news.said.status.is_terminal:
                return news


@asynccontextmanager
async def mailbox(status: int = 200) -> AsyncIterator[Mailbox]:
    """A server that keeps what it is asked, and answers this."""
    mail = Mailbox(status)
    server, open_ones = await serve(mail.take, "127.0.0.1", 0)
    mail.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/webhooks/test"
    try:
        yield mail
    finally:
        server.close()
        for connection in list(open_ones):
            connection.hang_up()
