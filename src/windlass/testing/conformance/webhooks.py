"""Tests of webhooks, genuine and forged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from windlass.core.errors import BadSignature
from windlass.core.external import ProviderStatus
from windlass.providers.config import Hidden, WebhookConfig
from windlass.providers.errors import ProviderError
from windlass.testing.conformance.stage import Stage, external_id
from windlass.testing.fake_provider import FakeProvider, Fault

# Signatures are valid for 300 s, since a webhook may be delayed.
OLD_S = 400.0


class WebhookTests(Stage):
    """Webhooks are verified and parsed, and tell the same as a poll."""

    def test_a_webhook_tells_what_a_poll_tells(self, run: Any, fake: FakeProvider) -> None:
        """Webhook and poll report the same work, the same status and the same output."""
        self._needs_webhooks()

        async def test() -> None:
            async with self.made(fake) as adapter, self._mailbox(fake) as mail:
                request = self.request(webhook_url=mail.url)
                id = external_id(await adapter.start_job(request))
                got = await mail.end_of(adapter)
                assert got.external_id == id
                assert got.key in (None, request.key)
                polled = await adapter.get_job_status(id)
                said = await adapter.get_job_status(id) if got.needs_look else got.said
                assert (said.status, said.output) == (polled.status, polled.output)
                assert said.status is ProviderStatus.SUCCEEDED

        run(test())

    def test_a_webhook_tells_of_a_failure(self, run: Any, fake: FakeProvider) -> None:
        """The webhook also gives the reason."""
        self._needs_webhooks()

        async def test() -> None:
            await fake.behave(outcome="failed", error="the paint is dry")
            async with self.made(fake) as adapter, self._mailbox(fake) as mail:
                id = external_id(await adapter.start_job(self.request(webhook_url=mail.url)))
                got = await mail.end_of(adapter)
                said = await adapter.get_job_status(id) if got.needs_look else got.said
                assert said.status is ProviderStatus.FAILED
                assert said.fault is not None and "the paint is dry" in said.fault.message

        run(test())

    def test_a_webhook_that_comes_twice_has_one_id(self, run: Any, fake: FakeProvider) -> None:
        """The id identifies the duplicate; two messages have two ids."""
        self._needs_webhooks()

        async def test() -> None:
            await fake.fail(Fault("webhook", "double"))
            async with self.made(fake) as adapter, self._mailbox(fake) as mail:
                for _ in range(2):
                    await adapter.start_job(self.request(webhook_url=mail.url))
                ids: dict[str, list[str]] = {}
                while [len(found) for found in ids.values()] != [2, 2]:
                    letter = await mail.next()
                    id = await adapter.verify_webhook(letter.headers, letter.body, time.time())
                    news = adapter.parse_webhook(letter.headers, letter.body, letter.query)
                    if news.needs_look or news.said.status.is_terminal:
                        ids.setdefault(str(news.external_id), []).append(id)
                assert all(len(set(found)) == 1 for found in ids.values())
                assert len({found[0] for found in ids.values()}) == 2

        run(test())

    def test_a_webhook_that_is_not_signed_is_refused(self, run: Any, fake: FakeProvider) -> None:
        """A webhook that was changed, is too old, comes from the future, or has no signature is refused too."""
        self._needs_webhooks()

        async def test() -> None:
            async with self.made(fake) as adapter, self._mailbox(fake) as mail:
                await adapter.start_job(self.request(webhook_url=mail.url))
                letter = await mail.next()
                now_s = time.time()
                assert await adapter.verify_webhook(letter.headers, letter.body, now_s)
                plain = {name: text for name, text in letter.headers.items() if "sig" not in name}
                bad: list[tuple[Mapping[str, str], bytes, float]] = [
                    (plain, letter.body, now_s),
                    ({}, letter.body, now_s),
                    (letter.headers, letter.body + b" ", now_s),
                    (letter.headers, letter.body.replace(b"{", b"[", 1), now_s),
                ]
                if self.webhook_profile in (None, "standard", "stripe"):
                    bad += [(letter.headers, letter.body, now_s + OLD_S), (letter.headers, letter.body, now_s - OLD_S)]
                for headers, body, at_s in bad:
                    with pytest.raises(BadSignature):
                        await adapter.verify_webhook(headers, body, at_s)

        run(test())

    def test_a_webhook_by_another_secret_is_refused(self, run: Any, fake: FakeProvider) -> None:
        """With several secrets, any of them is accepted."""
        self._needs_webhooks()
        if self.has_fal_keys:
            pytest.skip("there is no secret")

        async def test() -> None:
            other = Hidden("whsec_" + "b3RoZXItc2VjcmV0LWZvci10ZXN0cy1vbmx5")
            wrong = WebhookConfig(self.webhook_profile, "SECRETS", (other,))
            both = WebhookConfig(self.webhook_profile, "SECRETS", (other, Hidden(fake.secret)))
            async with (
                self.made(fake, webhook=wrong) as stranger,
                self.made(fake, webhook=both) as adapter,
                self._mailbox(fake) as mail,
            ):
                await adapter.start_job(self.request(webhook_url=mail.url))
                letter = await mail.next()
                assert await adapter.verify_webhook(letter.headers, letter.body, time.time())
                with pytest.raises(BadSignature):
                    await stranger.verify_webhook(letter.headers, letter.body, time.time())

        run(test())

    @pytest.mark.parametrize("body", [b"", b"no json", b"[1,2]", b"{}", b'{"id": 7}', b"\xff\xfe", b'"text"'])
    def test_a_webhook_that_cannot_be_read_says_so(self, run: Any, fake: FakeProvider, body: bytes) -> None:
        """The adapter raises ProviderError, or returns news that end nothing."""
        self._needs_webhooks()

        async def test() -> None:
            async with self.made(fake) as adapter:
                try:
                    news = adapter.parse_webhook({}, body, {})
                except ProviderError:
                    return
                assert not news.said.status.is_terminal

        run(test())
