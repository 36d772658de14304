"""The errors of providers, in one small tree, and their meaning for the step.

    ProviderError
    ├── RateLimited         429, or the provider's code for it: retry after `after_s`; does not count as a failure
    ├── InvalidRequest      400, 422 and the other 4xx: the same request would be refused again
    ├── AuthFailed          401, 403: the credential is missing, wrong or not allowed to do this
    ├── NotFound            404, 410: no such model; of work that was begun it means "unknown", never "failed"
    ├── ContentRefused      the provider refuses the content
    ├── InsufficientFunds   402, or the provider's code for it: the account is empty
    ├── NotSupported        the provider, or its adapter, lacks the feature
    ├── ProviderDown        5xx: the provider answers, but cannot do the work now
    ├── ProviderTimeout     no answer in time
    ├── ConnectionLost      no connection, or a broken one
    └── BadAnswer           an answer that cannot be read: no JSON, another shape
        └── AnswerTooLarge  over the limit of this provider

Each error answers four questions, and only these decide:

- `is_retryable`: may another attempt help?
- `is_counted`: does it use up an attempt of the step's policy?
- `is_ambiguous`: may the provider have taken the work nevertheless? Then the next attempt repeats the same key.
- `counts_against_breaker`: is the provider at fault, rather than the request?

A message contains the provider's text, shortened, and never the request: no header, no credential.
"""

from __future__ import annotations

from windlass.core.outcome import Failure, Fault

MESSAGE_MAX = 500
# The longest wait for a provider that asks for more: its estimate may be wrong.
AFTER_S_MAX = 3600.0


def shown(text: str) -> str:
    """Make a provider's text fit to store and show: shortened, and without characters that a database refuses."""
    text = text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 1]}…"
    return text.replace("\x00", "").encode(errors="replace").decode()


class ProviderError(Exception):
    """A request failed, was refused, or got an unusable answer."""

    code = "provider_error"
    is_retryable = False
    is_counted = True
    is_ambiguous = False
    counts_against_breaker = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        is_retryable: bool | None = None,
        after_s: float | None = None,
        is_counted: bool | None = None,
        is_ambiguous: bool | None = None,
        counts_against_breaker: bool | None = None,
        status: int | None = None,
    ) -> None:
        message = shown(message)
        super().__init__(message)
        self.message = message
        self.after_s = None if after_s is None else min(max(after_s, 0.0), AFTER_S_MAX)
        self.status = status
        if code is not None:
            self.code = code
        if is_retryable is not None:
            self.is_retryable = is_retryable
        if is_counted is not None:
            self.is_counted = is_counted
        if is_ambiguous is not None:
            self.is_ambiguous = is_ambiguous
        if counts_against_breaker is not None:
            self.counts_against_breaker = counts_against_breaker


class RateLimited(ProviderError):
    """The provider is busy, or we send too many requests. The step is not at fault."""

    code = "rate_limited"
    is_retryable = True
    is_counted = False


class InvalidRequest(ProviderError):
    """The same request would be refused again."""

    code = "invalid_request"


class AuthFailed(ProviderError):
    """The credential is missing, wrong, or not allowed to do this."""

    code = "auth_failed"


class NotFound(ProviderError):
    """The model or the work does not exist."""

    code = "provider_not_found"


class ContentRefused(ProviderError):
    """The provider refuses the content."""

    code = "content_refused"


class InsufficientFunds(ProviderError):
    """The account with the provider is empty."""

    code = "insufficient_funds"


class NotSupported(ProviderError):
    """The provider, or its adapter, lacks the feature. No request was sent."""

    code = "not_supported"


class ProviderDown(ProviderError):
    """The provider answers, but cannot do the work now."""

    code = "provider_down"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class ProviderTimeout(ProviderError):
    """The provider did not answer in time. Whether it took the work is unknown."""

    code = "provider_timeout"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class ConnectionLost(ProviderError):
    """There is no connection, or it broke. Whether the provider took the work is unknown."""

    code = "connection_lost"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class BadAnswer(ProviderError):
    """The answer cannot be read. Whether the provider took the work is unknown."""

    code = "bad_answer"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class AnswerTooLarge(BadAnswer):
    """The answer is over the limit. A repeated one would be too."""

    code = "answer_too_large"
    is_retryable = False
    counts_against_breaker = False


def fault_of(error: ProviderError) -> Fault:
    """Return the fault that is stored and shown."""
    return Fault(error.code, error.message, kind=type(error).__name__)


def failure_of(error: ProviderError) -> Failure:
    """Return the failure of the attempt that sent the request."""
    return Failure(fault_of(error), error.is_retryable, error.after_s, error.is_counted)
