"""What can go wrong with a provider, in one small tree, and what it means for the step that asked.

    ProviderError
    ├── RateLimited         429, or its own word for it: again after `after_s`, and it does not count as a failure
    ├── InvalidRequest      400, 422 and the other 4xx: the same request would be refused again
    ├── AuthFailed          401, 403: the credential is missing, wrong or not allowed to do this
    ├── NotFound            404, 410: no such model; of work that was begun it means "unknown", never "failed"
    ├── ContentRefused      the provider does not want to do this
    ├── InsufficientFunds   402, or its own word for it: the account is empty
    ├── NotSupported        this provider, or its adapter, has no such thing
    ├── ProviderDown        5xx: it is there, and cannot now
    ├── ProviderTimeout     no answer in time
    ├── ConnectionLost      no connection, or one that broke
    └── BadAnswer           an answer that cannot be read: no JSON, another shape
        └── AnswerTooLarge  over the limit of this provider

Four questions are answered by each, and nothing else decides:

- `is_retryable`: may another attempt help?
- `is_counted`: does it use up an attempt of the step's policy?
- `is_ambiguous`: may the provider have taken the work nevertheless? Then it is asked again with the same key.
- `counts_against_breaker`: does it say that the provider is ill, rather than the request?

A message holds what the provider said, shortened, and never what was sent to it: no header, no credential.
"""

from __future__ import annotations

from windlass.core.outcome import Failure, Fault

MESSAGE_MAX = 500
# A provider that asks for more than this is asked again after this: it may be wrong about itself.
AFTER_S_MAX = 3600.0


def shown(text: str) -> str:
    """What a provider said, as it can be kept and shown: not endless, and without what a database has no place for."""
    text = text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 1]}…"
    return text.replace("\x00", "").encode(errors="replace").decode()


class ProviderError(Exception):
    """A provider could not be asked, refused, or gave an answer that cannot be used."""

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
    """It is busy, or we ask too often. Nobody did anything wrong."""

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
    """No such model, or no such work."""

    code = "provider_not_found"


class ContentRefused(ProviderError):
    """The provider does not want to do this."""

    code = "content_refused"


class InsufficientFunds(ProviderError):
    """The account with the provider is empty."""

    code = "insufficient_funds"


class NotSupported(ProviderError):
    """This provider, or its adapter, has no such thing. Nothing was asked."""

    code = "not_supported"


class ProviderDown(ProviderError):
    """It answers, and cannot now."""

    code = "provider_down"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class ProviderTimeout(ProviderError):
    """It did not answer in time. Whether it took the work is not known."""

    code = "provider_timeout"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class ConnectionLost(ProviderError):
    """There is no connection, or it broke. Whether it took the work is not known."""

    code = "connection_lost"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class BadAnswer(ProviderError):
    """What came back cannot be read. Whether it took the work is not known."""

    code = "bad_answer"
    is_retryable = True
    is_ambiguous = True
    counts_against_breaker = True


class AnswerTooLarge(BadAnswer):
    """What came back is over the limit. It would be again."""

    code = "answer_too_large"
    is_retryable = False
    counts_against_breaker = False


def fault_of(error: ProviderError) -> Fault:
    """What is kept and shown of it."""
    return Fault(error.code, error.message, kind=type(error).__name__)


def failure_of(error: ProviderError) -> Failure:
    """What it makes of the attempt that asked."""
    return Failure(fault_of(error), error.is_retryable, error.after_s, error.is_counted)
