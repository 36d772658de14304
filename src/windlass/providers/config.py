"""Reads `providers.yaml`: the providers, their addresses, and their limits.

```yaml
providers:
  fal:
    adapter: fal                    # openai, fal, replicate, http; package.module:Class; a name of an entry point
    base_url: https://queue.fal.run
    credential_env: FAL_KEY         # the variable that holds the credential, never the credential
    concurrency: 4                  # pieces of work at a time; default 1
    rate: 10                        # requests per second, of all processes together; default 10
    timeout: 30s                    # of one request; default 30s
    answer_max_bytes: 16777216      # of one answer; default 16 MiB
    wait: 1h                        # of one piece of work, from its start to its end; default 1h
    poll: [30s, 60s, 120s]          # waits between polls; the last is repeated
    webhook: {profile: standard, secret_env: FAL_WEBHOOK_SECRETS, tolerance: 300s}
    payment: ON_DEMAND              # PREPAID_POOL, ON_DEMAND, FORWARDED
    prices: {"*": {call: 0.05}}     # call, second, item; tokens_in, tokens_out per million
    estimate: 0.05                  # the expected cost of one call
    options: {}                     # the adapter's own
```

Reading the file refuses a misspelt, mistyped or missing setting, and names its place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from windlass.core.errors import BadRecipe, BadSetting, TooLarge
from windlass.core.external import POLL_S
from windlass.providers.price import Price, decimal_of
from windlass.pure.signature import PLAIN_HEADER
from windlass.recipe.duration import duration_s
from windlass.recipe.yaml_text import Lines, read_document

CONCURRENCY_MAX = 100_000
RATE_MAX = 100_000.0
PROVIDERS_MAX = 1000
POLLS_MAX = 20
POLL_S_MIN = 0.01
ANSWER_MAX_BYTES = 16 << 20
ANSWER_LIMIT_BYTES = 1 << 30
TOLERANCE_S_MAX = 3600.0

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_KEYS = (
    "adapter", "base_url", "credential_env", "concurrency", "rate", "timeout", "answer_max_bytes", "wait", "poll",
    "webhook", "payment", "prices", "estimate", "options",
)  # fmt: skip
_WEBHOOK_KEYS = ("profile", "secret_env", "tolerance", "header")
_PRICE_KEYS = ("call", "second", "item", "tokens_in", "tokens_out")


class Payment(StrEnum):
    """Who pays, and when."""

    PREPAID_POOL = "PREPAID_POOL"
    ON_DEMAND = "ON_DEMAND"
    FORWARDED = "FORWARDED"


class Hidden:
    """A secret that shows itself only on `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret."""
        return self._text

    def __repr__(self) -> str:
        return "Hidden(…)"

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not pickled")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hidden) and other._text == self._text

    def __hash__(self) -> int:
        return hash(Hidden)


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    """How to verify a provider's webhooks. Any of the secrets is valid, so that they can be rotated."""

    profile: str | None = None
    secret_env: str | None = None
    secrets: tuple[Hidden, ...] = ()
    tolerance_s: float = 300.0
    header: str = PLAIN_HEADER


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider's configuration."""

    name: str
    adapter: str
    base_url: str | None = None
    credential_env: str | None = None
    credential: Hidden | None = None
    concurrency: int = 1
    rate: float = 10.0
    timeout_s: float = 30.0
    answer_max_bytes: int = ANSWER_MAX_BYTES
    wait_s: float = 3600.0
    poll_s: tuple[float, ...] = POLL_S
    webhook: WebhookConfig | None = None
    payment: Payment = Payment.ON_DEMAND
    prices: Mapping[str, Price] = field(default_factory=dict)
    estimate: Decimal | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def read_config(
    text: str | bytes, environ: Mapping[str, str], *, needs_secrets: bool = True
) -> dict[str, ProviderConfig]:
    """Read the providers of a `providers.yaml`, by name. BadSetting names the place of an error.

    Without `needs_secrets` an unset variable is not an error, for commands that only inspect the file.
    """
    try:
        document, lines = read_document(text)
    except (BadRecipe, TooLarge) as error:
        raise BadSetting(f"providers: {error}") from None
    reader = _Reader(lines, environ, needs_secrets)
    root = reader.table(document, "", ("providers",))
    found = reader.table(root.get("providers") or {}, "providers", None)
    if len(found) > PROVIDERS_MAX:
        raise reader.bad("providers", f"{len(found)} providers; at most {PROVIDERS_MAX} are allowed")
    configs = {name: reader.provider(name, entry) for name, entry in found.items()}
    _check_secrets(reader, configs)
    return configs


def _check_secrets(reader: _Reader, configs: Mapping[str, ProviderConfig]) -> None:
    """Refuse a secret that two providers share: a webhook signed by one would be accepted for the other."""
    owners: dict[str, str] = {}
    for name, config in configs.items():
        for secret in config.webhook.secrets if config.webhook is not None else ():
            owner = owners.setdefault(secret.reveal(), name)
            if owner != name:
                raise reader.bad(
                    f"providers.{name}.webhook.secret_env",
                    f"is also the webhook secret of provider {owner} too",
                    "Give each provider its own secret; a provider without `webhook` is polled",
                )


class _Reader:
    """Reads the parts of the document, and knows the line of each."""

    def __init__(self, lines: Lines, environ: Mapping[str, str], needs_secrets: bool) -> None:
        self._lines = lines
        self._environ = environ
        self._needs_secrets = needs_secrets

    def bad(self, place: str, message: str, remedy: str | None = None) -> BadSetting:
        """Build the error for a place in the document."""
        line = self._lines.get(place)
        told = f"{place or 'providers.yaml'}: {message}" + (f" (line {line})" if line else "")
        return BadSetting(told, remedy=remedy)

    def table(self, value: Any, place: str, keys: tuple[str, ...] | None) -> dict[str, Any]:
        """Read a map that has only these keys."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.bad(place, "must be a map")
        for key in value:
            if keys is not None and key not in keys:
                below = f"{place}.{key}" if place else key
                raise self.bad(below, "there is no such setting", f"Known: {', '.join(keys)}")
        return value

    def provider(self, name: str, value: Any) -> ProviderConfig:
        """Read one provider."""
        place = f"providers.{name}"
        if not _NAME.fullmatch(name):
            raise self.bad(place, "a provider's name has lower-case letters, digits, - and _, 63 at most")
        entry = self.table(value, place, _KEYS)
        if "adapter" not in entry:
            raise self.bad(place, "has no `adapter`", "Name one: openai, fal, replicate, http, or package.module:Class")
        given: dict[str, Any] = {"name": name, "adapter": self.text(entry["adapter"], f"{place}.adapter")}
        read = {
            "base_url": self.url,
            "concurrency": self.concurrency,
            "rate": self.rate,
            "answer_max_bytes": self.answer_max_bytes,
            "webhook": self.webhook,
            "payment": self.payment,
            "prices": self.prices,
            "estimate": self.money,
        }
        for key, method in read.items():
            if entry.get(key) is not None:
                given[key] = method(entry[key], f"{place}.{key}")
        for key in ("timeout", "wait"):
            if entry.get(key) is not None:
                given[f"{key}_s"] = self.time(entry[key], f"{place}.{key}", 0.001)
        if entry.get("poll") is not None:
            given["poll_s"] = self.poll(entry["poll"], f"{place}.poll")
        if entry.get("credential_env") is not None:
            given["credential_env"], found = self.variable(entry["credential_env"], f"{place}.credential_env")
            given["credential"] = None if found is None else Hidden(found)
        given["options"] = self.table(entry.get("options"), f"{place}.options", None)
        return ProviderConfig(**given)

    def text(self, value: Any, place: str) -> str:
        """Read a text that is not empty."""
        if not isinstance(value, str) or not value.strip():
            raise self.bad(place, f"{value!r} is not text")
        return value.strip()

    def url(self, value: Any, place: str) -> str:
        """Read an address without credentials, query or fragment."""
        text = self.text(value, place)
        try:
            parts = urlsplit(text)
            port_is_fine = parts.port is None or parts.port > 0
        except ValueError:
            raise self.bad(place, "cannot be read as an address") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
            raise self.bad(place, "must be an http or https address")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise self.bad(place, "must have no user, query or fragment", "Credentials go into `credential_env`")
        return text.rstrip("/")

    def concurrency(self, value: Any, place: str) -> int:
        """Read the number of concurrent pieces of work."""
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= CONCURRENCY_MAX:
            raise self.bad(place, f"{value!r} is not a whole number from 1 to {CONCURRENCY_MAX}")
        return value

    def rate(self, value: Any, place: str) -> float:
        """Read the number of requests per second."""
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= RATE_MAX:
            raise self.bad(place, f"{value!r} is not a number of requests per second over 0 and up to {RATE_MAX:g}")
        return float(value)

    def answer_max_bytes(self, value: Any, place: str) -> int:
        """Read the largest size of an answer."""
        if not isinstance(value, int) or isinstance(value, bool) or not 1024 <= value <= ANSWER_LIMIT_BYTES:
            raise self.bad(place, f"{value!r} is not a whole number of bytes from 1024 to {ANSWER_LIMIT_BYTES:,}")
        return value

    def time(self, value: Any, place: str, least_s: float) -> float:
        """Read a length of time."""
        try:
            seconds = duration_s(value, "")
        except BadRecipe as error:
            raise self.bad(place, error.message, error.remedy) from None
        if seconds < least_s:
            raise self.bad(place, f"{value!r} is shorter than {least_s:g} s")
        return seconds

    def poll(self, value: Any, place: str) -> tuple[float, ...]:
        """Read the poll schedule."""
        waits = value if isinstance(value, list) else [value]
        if not 1 <= len(waits) <= POLLS_MAX:
            raise self.bad(place, f"must be 1 to {POLLS_MAX} lengths of time")
        return tuple(self.time(wait, f"{place}[{at}]", POLL_S_MIN) for at, wait in enumerate(waits))

    def variable(self, value: Any, place: str) -> tuple[str, str | None]:
        """Read the name of a variable, and its value from the environment."""
        name = self.text(value, place)
        if not _VARIABLE.fullmatch(name):
            # The author may have written the secret itself here, so the message does not repeat it.
            raise self.bad(place, "is not the name of an environment variable")
        found = self._environ.get(name, "").strip()
        if not found and self._needs_secrets:
            raise self.bad(place, f"the variable {name} is not set", f"Set {name} in the environment of this process")
        return name, found or None

    def webhook(self, value: Any, place: str) -> WebhookConfig:
        """Read how webhooks are signed."""
        entry = self.table(value, place, _WEBHOOK_KEYS)
        given: dict[str, Any] = {}
        for key in ("profile", "header"):
            if entry.get(key) is not None:
                given[key] = self.text(entry[key], f"{place}.{key}")
        if entry.get("tolerance") is not None:
            given["tolerance_s"] = self.time(entry["tolerance"], f"{place}.tolerance", 1.0)
            if given["tolerance_s"] > TOLERANCE_S_MAX:
                raise self.bad(f"{place}.tolerance", f"is longer than {TOLERANCE_S_MAX:g} s")
        if entry.get("secret_env") is not None:
            given["secret_env"], found = self.variable(entry["secret_env"], f"{place}.secret_env")
            parts = (part.strip() for part in (found or "").split(","))
            given["secrets"] = tuple(Hidden(part) for part in parts if part)
        return WebhookConfig(**given)

    def payment(self, value: Any, place: str) -> Payment:
        """Read who pays."""
        if value not in Payment.__members__:
            raise self.bad(place, f"{value!r} is not a way to pay", f"Known: {', '.join(Payment)}")
        return Payment(value)

    def prices(self, value: Any, place: str) -> dict[str, Price]:
        """Read the prices by model."""
        found = {}
        for model, entry in self.table(value, place, None).items():
            below = f"{place}.{model}"
            parts = self.table(entry, below, _PRICE_KEYS)
            found[model] = Price(**{key: self.money(part, f"{below}.{key}") for key, part in parts.items()})
        return found

    def money(self, value: Any, place: str) -> Decimal:
        """Read an amount of money."""
        amount = decimal_of(value)
        if amount is None:
            raise self.bad(place, f"{value!r} is not an amount of money")
        return amount
