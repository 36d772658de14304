"""Webhooks of providers: verified as they came, read, and applied, many to a commit.

    raw bytes ──► signature ──► adapter reads them ──► large outputs to the artifact store ──► answer ──► the answer

Nothing is parsed before the signature is good. The provider is answered only after its own event is durable, so one
whose event was lost with this process got no answer, and sends it again. The event and its effect are one commit: a
replay is refused by the id that the commit stored, whichever process it comes to.

Concurrent webhooks share commits: while one is under way, the next batch gathers, as with submits.

An event that is signed and cannot be read is kept: the fault is most likely in the adapter, and with a better one it
can be applied again. The poller finds out meanwhile.
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
from windlass.providers.fitting import fitting
from windlass.providers.registry import Provider, Registry
from windlass.pure.signature import ID_LENGTH_MAX, digest_id
from windlass.store.artifact import INLINE_MAX, Artifacts
from windlass.store.database import Database

BATCH_MAX = 200
# What of the headers is kept with an event: enough to verify and read it again, never a cookie or a key.
HEADERS_MAX = 64
_NOT_KEPT = frozenset({"authorization", "cookie", "x-api-key", "proxy-authorization"})
# The query of the address that was called is kept among the headers, under a name that none can have.
QUERY = ":query"
SOURCE = "webhook"

_log = logging.getLogger("windlass.providers")


class Counts(Protocol):
    """Who counts webhooks."""

    def received(self, provider: str, result: str) -> None:
        """A webhook came, and this became of it."""
        ...


class _Large(Exception):
    """An output that must be put away before it is applied."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said


class Receiver:
    """Takes webhooks for the providers of a registry. `clock` gives the seconds since 1970."""

    def __init__(
        self,
        db: Database,
        registry: Registry,
        artifacts: Artifacts,
        *,
        chance: Callable[[], float],
        clock: Callable[[], float],
        inline_max: int = INLINE_MAX,
        counts: Counts | None = None,
    ) -> None:
        self._db = db
        self._registry = registry
        self._artifacts = artifacts
        self._chance = chance
        self._clock = clock
        self._inline_max = inline_max
        self._counts = counts
        self._group = GroupCommit("windlass-receiver", self._apply, _split)

    def check(self, name: str) -> Provider:
        """The provider, if webhooks of it are taken; NotFound if not."""
        if name not in self._registry or self._registry[name].config.webhook is None:
            raise NotFound("there is no such provider here, or it sends no webhooks", remedy="Look at providers.yaml")
        return self._registry[name]

    async def receive(
        self, name: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, str] | None = None
    ) -> Applied:
        """Verify, read and apply one webhook; raises NotFound and BadSignature. Header names are in small letters."""
        provider = self.check(name)
        try:
            id = await provider.adapter.verify_webhook(headers, body, self._clock())
        except BadSignature:
            self._count(name, "bad_signature")
            raise
        answer, needs_look = await self._read(provider, id, headers, body, query or {})
        applied = await self._group.put(answer)
        if needs_look and answer.external_id is not None:
            # Also for a replay: whoever took the first one may have died right here.
            await callback.hasten(self._db, name, answer.external_id)
        self._count(name, applied.lower())
        return applied

    async def reapply(self, name: str, event_id: str) -> Applied:
        """Read an event that was kept once more, with the adapter as it is now, and apply it."""
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
            return await external.reapply(self._db, name, event_id, parse, chance=self._chance)
        except _Large as large:
            # Nothing was written yet. Its output is put away first, as when it came.
            fitted = await fitting(self._artifacts, large.said, self._inline_max)
            return await external.reapply(self._db, name, event_id, parse, chance=self._chance)

    async def _read(
        self, provider: Provider, id: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]
    ) -> tuple[Answer, bool]:
        """What the webhook says, and whether the provider must be asked to know the rest."""
        kept = dict([item for item in headers.items() if item[0] not in _NOT_KEPT][:HEADERS_MAX])
        if query:
            kept[QUERY] = urlencode(query)
        try:
            news = _parsed(provider, headers, body, query)
        except Exception as error:
            # Whatever an adapter stumbles over, the provider did its part.
            _log.warning("a webhook of %s cannot be read and is kept as %s: %s", provider.name, id, _why(error))
            unread = Said(ProviderStatus.UNKNOWN)
            return Answer(provider.name, None, unread, SOURCE, None, InEvent(id, kept, body)), False
        said = await fitting(self._artifacts, news.said, self._inline_max)
        event = InEvent(_id(news, id, body), kept, body)
        answer = Answer(provider.name, news.external_id, said, SOURCE, _key(news, body), event)
        return answer, news.needs_look and not said.status.is_terminal

    async def _apply(self, answers: list[Answer]) -> list[Applied]:
        return await external.answer(self._db, answers, chance=self._chance)

    def _count(self, name: str, result: str) -> None:
        if self._counts is not None:
            self._counts.received(name, result)


def _split(waiting: Waiting[Answer, Applied]) -> tuple[Waiting[Answer, Applied], Waiting[Answer, Applied]]:
    """The next batch: of two with one id only the first, so that the second finds it stored."""
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
    """What the adapter makes of it, if that is what an adapter may say: others write adapters too."""
    news: Any = provider.adapter.parse_webhook(headers, body, query)
    if not isinstance(news, WebhookNews):
        raise TypeError("the adapter gave no WebhookNews")
    given: tuple[tuple[Any, type], ...] = (
        (news.id, str),
        (news.said, Said),
        (news.external_id or "", str),
        (news.key or "", str),
    )
    if not all(isinstance(value, kind) for value, kind in given):
        raise TypeError("the adapter gave something else than texts and a Said")
    return news


def _id(news: WebhookNews, signed: str, body: bytes) -> str:
    """The event's id: the one that was signed with it. Where none was, the body may have one of its own."""
    own = news.id
    is_own = signed == digest_id(body) and 0 < len(own) <= ID_LENGTH_MAX and own.isascii() and own.isprintable()
    return own if is_own else signed


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, WindlassError | ProviderError) else type(error).__name__


def _key(news: WebhookNews, body: bytes) -> WorkKey | None:
    """The key of our own that came back, if it stands in the body.

    In the query of the address nobody signed it: there it would let whoever holds one signed body end any step.
    """
    return WorkKey.parse(news.key) if news.key and news.key.encode() in body else None
