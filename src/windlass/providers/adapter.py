"""The interface of a provider adapter: six methods, and two more for providers that can look up or list work.

    start_job ──► Started(external_id)      the work goes on there; a webhook or a poll reports its end
              └─► Started(said=…)           it was done within the call (a chat completion)
    get_job_status, cancel_job              by the id that start_job returned
    verify_webhook, parse_webhook           the sender, then the content
    calculate_cost                          from the usage

An adapter speaks one protocol and keeps no state: every process has its own, and any of them may be asked about work
that another process began. An adapter decides nothing either. It returns what it learns as `Said` and raises problems
as a `ProviderError`; Windlass does retries, polling, slots, rates and the breaker.

`windlass.testing.provider_conformance` tests these promises:

- `start_job` sends `request.key` in the way that the provider takes idempotency keys. If the provider honours keys, the
  same key twice is one piece of work; the adapter declares that by `honours_keys`.
- Only a plain statement of the provider is terminal. Unknown work, an unknown status word, an empty answer: these are
  UNKNOWN, or an error that is raised; they are never FAILED.
- `cancel_job` may be called any number of times, also for work that has ended.
- `verify_webhook` reads bytes, and runs before `parse_webhook`.
- No error, log line or repr contains the credential.
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

# The most entries of a provider's list that a sweep reads, newest first.
LIST_MAX = 10_000


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A request for work. `key` is the idempotency key: the same on every try to begin the same work.

    `input` is a JSON value. `metadata` has a few texts (job, step) for providers that store such.
    """

    key: str
    model: str
    input: Any
    webhook_url: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """The provider's reply: its id of the work or, if it did the work within the call, the result."""

    external_id: str | None
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class WebhookNews:
    """The content of a webhook. `id` is the message's own id: a repeated message has the same one.

    `external_id` is the id that `start_job` returned for this work. `key` is only a hint from the query of the called
    address, because the signature covers the body only. With `needs_look` the message reports the end but not the
    result: `get_job_status` has the result, and `said` (which ends nothing) applies if that call fails.
    """

    id: str
    external_id: str | None
    said: Said
    key: str | None = None
    needs_look: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """One piece of work in the provider's list. A sweep compares it with our rows."""

    external_id: str
    status: ProviderStatus
    created_at: datetime | None = None
    key: str | None = None


class ProviderAdapter(ABC):
    """One provider's protocol. It is created with the provider's configuration, and closed when the process ends.

    The four traits declare what the provider can do; Windlass uses nothing else. An instance may override them.
    """

    honours_keys: bool = False
    """The provider makes one piece of work of two requests with the same key."""
    can_cancel: bool = True
    can_find: bool = False
    """`find_job` works: the provider finds work by its key."""
    can_list: bool = False
    """`list_jobs` works."""
    default_profile: str = "standard"
    """How its webhooks are signed, unless the configuration says otherwise."""
    own_profiles: tuple[str, ...] = ()
    """Signature profiles that only this provider has; `verify_webhook` is overridden for them."""

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config
        self._secrets = self._webhook_secrets()

    @abstractmethod
    async def start_job(self, request: StartRequest) -> Started:
        """Start the work. Raises a ProviderError; after an ambiguous error the work may have begun nevertheless."""

    @abstractmethod
    async def get_job_status(self, external_id: str) -> Said:
        """Return the status of the work, with its output once it is done.

        UNKNOWN if the provider does not know the work.
        """

    @abstractmethod
    async def cancel_job(self, external_id: str) -> ProviderStatus:
        """Ask the provider to stop the work, and return its status then.

        Terminal or UNKNOWN: nothing is left to stop. QUEUED or RUNNING: the work has not stopped yet.
        """

    @abstractmethod
    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        """Parse a verified webhook. Header names are lower case. If `id` is empty, the signature's id is used.

        Raises BadAnswer when it cannot be read.
        """

    async def verify_webhook(self, headers: Mapping[str, str], body: bytes, now_s: float) -> str:
        """Return the message's id if the signature is valid; raise BadSignature if not.

        Override it for a provider with its own kind of signature.
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
        """Compute the cost of this usage by the `prices` of the configuration. Money is never a float."""
        amount = amount_of(price_of(self.config.prices, model), usage)
        return self.cost(amount, usage)

    async def find_job(self, key: str) -> str | None:
        """Return the external id of the work with this key, or None. Only if `can_find`."""
        raise NotSupported(f"{self.config.name} cannot look work up by its key")

    async def list_jobs(self, since: datetime) -> list[Listed]:
        """Return the work that began since then, newest first, at most LIST_MAX entries. Only if `can_list`."""
        raise NotSupported(f"{self.config.name} cannot list its work")

    async def close(self) -> None:
        """Close the connections."""
        return

    # What adapters share.

    @property
    def profile(self) -> str:
        """The signature profile of the webhooks."""
        webhook = self.config.webhook
        return self.default_profile if webhook is None or webhook.profile is None else webhook.profile

    def _webhook_secrets(self) -> list[bytes]:
        """Decode the secrets, so that an unusable secret is refused at the start and not at each webhook."""
        webhook = self.config.webhook
        place = f"providers.{self.config.name}.webhook"
        if webhook is None or self.profile in self.own_profiles:
            return []
        if self.profile not in list(SignatureProfile):
            known = ", ".join([*SignatureProfile, *self.own_profiles])
            raise BadSetting(f"{place}.profile: there is no profile {self.profile!r}", remedy=f"Known: {known}")
        if webhook.secret_env is None:
            raise BadSetting(f"{place}: has no `secret_env`", remedy="Name the variable that holds the secrets")
        try:
            return [secret_of(SignatureProfile(self.profile), secret.reveal()) for secret in webhook.secrets]
        except BadInput as error:
            raise BadSetting(f"{place}.secret_env: {error.message}", remedy=error.remedy) from None

    def webhook_url(self, request: StartRequest, **more: str) -> str | None:
        """Build the address for the provider's webhook: with the key, and other parameters that identify the work."""
        if request.webhook_url is None:
            return None
        gap = "&" if "?" in request.webhook_url else "?"
        return f"{request.webhook_url}{gap}{urlencode({'key': request.key, **more})}"

    def cost(self, amount: Decimal, usage: Usage) -> Cost:
        """Build a cost of this provider."""
        return Cost(f"{amount:f}", usage.tokens_in, usage.tokens_out, float(usage.seconds), self.config.name)

    def option(self, name: str, kind: type, default: Any) -> Any:
        """Return one of the adapter's own options. Raises BadSetting if it has another type."""
        value = self.config.options.get(name, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadSetting(f"providers.{self.config.name}.options.{name}: {value!r} is no {kind.__name__}")
        return value

    def only_options(self, *names: str) -> None:
        """Refuse unknown options: a misspelt option would silently do nothing."""
        for name in self.config.options:
            if name not in names:
                known = ", ".join(names) or "none"
                raise BadSetting(
                    f"providers.{self.config.name}.options.{name}: there is no such option",
                    remedy=f"The adapter has: {known}",
                )
