"""Tests of failures between an adapter and its provider."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from windlass.core.external import ProviderStatus
from windlass.providers.adapter import Started
from windlass.providers.config import Hidden
from windlass.providers.errors import ProviderError, failure_of
from windlass.testing.conformance.mailbox import WITHIN_S
from windlass.testing.conformance.stage import CREDENTIAL, Stage, ended, external_id
from windlass.testing.fake_provider import FakeProvider, Fault


class MishapTests(Stage):
    """Errors: each has the right meaning."""

    @pytest.mark.parametrize("on", ["start", "status"])
    def test_too_many_requests_wait_as_long_as_the_provider_says(self, run: Any, fake: FakeProvider, on: str) -> None:
        """The wait is in seconds or a date; the attempt does not count, and the breaker counts no failure."""

        async def test() -> None:
            later = format_datetime(datetime.now(UTC) + timedelta(seconds=120), usegmt=True)
            for text, least, most in (("17", 17, 17), (later, 60, 120), ("", None, None), ("soon", None, None)):
                error = await self._error_of(fake, on, Fault(on, "status", times=1, status=429, retry_after=text))
                assert error.code == "rate_limited"
                assert not error.counts_against_breaker and not error.is_ambiguous
                failure = failure_of(error)
                assert failure.is_retryable and not failure.is_counted
                if least is None or most is None:
                    assert failure.after_s is None
                else:
                    assert failure.after_s is not None and least <= failure.after_s <= most

        run(test())

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 410, 413, 422])
    def test_a_refusal_is_final(self, run: Any, fake: FakeProvider, status: int) -> None:
        """The provider would refuse the same request again."""

        async def test() -> None:
            error = await self._error_of(fake, "start", Fault("start", "status", times=1, status=status))
            assert not error.is_retryable and not error.is_ambiguous and not error.counts_against_breaker
            assert failure_of(error).is_counted

        run(test())

    @pytest.mark.parametrize("on", ["start", "status"])
    @pytest.mark.parametrize("status", [500, 502, 503, 504])
    def test_a_failure_of_the_provider_passes(self, run: Any, fake: FakeProvider, on: str, status: int) -> None:
        """A retry may succeed, and the provider may have started the work."""

        async def test() -> None:
            error = await self._error_of(fake, on, Fault(on, "status", times=1, status=status))
            assert error.is_retryable and error.is_ambiguous and error.counts_against_breaker

        run(test())

    @pytest.mark.parametrize("on", ["start", "status"])
    @pytest.mark.parametrize("kind", ["lose", "lose_after", "cut"])
    def test_a_connection_that_breaks_is_no_answer(self, run: Any, fake: FakeProvider, on: str, kind: str) -> None:
        """A connection that breaks within an answer is no answer either."""

        async def test() -> None:
            error = await self._error_of(fake, on, Fault(on, kind, times=1))
            assert error.is_retryable and error.is_ambiguous and error.counts_against_breaker

        run(test())

    def test_a_provider_that_is_not_there_is_no_answer(self, run: Any, fake: FakeProvider) -> None:
        """The provider's address has no listener."""

        async def test() -> None:
            async with self.made(fake, base_url="http://127.0.0.1:9") as adapter:
                with pytest.raises(ProviderError) as caught:
                    await adapter.start_job(self.request())
                assert caught.value.is_retryable and caught.value.counts_against_breaker

        run(test())

    def test_a_provider_that_is_late_is_no_answer(self, run: Any, fake: FakeProvider) -> None:
        """The timeout of the configuration applies."""

        async def test() -> None:
            await fake.fail(Fault("start", "delay", seconds=WITHIN_S, times=1))
            async with self.made(fake, timeout_s=0.2) as adapter:
                with pytest.raises(ProviderError) as caught:
                    await adapter.start_job(self.request())
                assert caught.value.code == "provider_timeout"
                assert caught.value.is_retryable and caught.value.is_ambiguous

        run(test())

    @pytest.mark.parametrize("on", ["start", "status"])
    @pytest.mark.parametrize("kind", ["garbage", "shape", "huge"])
    def test_an_answer_that_cannot_be_read_ends_nothing(self, run: Any, fake: FakeProvider, on: str, kind: str) -> None:
        """The answer is no JSON, has another shape, or is too long."""

        async def test() -> None:
            fault = Fault(on, kind, times=1, size=17 << 20)
            error = await self._error_of(fake, on, fault, may_be_unknown=True)
            assert error.is_ambiguous
            assert len(error.message) < 1000

        run(test())

    @pytest.mark.parametrize("kind", ["stale", "forget", "nonsense"])
    def test_a_provider_that_talks_nonsense_has_not_failed(self, run: Any, fake: FakeProvider, kind: str) -> None:
        """Only the next answer counts."""
        self._needs_polling()

        async def test() -> None:
            async with self.made(fake) as adapter:
                id = external_id(await adapter.start_job(self.request()))
                await fake.fail(Fault("status", kind, times=1))
                assert not (await adapter.get_job_status(id)).status.is_terminal
                assert (await ended(adapter, Started(id))).status is ProviderStatus.SUCCEEDED

        run(test())

    @pytest.mark.parametrize("kind", ["status", "forget", "lose", "garbage"])
    def test_an_end_that_cannot_be_fetched_is_no_failure(self, run: Any, fake: FakeProvider, kind: str) -> None:
        """An output fetched in a separate request may fail to arrive; that says nothing about the work."""
        self._needs_polling()

        async def test() -> None:
            async with self.made(fake) as adapter:
                id = external_id(await adapter.start_job(self.request()))
                for status in (503, 429, 401):
                    await fake.fail(Fault("status", kind, after=1, times=1, status=status))
                    try:
                        said = await adapter.get_job_status(id)
                    except ProviderError:
                        continue
                    assert said.status in (ProviderStatus.UNKNOWN, ProviderStatus.SUCCEEDED)
                await fake.fail()
                assert (await ended(adapter, Started(id))).status is ProviderStatus.SUCCEEDED

        run(test())

    def test_nobody_sees_the_credential(self, run: Any, fake: FakeProvider) -> None:
        """No error shows it, even if the provider repeats it, nor does the repr of the adapter."""

        async def test() -> None:
            told = json.dumps({"error": {"message": f"{CREDENTIAL} is no good"}, "detail": f"{CREDENTIAL} is no good"})
            error = await self._error_of(fake, "start", Fault("start", "status", times=1, status=401, body=told))
            assert error.code == "auth_failed"
            async with self.made(fake) as adapter:
                for text in (str(error), repr(error), repr(adapter), repr(adapter.config), str(adapter.config)):
                    assert CREDENTIAL not in text

        run(test())

    def test_a_wrong_credential_is_refused(self, run: Any, fake: FakeProvider) -> None:
        """The error is final: a retry would send the same credential."""

        async def test() -> None:
            async with self.made(fake, credential=Hidden("wrong")) as adapter:
                with pytest.raises(ProviderError) as caught:
                    await adapter.start_job(self.request())
                assert caught.value.code == "auth_failed" and not caught.value.is_retryable

        run(test())
