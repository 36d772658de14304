"""A server that receives the webhooks of a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windlass.providers.adapter import ProviderAdapter, WebhookNews
from windlass.testing.fake_provider.wire import Reply, Request, reply, serve

WITHIN_S = 30.0


class Mailbox:
    """Keeps received webhooks until the test reads them."""

    def __init__(self, status: int = 200) -> None:
        self.url = ""
        self._status = status
        self._letters: asyncio.Queue[Request] = asyncio.Queue()

    async def take(self, request: Request) -> Reply:
        """Receive a webhook."""
        self._letters.put_nowait(request)
        return reply({"status": "applied"}, self._status)

    @property
    def count(self) -> int:
        """The number of unread webhooks."""
        return self._letters.qsize()

    async def next(self) -> Request:
        """Return the next webhook."""
        async with asyncio.timeout(WITHIN_S):
            return await self._letters.get()

    async def end_of(self, adapter: ProviderAdapter) -> WebhookNews:
        """Return the next webhook that reports an end, verified and parsed."""
        while True:
            letter = await self.next()
            await adapter.verify_webhook(letter.headers, letter.body, time.time())
            news = adapter.parse_webhook(letter.headers, letter.body, letter.query)
            if news.needs_look or news.said.status.is_terminal:
                return news


@asynccontextmanager
async def mailbox(status: int = 200) -> AsyncIterator[Mailbox]:
    """Run a server that keeps its requests, and answers each with this status."""
    mail = Mailbox(status)
    server, open_ones = await serve(mail.take, "127.0.0.1", 0)
    mail.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/webhooks/test"
    try:
        yield mail
    finally:
        server.close()
        for connection in list(open_ones):
            connection.hang_up()
