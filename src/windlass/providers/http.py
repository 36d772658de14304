"""Sends one request to a provider, within limits of time and size. Every problem is raised as a ProviderError.

Redirects are not followed and no request leaves the provider's own address, because each carries the credential. The
time limit covers the whole request: a provider that sends one byte a second is as late as a silent one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

import msgspec

from windlass.core.errors import BadSetting
from windlass.providers.config import ProviderConfig
from windlass.providers.errors import (
    AnswerTooLarge,
    AuthFailed,
    BadAnswer,
    ConnectionLost,
    ContentRefused,
    InsufficientFunds,
    InvalidRequest,
    NotFound,
    ProviderDown,
    ProviderError,
    ProviderTimeout,
    RateLimited,
)
from windlass.providers.words import CONTENT_REFUSED, INSUFFICIENT_FUNDS, RATE_LIMITED, codes_in, meaning_of

try:
    import httpx

    from windlass.providers import pool
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "providers need httpx: pip install 'windlass[providers]'", name=missing.name, path=missing.path
    ) from None

CONNECT_WITHIN_S = 5.0
CONNECTIONS_MAX = 64
_TOLD_MAX = 300
_TOLD_IN = ("error", "detail", "message", "msg", "title", "errors")
_TIMED_OUT = (408, 425, 504, 524)

Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of any status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_fine(self) -> bool:
        """Whether the status is a 2xx."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Return the JSON value. Raises BadAnswer if the body is not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            kind = self.headers.get("content-type", "no type")
            raise BadAnswer(f"the answer ({self.status}, {kind[:80]}) is not JSON", status=self.status) from None

    def table(self) -> dict[str, Any]:
        """Return the JSON object. Raises BadAnswer for any other value."""
        value = self.json()
        if not isinstance(value, dict):
            raise BadAnswer(f"the answer is a {type(value).__name__} where an object was expected", status=self.status)
        return value


class Line:
    """The connections to one provider."""

    def __init__(
        self,
        config: ProviderConfig,
        *,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        answer_max_bytes: int | None = None,
        now: Now = lambda: datetime.now(UTC),
    ) -> None:
        address = config.base_url or base_url
        if address is None:
            raise BadSetting(f"providers.{config.name}: has no `base_url`", remedy="Add `base_url` to the provider")
        self._name = config.name
        self._base_url = address.rstrip("/")
        self._origin = _origin(self._base_url)
        self._within_s = config.timeout_s
        self._answer_max_bytes = answer_max_bytes or config.answer_max_bytes
        self._now = now
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)
        self._credential = config.credential.reveal() if config.credential is not None else None
        scheme, host, _ = self._origin
        is_proxied = host not in ("localhost", "127.0.0.1", "::1") and pool.is_proxied(scheme, host)
        self._http = httpx.AsyncClient(
            headers={"user-agent": f"windlass/{_version()}", "accept": "application/json", **(headers or {})},
            timeout=httpx.Timeout(config.timeout_s, connect=min(CONNECT_WITHIN_S, config.timeout_s)),
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
            follow_redirects=False,
            verify=_certificates(),
            transport=None if is_proxied else pool.Pool(_certificates()),
            trust_env=is_proxied,
        )

    def __repr__(self) -> str:
        return f"Line({self._name!r}, {self._base_url!r})"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def url(self, path: str) -> str:
        """Build the address of a path, or check that an address from the provider is its own."""
        if "://" not in path:
            return f"{self._base_url}/{path.lstrip('/')}"
        if _origin(path) != self._origin:
            raise BadAnswer(f"{self._name} redirects to another address; the credential is not sent there")
        return path

    async def ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        files: Any = None,
        data: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request and return its answer, of any status.

        Raises ProviderTimeout, ConnectionLost, AnswerTooLarge.
        """
        sent = dict(headers or {})
        content = None
        if json is not None:
            content = msgspec.json.encode(json)
            sent["content-type"] = "application/json"
        url = self.url(path)
        try:
            # Waiting for a free connection does not count as the provider's time.
            async with (
                self._places,
                asyncio.timeout(self._within_s),
                self._http.stream(
                    method, url, content=content, headers=sent, params=query, files=files, data=data
                ) as answer,
            ):
                body = await self._read(answer)
        except pool.TIMEOUTS:
            raise ProviderTimeout(f"{self._name} did not answer within {self._within_s:g} s") from None
        except pool.LOSSES as error:
            raise ConnectionLost(f"{self._name} cannot be reached: {self._told(error)}") from None
        except (httpx.InvalidURL, httpx.DecodingError, UnicodeError, ValueError) as error:
            raise BadAnswer(f"{self._name}: {self._told(error)}") from None
        return Answer(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, body)

    async def take(self, method: str, path: str, **more: Any) -> Answer:
        """Send one request and return its 2xx answer. Raises the error of any other status."""
        answer = await self.ask(method, path, **more)
        if not answer.is_fine:
            self.refuse(answer)
        return answer

    def refuse(self, answer: Answer) -> NoReturn:
        """Raise the error of an answer that is not a success."""
        raise error_of(answer, self._name, told=self.clean(told_of(answer)), now=self._now())

    def clean(self, text: str) -> str:
        """Remove our credential from a provider's text, in case the provider repeated it."""
        return text.replace(self._credential, "…") if self._credential else text

    def _told(self, error: Exception) -> str:
        return self.clean(str(error) or type(error).__name__)

    async def _read(self, answer: httpx.Response) -> bytes:
        parts, size = [], 0
        async for part in answer.aiter_bytes():
            size += len(part)
            if size > self._answer_max_bytes:
                raise AnswerTooLarge(
                    f"the answer of {self._name} is over {self._answer_max_bytes:,} bytes; see `answer_max_bytes`",
                    status=answer.status_code,
                )
            parts.append(part)
        return b"".join(parts)


def error_of(answer: Answer, name: str, *, told: str, now: datetime) -> ProviderError:
    """Return the error for a status: 429 waits, other 4xx are final, 5xx may pass."""
    status = answer.status
    message = f"{name} answered {status}" + (f": {told}" if told else "")
    after_s = retry_after_s(answer.headers, now)
    meaning = meaning_of(codes_of(answer)) if 400 <= status < 500 else None
    if meaning == INSUFFICIENT_FUNDS:
        # Some providers report it with a 429; waiting does not fill an account.
        return InsufficientFunds(message, status=status)
    if status == 429 or meaning == RATE_LIMITED:
        return RateLimited(message, after_s=after_s, status=status)
    if meaning == CONTENT_REFUSED:
        return ContentRefused(message, status=status)
    if status in _TIMED_OUT:
        return ProviderTimeout(message, after_s=after_s, status=status)
    if status >= 500:
        return ProviderDown(message, after_s=after_s, status=status)
    if status == 409:
        # A request with our key is under way: most likely our own, whose reply was lost. Giving up now would leave the
        # work behind.
        return ProviderError(message, code="conflict", is_retryable=True, is_ambiguous=True, status=status)
    if 300 <= status < 400:
        return InvalidRequest(f"{name} points elsewhere ({status}); its `base_url` is not right", status=status)
    kinds: dict[int, type[ProviderError]] = {
        401: AuthFailed, 402: InsufficientFunds, 403: AuthFailed, 404: NotFound, 410: NotFound,
    }  # fmt: skip
    return kinds.get(status, InvalidRequest)(message, status=status)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait that the answer asks for, in seconds or as an HTTP date."""
    millis = headers.get("retry-after-ms", "").strip()
    if millis.isascii() and millis.isdigit() and len(millis) < 12:
        return min(int(millis) / 1000, 86400.0)
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(seconds, 0.0), 86400.0) if seconds == seconds else None


def told_of(answer: Answer) -> str:
    """Return the reason for a refusal, in one line: from the usual fields, else the raw text."""
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        value = answer.body[: 4 * _TOLD_MAX].decode("utf-8", "replace")
        return " ".join(value.split())[:_TOLD_MAX]
    return message_in(value)


def codes_of(answer: Answer) -> list[object]:
    """Return the error codes in an answer that is not a success."""
    try:
        return codes_in(msgspec.json.decode(answer.body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return []


def message_in(value: Any) -> str:
    """Return the human-readable sentence in a provider's error."""
    for _ in range(4):
        if isinstance(value, dict):
            value = next(
                (value[k] for k in ("error", "detail", "message", "msg", "title", "errors") if value.get(k)), ""
            )
        elif isinstance(value, list):
            value = value[0] if value else ""
        else:
            break
    return " ".join(str(value).split())[:_TOLD_MAX] if isinstance(value, str | int | float) else ""


def path_part(text: str) -> str:
    """Encode a text as one part of a path."""
    return quote(text, safe="")


def path_parts(text: str) -> str:
    """Encode a text of several parts (`owner/name`), none of which leads upwards."""
    parts = [quote(part, safe=":@") for part in text.strip("/").split("/")]
    if not all(parts) or any(part in (".", "..") for part in parts):
        raise InvalidRequest(f"{text[:100]!r} cannot be part of an address")
    return "/".join(parts)


@cache
def _certificates() -> ssl.SSLContext:
    """Return the trusted certificates. Loading them takes tens of milliseconds, so all providers share them."""
    return httpx.create_ssl_context()


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        raise BadAnswer("an address of the provider cannot be read") from None
    return parts.scheme, (parts.hostname or "").lower(), port


def _version() -> str:
    try:
        return version("windlass")
    except PackageNotFoundError:
        return "unknown"
