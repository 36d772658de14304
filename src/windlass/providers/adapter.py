"""What Windlass asks of a provider: six methods, and two more for those that can look work up.

    start_job ──► Started(external_id)      the work goes on there; a webhook or a poll tells its end
              └─► Started(said=…)           it was done within the call (a chat completion)
    get_job_status, cancel_job              by the id that start_job gave
    verify_webhook, parse_webhook           who says so, and what
    calculate_cost                          from what was used

An adapter speaks one protocol and remembers nothing: every process has its own, and any of them may be asked about
work that another one began. It takes no decision either. Whatever it learns it says as `Said`, whatever goes wrong it
raises as a `ProviderError`; retries, polling, slots, rates and the breaker are Windlass's.

The promises, which `windlass.testing.provider_conformance` tests:

- `start_job` sends `request.key` in whatever way the provider takes idempotency keys. The same key twice is one piece
  of work if the provider honours keys; an adapter says so by `honours_keys`.
- Nothing but a plain statement of the provider is terminal. Work that it does not know, a word that we do not know, an
  empty answer: that is UNKNOWN, or an error that is raised; it is never FAILED.
- `cancel_job` may be asked any number of times, and of work that has ended.
- `verify_webhook` reads bytes, and runs before `parse_webhook` does.
- No error, log line or repr holds the credential.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from windlass.core.errors import BadInput, BadSetting, BadSignature
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import NotSupported
from windlass.providers.price import Usage, amount_of, price_of
from windlass.pure.signature import SignatureProfile, secret_of, verify

# A sweep looks at so much of a provider's list, the newest first.
LIST_MAX = 10_000


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What is to be done. `key` is the idempotency key: the same for every try to begin the same work.

    `input` is a JSON value. `metadata` are a few texts (job, step) for providers that keep such.
    """

    key: str
    model: str
    input: Any
    webhook_url: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """The provider took it: what it calls the work, or, when all was done within the call, what came of it."""

    external_id: str | None
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class WebhookNews:
    """What a webhook told. `id` is the message's own: the same message again has the same one.

    `external_id` is what `start_job` returned for this work. `key` is only a hint, from the query of the address that
    was called: the signature is over the body. With `needs_look` the message tells that the work has ended and not
    what came of it: ask `get_job_status` for that, and take `said` (which ends nothing) if it does not answer.
    """

    id: str
    external_id: str | None
    said: Said
    key: str | None = None
    needs_look: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """One piece of work that the provider has, as a sweep compares it with what we know."""

    external_id: str
    status: ProviderStatus
    created_at: datetime | None = None
    key: str | None = None


class ProviderAdapter(ABC):
    """One provider's protocol. It is made with the provider's configuration, and closed when the process ends.

    The four traits say what the provider can do; what is not said is not asked for. An instance may have its own.
    """

    honours_keys: bool = False
    """The provider itself makes one piece of work of two requests with one key."""
    can_cancel: bool = True
    can_find: bool = False
    """`find_job` is there: work can be looked up by the key that it was begun with."""
    can_list: bool = False
    """`list_jobs` is there."""
    default_profile: str = "standard"
    """How its webhooks are signed, unless the configuration says otherwise."""
    own_profiles: tuple[str, ...] = ()
    """Ways to sign that only this provider has; `verify_webhook` is overridden for them."""

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config
        self._secrets = self._webhook_secrets()

    @abstractmethod
    async def start_job(self, request: StartRequest) -> Started:
        """Have the work begun. Raises a ProviderError; one that is ambiguous may have begun it nevertheless."""

    @abstractmethod
    async def get_job_status(self, external_id: str) -> Said:
        """Where the work stands, with its output once it is done. UNKNOWN if the provider does not know it."""

    @abstractmethod
    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Ask that the work be stopped, and say where it stands then.

        Terminal or UNKNOWN: there is nothing left to stop. QUEUED or RUNNING: it was asked and has not stopped yet.
        """

    @abstractmethod
    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """What a verified webhook says. Header names are lower case. `id` may be empty: then the signature's is used.

        BadAnswer when it cannot be read.
        """

    async def verify_webhook(self, headers: Mapping[str, str], body: bytes, now_s: float) -> str:
        """The id of the message if it is signed as the configuration says; BadSignature if not.

        Override it for a provider with a way of its own.
        """
        webhook = self.config.webhook
        if webhook is None or not webhook.secrets:
            raise BadSignature(f"no webhooks are expected from {self.config.name}")
        return verify(
            SignatureProfile(self.profile),
            self._secrets,
            headers,
            body,
            now_s=now_s,
            tolerance_s=webhook.tolerance_s,
            header=webhook.header,
        )

    def calculate_cost(self, model: str, usage: Usage) -> Cost:
        """What so much of this model costs, by the `prices` of the configuration; money is never a float."""
        amount = amount_of(price_of(self.config.prices, model), usage)
        return self.cost(amount, usage)

    async def find_job(self, key: str) -> str | None:
        """The external id of the work that was begun with this key, None if there is none. Only if `can_find`."""
        raise NotSupported(f"{self.config.name} cannot look work up by its key")

    async def list_jobs(self, since: datetime) -> list[Listed]:
        """The work that was begun since then, the newest first, at most LIST_MAX of it. Only if `can_list`."""
        raise NotSupported(f"{self.config.name} cannot list its work")

    async def close(self) -> None:
        """Let connections go."""
        return

    # What adapters share.

    @property
    def profile(self) -> str:
        """How webhooks are signed here."""
        webhook = self.config.webhook
        return self.default_profile if webhook is None or webhook.profile is None else webhook.profile

    def _webhook_secrets(self) -> list[bytes]:
        """The secrets as bytes, so that one that cannot be used is refused at the start and not by each webhook."""
        webhook = self.config.webhook
        place = f"providers.{self.config.name}.webhook"
        if webhook is None or self.profile in self.own_profiles:
            return []
        if self.profile not in list(SignatureProfile):
            known = ", ".join([*SignatureProfile, *self.own_profiles])
            raise BadSetting(f"{place}.profile: there is no profile {self.profile!r}", remedy=f"Known are: {known}")
        if webhook.secret_env is None:
            raise BadSetting(f"{place}: has no `secret_env`", remedy="Name the variable that holds the secrets")
        try:
            return [secret_of(SignatureProfile(self.profile), secret.reveal()) for secret in webhook.secrets]
        except BadInput as error:
            raise BadSetting(f"{place}.secret_env: {error.message}", remedy=error.remedy) from None

    def webhook_url(self, request: StartRequest, **more: str) -> str | None:
        """Where the provider is to tell the end: with the key, and whatever else tells us what it speaks of."""
        if request.webhook_url is None:
            return None
        gap = "&" if "?" in request.webhook_url else "?"
        return f"{request.webhook_url}{gap}{urlencode({'key': request.key, **more})}"

    def cost(self, amount: Decimal, usage: Usage) -> Cost:
        """A cost of this provider."""
        return Cost(f"{amount:f}", usage.tokens_in, usage.tokens_out, float(usage.seconds), self.config.name)

    def option(self, name: str, kind: type, default: Any) -> Any:
        """One of the adapter's own options; BadSetting if it has another type."""
        value = self.config.options.get(name, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadSetting(f"providers.{self.config.name}.options.{name}: {value!r} is no {kind.__name__}")
        return value

    def only_options(self, *names: str) -> None:
        """Refuse options that this adapter does not have: a misspelt one would do nothing, silently."""
        for name in self.config.options:
            if name not in names:
                known = ", ".join(names) or "none"
                raise BadSetting(
                    f"providers.{self.config.name}.options.{name}: there is no such option",
                    remedy=f"The adapter has: {known}",
                )
