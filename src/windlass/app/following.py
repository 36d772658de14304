"""The services of a served installation beside the engine's loops: the audit, webhook deliveries, and their sender.

Whether the installation is served may be known only after this process started: `up` starts the engine first, and a
worker may run before the first server. So this service asks the database now and then until it is served. An
installation without a server pays only for that query.
"""

from __future__ import annotations

import asyncio
import logging
import time
from importlib.util import find_spec

from windlass.app.entropy import spread
from windlass.app.first_key import SECRET_FILE, secret_of
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadInput, BadSetting, Unavailable
from windlass.engine import installation
from windlass.engine.loops.followers import Followers
from windlass.pure.service import Service, Services
from windlass.pure.webhook import parse_secret

# How often it asks the database, and how often it checks whether this process serves an API itself.
ASK_EVERY_S = 30.0
GLANCE_S = 0.5
log = logging.getLogger("windlass.engine")


class Following:
    """Follows the feed and sends webhooks, once the installation is served."""

    name = "followers"

    def __init__(self, windlass: Windlass, *, with_webhook_sender: bool = True) -> None:
        self._windlass = windlass
        self._with_webhook_sender = with_webhook_sender
        self._followers: Followers | None = None
        self._services = Services(windlass.services)
        self._receiver: tuple[str, bytes] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to ask whether the installation is served."""
        self._receiver = notice_receiver(self._windlass.settings) if self._with_webhook_sender else None
        self._task = asyncio.create_task(self._run(), name="windlass-following")

    async def stop(self) -> None:
        """End; another process repeats the unfinished work."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def alive(self) -> float | None:
        """Return the seconds since the last turn of the followers; None before they run."""
        return None if self._followers is None else self._followers.alive()

    def ready(self) -> bool:
        """Tell whether its task runs."""
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
        followers = windlass.followers()
        try:
            await followers.start()
            self._followers = followers
            webhook_sender = await _webhook_sender(windlass) if self._with_webhook_sender else None
            if webhook_sender is not None:
                await self._services.start(webhook_sender, is_late=True)
            if self._receiver is not None:
                await self._services.start(_approval_sender(windlass, self._receiver), is_late=True)
            await asyncio.Event().wait()
        finally:
            await self._services.stop()
            await followers.stop()

    async def _is_served(self) -> bool:
        try:
            return (await installation.read(self._windlass.db)).is_served
        except Unavailable:
            return False


async def _webhook_sender(windlass: Windlass) -> Service | None:
    """Return the webhook sender, if this process can open sealed secrets and has the packages that sending needs."""
    settings = windlass.settings
    if not await _knows_secret(windlass) or find_spec("httpcore") is None or find_spec("cryptography") is None:
        log.info("this process sends no webhooks: it needs the secret and the extra `service`")
        return None
    # Imported here, since only a process that sends webhooks needs them.
    from windlass.outbound.send import Sender
    from windlass.outbound.webhook_sender import WebhookSender
    from windlass.telemetry.meters import Meters

    sender = Sender(is_loopback_allowed=settings.webhook_loopback)
    return WebhookSender(
        windlass.db,
        secret_of(settings),
        sender,
        spread=spread,
        clock_s=time.monotonic,
        public_url=settings.public_url,
        has_tracebacks=settings.expose_tracebacks,
        on_result=windlass.observer.webhook if isinstance(windlass.observer, Meters) else None,
    )


def notice_receiver(settings: Settings) -> tuple[str, bytes] | None:
    """Return the address for notices of approvals and the secret that signs them, or None if there is no address."""
    if settings.approval_webhook is None:
        return None
    if settings.approval_webhook_secret is None:
        raise BadSetting(
            "approval_webhook is set without approval_webhook_secret, so its receiver could not trust the notices",
            remedy="Set both",
        )
    try:
        secret = parse_secret(settings.approval_webhook_secret)
    except BadInput as error:
        raise BadSetting(f"approval_webhook_secret: {error.message}", remedy=error.remedy) from None
    if find_spec("httpcore") is None:
        log.warning("this process sends no notices of approvals: it needs the extra `service`")
        return None
    return settings.approval_webhook, secret


def _approval_sender(windlass: Windlass, receiver: tuple[str, bytes]) -> Service:
    """Return the sender of approval notices."""
    from windlass.outbound.approval_sender import ApprovalSender, NoticeReceiver
    from windlass.outbound.send import Sender

    settings = windlass.settings
    return ApprovalSender(
        windlass.db,
        NoticeReceiver(*receiver),
        Sender(is_loopback_allowed=settings.webhook_loopback),
        spread=spread,
        clock_s=time.monotonic,
        public_url=settings.public_url,
    )


async def _knows_secret(windlass: Windlass) -> bool:
    """Tell whether this process has the servers' secret; another secret could open nothing."""
    settings = windlass.settings
    if not settings.secret and not (settings.home / SECRET_FILE).exists():
        return False
    return await installation.is_secret(windlass.db, secret_of(settings).digests("check", b""))
