"""What a served installation needs beside the engine's loops: the audit, the word of webhooks, and who carries it.

Whether it is served may be known only after this process began (`up` begins with the engine, and a worker may be there
before the first server), so it is asked now and then until it is. An installation without a service pays that question.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from windlass.app.entropy import chance
from windlass.app.first_key import SECRET_FILE, secret_of
from windlass.app.windlass import Windlass
from windlass.core.errors import Unavailable
from windlass.engine import installation
from windlass.engine.loops.followers import Followers

# How often the database is asked, and how often this process looks whether it serves an API itself.
ASK_EVERY_S = 30.0
GLANCE_S = 0.5
log = logging.getLogger("windlass.engine")


class Following:
    """Follows the feed and carries webhooks, once there is something to follow for."""

    name = "followers"

    def __init__(self, windlass: Windlass, *, with_courier: bool = True) -> None:
        self._windlass = windlass
        self._with_courier = with_courier
        self._followers: Followers | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to ask."""
        self._task = asyncio.create_task(self._run(), name="windlass-following")

    async def stop(self) -> None:
        """End; what was under way is done again by whoever goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def alive(self) -> float | None:
        """How many seconds ago it had a turn; None while there is nothing to follow for."""
        return None if self._followers is None else self._followers.alive()

    def ready(self) -> bool:
        """Whether it goes on."""
        return self._task is not None and not self._task.done()

    async def _run(self) -> None:
        windlass = self._windlass
        asked_s = float("-inf")
        while not windlass.is_served:
            if time.monotonic() - asked_s >= ASK_EVERY_S:
                asked_s = time.monotonic()
                windlass.is_served = await self._is_served()
            else:
                await asyncio.sleep(GLANCE_S)
        self._followers = windlass.followers()
        await self._followers.start()
        try:
            async with _carrying(windlass) if self._with_courier else contextlib.nullcontext():
                await asyncio.Event().wait()
        finally:
            await self._followers.stop()

    async def _is_served(self) -> bool:
        try:
            return (await installation.read(self._windlass.db)).is_served
        except Unavailable:
            return False


@asynccontextmanager
async def _carrying(windlass: Windlass) -> AsyncIterator[None]:
    """A courier, if this process can open what was sealed and has what it needs to send."""
    settings = windlass.settings
    if not await _knows_secret(windlass) or find_spec("httpcore") is None or find_spec("cryptography") is None:
        log.info("no webhooks are sent from here: that takes the secret and the extra `service`")
        yield
        return
    # Only where webhooks are sent.
    from windlass.outbound.courier import Courier
    from windlass.outbound.send import Sender
    from windlass.telemetry.meters import Meters

    sender = Sender(is_loopback_allowed=settings.webhook_loopback)
    courier = Courier(
        windlass.db,
        secret_of(settings),
        sender,
        chance=chance,
        clock_s=time.monotonic,
        public_url=settings.public_url,
        has_tracebacks=settings.expose_tracebacks,
        on_result=windlass.observer.webhook if isinstance(windlass.observer, Meters) else None,
    )
    await courier.start()
    try:
        yield
    finally:
        await courier.stop()


async def _knows_secret(windlass: Windlass) -> bool:
    """Whether this process has the secret that the servers have; with another it could open nothing."""
    settings = windlass.settings
    if not settings.secret and not (settings.home / SECRET_FILE).exists():
        return False
    return await installation.is_secret(windlass.db, secret_of(settings).digests("check", b""))
