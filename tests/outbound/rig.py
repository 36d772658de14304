"""Jobs with webhooks on the test's clock: ended, scheduled and sent by hand."""

from __future__ import annotations

import base64
import random
from typing import Any
from uuid import UUID

from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.access.secret import Secret
from windlass.core.outcome import Failure, Fault, Outcome
from windlass.engine.loops.duty import Done
from windlass.engine.loops.webhook_scheduler import WebhookScheduler
from windlass.engine.submit import Webhook
from windlass.outbound.send import Sender
from windlass.outbound.webhook_sender import Posts, WebhookSender, WebhookView, webhook_of
from windlass.pure.webhook import parse_secret
from windlass.store.database import Database

INSTALLATION = "the-installation's-secret-of-the-tests"
WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"a webhook's secret, of 32 bytes.").decode()
ONE = plan(task("a"))


class PatientScheduler(WebhookScheduler):
    """A webhook scheduler that waits until no other transaction can hide a commit from it."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._quiet = db

    async def run_once(self) -> Done:
        await undisturbed(self._quiet)
        return await super().run_once()


class Hooks:
    """The engine's rig, a webhook scheduler and webhook senders."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.secret = Secret.of([INSTALLATION])
        self.scheduler = PatientScheduler(rig.db)
        self.posts = Sender(is_loopback_allowed=True, within_s=1.0)
        self.seconds = 0.0

    def sender(self, posts: Posts | None = None, **given: Any) -> WebhookSender:
        return WebhookSender(
            self.rig.db,
            given.pop("secret", self.secret),
            posts or self.posts,
            spread=random.Random(7).random,
            clock_s=lambda: self.seconds,
            **given,
        )

    async def submit(self, url: str, **given: Any) -> UUID:
        """A job with a webhook."""
        webhook = Webhook(url, self.secret.seal(parse_secret(WEBHOOK_SECRET)))
        return await self.rig.submit(ONE, webhook=webhook, **{"correlation_id": "request-1", **given})

    async def ended(self, url: str, outcome: Outcome | None = None, **given: Any) -> UUID:
        """The same, with the job run to its end and the webhook due."""
        job = await self.submit(url, **given)
        await self.rig.run_one(outcome)
        assert (await self.scheduler.run_once()).count == 1
        return job

    async def many(self, urls: list[str], **given: Any) -> list[UUID]:
        """Many of them."""
        jobs = [await self.submit(url, **given) for url in urls]
        await self.rig.run_out()
        while (await self.scheduler.run_once()).count:
            pass
        return jobs

    async def view(self, job: UUID) -> WebhookView:
        return await webhook_of(self.rig.db, job)

    async def state(self, job: UUID) -> str:
        return (await self.view(job)).state


FAILED = Failure(Fault("broke", "it broke"), is_retryable=False)
