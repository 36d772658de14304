"""The fixtures of an adapter's tests: a fake provider of its protocol, the adapter, requests, a mailbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import pytest

from windlass.core.external import ProviderStatus, Said
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest
from windlass.providers.config import Hidden, ProviderConfig, WebhookConfig
from windlass.providers.errors import ProviderError
from windlass.providers.price import Price
from windlass.providers.registry import adapter_class
from windlass.pure.signature import SignatureProfile
from windlass.testing.conformance.mailbox import WITHIN_S, Mailbox, mailbox
from windlass.testing.fake_provider import FakeProvider, Fault

CREDENTIAL = "the-credential-that-nobody-may-see"

T = TypeVar("T")


class Stage:
    """The adapter under test, and the fixtures of its tests."""

    adapter: ClassVar[str]
    protocol: ClassVar[str]
    model: ClassVar[str] = "model"
    input: ClassVar[dict[str, Any]] = {"prompt": "a windlass"}
    options: ClassVar[dict[str, Any]] = {}
    speeches: ClassVar[dict[str, str]] = {}
    is_sync: ClassVar[bool] = False
    has_webhooks: ClassVar[bool] = True
    webhook_profile: ClassVar[str | None] = None
    has_fal_keys: ClassVar[bool] = False

    # Fixtures

    @pytest.fixture(scope="class")
    @classmethod
    def runner(cls) -> Iterator[asyncio.Runner]:
        """The event loop of the class, which its fake provider shares."""
        with asyncio.Runner() as runner:
            yield runner

    @pytest.fixture(scope="class")
    @classmethod
    def fake(cls, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeProvider]:
        """The fake provider of the class."""
        folder: Path = tmp_path_factory.mktemp("provider")
        fake = FakeProvider(
            folder / "journal",
            credential=CREDENTIAL,
            is_durable=False,
            has_fal_keys=cls.has_fal_keys,
            speeches=cls.speeches,
        )
        runner.run(fake.start())
        try:
            yield fake
        finally:
            runner.run(fake.stop())

    @pytest.fixture
    def run(self, runner: asyncio.Runner, fake: FakeProvider) -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
        """Run a test's coroutine against a provider that has forgotten the previous test."""
        runner.run(fake.reset())
        if self.webhook_profile in list(SignatureProfile):
            runner.run(fake.behave(webhook_profile=self.webhook_profile))
        yield runner.run

    def config(self, fake: FakeProvider, **more: Any) -> ProviderConfig:
        """Return the provider's configuration; override it for further settings of your adapter."""
        webhook = WebhookConfig(self.webhook_profile, "SECRETS", (Hidden(fake.secret),))
        given: dict[str, Any] = {
            "name": self.protocol,
            "adapter": self.adapter,
            "base_url": fake.base_url(self.protocol),
            "credential": Hidden(CREDENTIAL),
            "options": self.options,
            "prices": {"*": Price(call=Decimal("0.5"))},
            "webhook": webhook if self.has_webhooks else None,
        }
        return ProviderConfig(**{**given, **more})

    def request(self, key: str | None = None, webhook_url: str | None = None) -> StartRequest:
        """Return a request that the provider accepts."""
        return StartRequest(key or f"wl-{uuid4()}-0-1", self.model, dict(self.input), webhook_url, {"job": "test"})

    async def receive_at(self, fake: FakeProvider, url: str) -> None:
        """Have webhooks sent to this URL, for a protocol whose requests cannot name one."""

    @asynccontextmanager
    async def made(self, fake: FakeProvider, **more: Any) -> AsyncIterator[ProviderAdapter]:
        """Yield an adapter, and close it at the end."""
        config = self.config(fake, **more)
        adapter = adapter_class(config)(config)
        try:
            yield adapter
        finally:
            await adapter.close()

    # Helpers

    def _needs_polling(self) -> None:
        if self.is_sync:
            pytest.skip("all is done within the call")

    def _needs_webhooks(self) -> None:
        if self.is_sync or not self.has_webhooks:
            pytest.skip("it sends no webhooks")

    def _accepted_before(self, fake: FakeProvider, key: str) -> int:
        entries = fake.entries("accepted")
        own = [entry for entry in entries if key in (entry.key, *_texts_in(entry.extra))]
        return len(entries) - len(own)

    async def _error_of(
        self, fake: FakeProvider, on: str, fault: Fault, *, may_be_unknown: bool = False
    ) -> ProviderError:
        """Return the error that this fault raises. For a status request, an adapter may also return UNKNOWN."""
        async with self.made(fake) as adapter:
            id = ""
            if on == "status":
                self._needs_polling()
                id = external_id(await adapter.start_job(self.request()))
            await fake.fail(fault)
            try:
                if on == "start":
                    await adapter.start_job(self.request())
                else:
                    said = await adapter.get_job_status(id)
                    assert may_be_unknown and said.status is ProviderStatus.UNKNOWN, said
                    return ProviderError("said to be unknown", is_ambiguous=True)
            except ProviderError as error:
                return error
            raise AssertionError(f"{fault.kind} on {on} went unnoticed")

    @asynccontextmanager
    async def _mailbox(self, fake: FakeProvider) -> AsyncIterator[Mailbox]:
        async with mailbox() as mail:
            await self.receive_at(fake, mail.url)
            yield mail


async def ended(adapter: ProviderAdapter, started: Started) -> Said:
    """Return the terminal status of the work."""
    if started.said is not None and started.said.status.is_terminal:
        return started.said
    async with asyncio.timeout(WITHIN_S):
        while True:
            said = await adapter.get_job_status(external_id(started))
            if said.status.is_terminal:
                return said
            await asyncio.sleep(0.01)


def external_id(started: Started) -> str:
    """Return the provider's id of the work."""
    assert started.external_id, "start_job gave no external id"
    return started.external_id


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _texts_in(part)]
    return []
