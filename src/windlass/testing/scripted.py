"""A provider inside a test: it uses no network, and gives the answers that the test sets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Fault
from windlass.providers.adapter import Listed, ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import BadAnswer, ProviderError

Respond = Callable[..., Any]


@dataclass(slots=True)
class Asked:
    """Work that a scripted provider was given."""

    external_id: str
    key: str
    model: str
    input: Any
    is_cancelled: bool = False


class ScriptedAdapter(ProviderAdapter):
    """Accepts one piece of work per key. A poll returns the result of `respond(model, input)`.

    A ProviderError that `respond` raises is an error of the provider, and the poll is repeated. Any other exception
    fails the work. Without `respond` the work never ends: the test ends the step.
    """

    honours_keys = True
    can_find = True
    can_list = True

    def __init__(self, config: ProviderConfig, respond: Respond | None = None) -> None:
        super().__init__(config)
        self.respond = respond
        self.asked: list[Asked] = []

    async def start_job(self, request: StartRequest) -> Started:
        """Accept every request."""
        work = self._by_key(request.key)
        if work is None:
            number = len(self.asked) + 1
            work = Asked(f"{self.config.name}-{number}", request.key, request.model, request.input)
            self.asked.append(work)
        return Started(work.external_id)

    async def get_job_status(self, external_id: str) -> Said:
        """Return the script's status."""
        work = next((work for work in self.asked if work.external_id == external_id), None)
        if work is None:
            return Said(ProviderStatus.UNKNOWN)
        if work.is_cancelled:
            return Said(ProviderStatus.CANCELLED)
        if self.respond is None:
            return Said(ProviderStatus.RUNNING)
        try:
            made = self.respond(work.model, work.input)
            if inspect.isawaitable(made):
                made = await made
        except ProviderError:
            raise
        except Exception as error:
            fault = Fault("provider_failed", str(error) or type(error).__name__, type(error).__name__)
            return Said(ProviderStatus.FAILED, fault=fault, is_retryable=False)
        if isinstance(made, Said):
            return made
        return Said(ProviderStatus.SUCCEEDED, output=msgspec.json.encode(made).decode())

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Cancel at once."""
        for work in self.asked:
            if work.external_id == external_id:
                work.is_cancelled = True
                return ProviderStatus.CANCELLED
        return ProviderStatus.UNKNOWN

    async def find_job(self, key: str) -> str | None:
        """Find the work by its key."""
        work = self._by_key(key)
        return None if work is None else work.external_id

    async def list_jobs(self, since: datetime) -> list[Listed]:
        """List all work that was not cancelled."""
        going_on = [work for work in self.asked if not work.is_cancelled]
        return [Listed(work.external_id, ProviderStatus.RUNNING, None, work.key) for work in going_on]

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Refuse: a scripted provider sends no webhooks."""
        raise BadAnswer("a scripted provider sends no webhooks")

    def _by_key(self, key: str) -> Asked | None:
        return next((work for work in self.asked if work.key == key), None)
