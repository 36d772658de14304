"""Tests of an adapter without failures: work, keys and cancelling."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from windlass.core.external import ProviderStatus
from windlass.providers.adapter import Started
from windlass.providers.errors import ProviderError
from windlass.testing.conformance.mailbox import mailbox
from windlass.testing.conformance.stage import Stage, ended, external_id
from windlass.testing.fake_provider import FakeProvider, Fault


class WorkTests(Stage):
    """Work from its start to its end."""

    def test_work_is_begun_and_ends(self, run: Any, fake: FakeProvider) -> None:
        """Work starts, is polled, and ends with a JSON output and a decimal cost."""

        async def test() -> None:
            async with self.made(fake) as adapter:
                said = await ended(adapter, await adapter.start_job(self.request()))
                assert said.status is ProviderStatus.SUCCEEDED
                assert said.output is not None
                json.loads(said.output)
                assert said.cost is not None and said.cost.provider == self.protocol
                assert Decimal(said.cost.amount) >= 0

        run(test())

    def test_work_that_runs_has_not_ended(self, run: Any, fake: FakeProvider) -> None:
        """Every poll of running work reports that it runs."""
        self._needs_polling()

        async def test() -> None:
            await fake.behave(seconds=None)
            async with self.made(fake) as adapter:
                id = external_id(await adapter.start_job(self.request()))
                for _ in range(3):
                    assert (await adapter.get_job_status(id)).status in (ProviderStatus.QUEUED, ProviderStatus.RUNNING)
                await fake.finish()
                assert (await adapter.get_job_status(id)).status is ProviderStatus.SUCCEEDED

        run(test())

    def test_work_that_fails_says_why(self, run: Any, fake: FakeProvider) -> None:
        """The failure has a readable message and a code."""

        async def test() -> None:
            await fake.behave(outcome="failed", error="the paint is dry")
            async with self.made(fake) as adapter:
                try:
                    said = await ended(adapter, await adapter.start_job(self.request()))
                except ProviderError as error:
                    assert self.is_sync and not error.is_retryable and "the paint is dry" in error.message
                    return
                assert said.status is ProviderStatus.FAILED
                assert said.fault is not None and "the paint is dry" in said.fault.message and said.fault.code

        run(test())

    def test_work_that_is_not_known_has_not_failed(self, run: Any, fake: FakeProvider) -> None:
        """UNKNOWN ends nothing, and unknown work needs no cancelling."""
        self._needs_polling()

        async def test() -> None:
            async with self.made(fake) as adapter:
                id = external_id(await adapter.start_job(self.request()))
                other = id[:-4] + ("0000" if not id.endswith("0000") else "1111")
                assert (await adapter.get_job_status(other)).status is ProviderStatus.UNKNOWN
                if adapter.can_cancel:
                    assert await adapter.cancel_job(other) is ProviderStatus.UNKNOWN

        run(test())

    def test_an_id_leads_nowhere_else(self, run: Any, fake: FakeProvider) -> None:
        """Any text in an external id stays a part of a URL below the provider's base URL."""
        self._needs_polling()

        async def test() -> None:
            async with mailbox(404) as mail, self.made(fake, base_url=mail.url) as adapter:
                base = urlsplit(mail.url).path
                for id in (
                    "../../admin",
                    "x/../../../admin",
                    "a#../b",
                    "a/b/c#../../x",
                    "?a=b",
                    "a b\r\nx: y",
                    "a/b#c?d",
                ):
                    try:
                        assert (await adapter.get_job_status(id)).status is ProviderStatus.UNKNOWN, id
                    except ProviderError:
                        continue
                while mail.count:
                    target = (await mail.next()).target
                    assert target.startswith(f"{base}/") and "/../" not in target and "?a=b" not in target
                    assert "?d" not in target and "\n" not in target

        run(test())

    # Keys

    def test_the_same_key_is_the_same_work(self, run: Any, fake: FakeProvider) -> None:
        """This holds if the provider honours keys. The key is sent in any case."""

        async def test() -> None:
            await fake.behave(seconds=None)
            request = self.request()
            async with self.made(fake) as adapter:
                first = await adapter.start_job(request)
                if not adapter.honours_keys:
                    return
                assert (await adapter.start_job(request)).external_id == first.external_id
                assert fake.accepted()[request.key] == 1

        run(test())

    def test_work_whose_answer_was_lost_is_found_again(self, run: Any, fake: FakeProvider) -> None:
        """The key finds it, if the provider honours keys or lists its work; the provider has one piece of work in the
        end.
        """
        self._needs_polling()

        async def test() -> None:
            await fake.behave(seconds=None)
            request = self.request()
            async with self.made(fake) as adapter:
                if not adapter.honours_keys and not adapter.can_find:
                    pytest.skip("this provider can do neither")
                await fake.fail(Fault("start", "lose_after", times=1))
                with pytest.raises(ProviderError) as caught:
                    await adapter.start_job(request)
                assert caught.value.is_ambiguous and caught.value.is_retryable
                id = await adapter.find_job(request.key) if adapter.can_find else None
                if id is None:
                    assert adapter.honours_keys
                    id = external_id(await adapter.start_job(request))
                assert (await adapter.get_job_status(id)).status in (ProviderStatus.QUEUED, ProviderStatus.RUNNING)
                assert len(fake.entries("accepted")) - self._accepted_before(fake, request.key) == 1

        run(test())

    def test_nothing_is_found_for_a_key_that_was_never_used(self, run: Any, fake: FakeProvider) -> None:
        """Other work does not match."""

        async def test() -> None:
            async with self.made(fake) as adapter:
                if not adapter.can_find:
                    pytest.skip("this provider cannot look work up")
                await adapter.start_job(self.request())
                assert await adapter.find_job(f"wl-{uuid4()}-0-1") is None

        run(test())

    def test_work_is_listed(self, run: Any, fake: FakeProvider) -> None:
        """Listing since a moment returns the work started since then, and no older work."""
        self._needs_polling()

        async def test() -> None:
            async with self.made(fake) as adapter:
                if not adapter.can_list:
                    pytest.skip("this provider cannot list its work")
                ids = {external_id(await adapter.start_job(self.request())) for _ in range(3)}
                now = datetime.now(UTC)
                listed = {one.external_id for one in await adapter.list_jobs(now - timedelta(minutes=5))}
                assert ids <= listed
                assert not ids & {one.external_id for one in await adapter.list_jobs(now + timedelta(minutes=5))}

        run(test())

    # Cancelling

    def test_work_is_cancelled_once_or_more_often(self, run: Any, fake: FakeProvider) -> None:
        """Afterwards the work does not run, and cancelling again gives the same answer."""
        self._needs_polling()

        async def test() -> None:
            await fake.behave(seconds=None)
            async with self.made(fake) as adapter:
                if not adapter.can_cancel:
                    pytest.skip("this provider cannot be stopped")
                id = external_id(await adapter.start_job(self.request()))
                await adapter.cancel_job(id)
                assert (await adapter.get_job_status(id)).status is ProviderStatus.CANCELLED
                status = await adapter.cancel_job(id)
                assert status.is_terminal or status is ProviderStatus.UNKNOWN

        run(test())

    def test_work_that_has_ended_may_be_cancelled(self, run: Any, fake: FakeProvider) -> None:
        """The cancel changes nothing."""
        self._needs_polling()

        async def test() -> None:
            async with self.made(fake) as adapter:
                if not adapter.can_cancel:
                    pytest.skip("this provider cannot be stopped")
                id = external_id(await adapter.start_job(self.request()))
                await ended(adapter, Started(id))
                status = await adapter.cancel_job(id)
                assert status.is_terminal or status is ProviderStatus.UNKNOWN
                assert (await adapter.get_job_status(id)).status is ProviderStatus.SUCCEEDED

        run(test())
