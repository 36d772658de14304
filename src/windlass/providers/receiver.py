"""Receives the webhooks of providers: verifies, parses and applies them, many to a commit.

    raw bytes ──► signature ──► adapter parses ──► large outputs to the artifact store ──► answer ──► reply

Nothing is parsed before the signature is verified. The provider gets its reply only after its event is durable. If this
process dies before, the provider got no reply and sends the event again. The event and its effect are one commit, so in
every process the stored id refuses a replay.

Concurrent webhooks share commits: while one is under way, the next batch gathers, as with submits.

A signed event that cannot be parsed is kept: the adapter is most likely at fault, and a corrected adapter can apply it
again. Meanwhile the poller gets the status.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

from windlass.core.errors import BadInput, BadSignature, NotFound, WindlassError
from windlass.core.external import ProviderStatus, Said, WorkKey
from windlass.engine import callback, external
from windlass.engine.external import Answer, Applied, InEvent
from windlass.engine.group_commit import GroupCommit, Waiting
from windlass.providers.adapter import WebhookNews
from windlass.providers.errors import ProviderError
from windlass.providers.output import fit_output
from windlass.providers.registry import Provider, Registry
from windlass.pure.signature import ID_LENGTH_MAX, digest_id
from windlass.store.artifact import INLINE_MAX, Artifacts
from windlass.store.database import Database

BATCH_MAX = 200
# How many headers are kept with an event: enough to verify and parse it again, never a cookie or a key.
HEADERS_MAX = 64
_NOT_KEPT = frozenset({"authorization", "cookie", "x-api-key", "proxy-authorization"})
# The query of the called address is kept among the headers, under a name that no header can have.
QUERY = ":query"
SOURCE = "webhook"

_log = logging.getLogger("windlass.providers")


class Counts(Protocol):
    """Counts webhooks."""

    def received(self, provider: str, result: str) -> None:
        """Count a webhook with its result."""
        ...


class _Large(Exception):
    """Raised for an output that must become an artifact before it is applied."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said


class Receiver:
    """Receives webhooks for the providers of a registry. `clock` returns the seconds since 1970."""

    def __init__(
        self,
        db: Database,
        registry: Registry,
        artifacts: Artifacts,
        *,
        spread: Callable[[], float],
        clock: Callable[[], float],
        inline_max: int = INLINE_MAX,
        counts: Counts | None = None,
    ) -> None:
        self._db = db
        self._registry = registry
        self._artifacts = artifacts
        self._spread = spread
        self._clock = clock
        self._inline_max = inline_max
        self._counts = counts
        self._group = GroupCommit("windlass-receiver", self._apply, _split, lanes=2)

    def check(self, name: str) -> Provider:
        """Return the provider if its webhooks are accepted. Raises NotFound if not."""
        if name not in self._registry or self._registry[name].config.webhook is None:
            raise NotFound("there is no such provider here, or it sends no webhooks", remedy="Check providers.yaml")
        return self._registry[name]

    async def receive(
        self, name: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, str] | None = None
    ) -> Applied:
        """Verify, parse and apply one webhook. Raises NotFound and BadSignature. Header names are lower case."""
        provider = self.check(name)
        try:
            id = await provider.adapter.verify_webhook(headers, body, self._clock())
        except BadSignature:
            self._count(name, "bad_signature")
            raise
        answer, needs_look = await self._read(provider, id, headers, body, query or {})
        # Not alone, if others came in the same turn of the loop.
        applied = await self._group.put_soon(answer)
        if needs_look and answer.external_id is not None:
            # Also for a replay: the process that took the first one may have died right here.
            await callback.hasten(self._db, name, answer.external_id)
        self._count(name, applied.lower())
        return applied

    async def reapply(self, name: str, event_id: str) -> Applied:
        """Parse a stored event again with the current adapter, and apply it."""
        provider = self.check(name)

        fitted: Said | None = None

        def parse(kept: Mapping[str, str], body: bytes) -> tuple[str | None, Said, WorkKey | None]:
            headers = dict(kept)
            query = dict(parse_qsl(headers.pop(QUERY, "")))
            try:
                news = _parsed(provider, headers, body, query)
            except Exception as error:
                raise BadInput(f"event {event_id} of {name} cannot be read: {_why(error)}") from error
            if fitted is None and len(news.said.output or "") * 4 > self._inline_max:
                raise _Large(news.said)
            return news.external_id, fitted or news.said, _key(news, body)

        try:
            return await external.reapply(self._db, name, event_id, parse, spread=self._spread)
        except _Large as large:
            # Nothing was written yet. The output becomes an artifact first, as with a new webhook.
            fitted = await fit_output(self._artifacts, large.said, self._inline_max)
            return await external.reapply(self._db, name, event_id, parse, spread=self._spread)

    async def _read(
        self, provider: Provider, id: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]
    ) -> tuple[Answer, bool]:
        """Build the answer of the webhook. Returns whether the provider must be polled for the result."""
        kept = dict([item for item in headers.items() if item[0] not in _NOT_KEPT][:HEADERS_MAX])
        if query:
            kept[QUERY] = urlencode(query)
        try:
            news = _parsed(provider, headers, body, query)
        except Exception as error:
            # The provider did its part, even if the adapter cannot parse the webhook.
            _log.warning("a webhook of %s cannot be read and is kept as %s: %s", provider.name, id, _why(error))
            unread = Said(ProviderStatus.UNKNOWN)
            return Answer(provider.name, None, unread, SOURCE, None, InEvent(id, kept, body)), False
        said = await fit_output(self._artifacts, news.said, self._inline_max)
        event = InEvent(_id(news, id, body), kept, body)
        answer = Answer(provider.name, news.external_id, said, SOURCE, _key(news, body), event)
        return answer, news.needs_look and not said.status.is_terminal

    async def _apply(self, answers: list[Answer]) -> list[Applied]:
        return await external.answer(self._db, answers, spread=self._spread)

    def _count(self, name: str, result: str) -> None:
        if self._counts is not None:
            self._counts.received(name, result)


def _split(waiting: Waiting[Answer, Applied]) -> tuple[Waiting[Answer, Applied], Waiting[Answer, Applied]]:
    """Split off the next batch. Of two events with one id it takes only the first, so the second finds it stored."""
    seen: set[tuple[str, str]] = set()
    batch: Waiting[Answer, Applied] = []
    rest: Waiting[Answer, Applied] = []
    for answer, future in waiting:
        key = (answer.provider, "" if answer.event is None else answer.event.id)
        chosen = batch if len(batch) < BATCH_MAX and key not in seen else rest
        seen.add(key)
        chosen.append((answer, future))
    return batch, rest


def _parsed(provider: Provider, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
    """Parse the webhook, and check the types that the adapter returned: adapters may come from other authors."""
    news: Any = provider.adapter.parse_webhook(headers, body, query)
    if not isinstance(news, WebhookNews):
        raise TypeError("the adapter returned no WebhookNews")
    given: tuple[tuple[Any, type], ...] = (
        (news.id, str),
        (news.said, Said),
        (news.external_id or "", str),
        (news.key or "", str),
    )
    if not all(isinstance(value, kind) for value, kind in given):
        raise TypeError("the adapter must return texts and a Said")
    return news


def _id(news: WebhookNews, signed: str, body: bytes) -> str:
    """Return the event's id: the signed id, or the body's own id if none was signed."""
    own = news.id
    is_own = signed == digest_id(body) and 0 < len(own) <= ID_LENGTH_MAX and own.isascii() and own.isprintable()
    return own if is_own else signed


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, WindlassError | ProviderError) else type(error).__name__


def _key(news: WebhookNews, body: bytes) -> WorkKey | None:
    """Return our key from the webhook, if the signed body contains it.

    The query of the address is not signed: with a key from there, the holder of one signed body could end any step.
    """
    return WorkKey.parse(news.key) if news.key and news.key.encode() in body else None
