"""Who asks, and whether they have asked too much: the part of the guard that speaks to `access`.

An address that sends bad credentials over and over is turned away for the rest of the minute before any verifier is
asked: a guess must not cost the server more than it costs the guesser. Clients share addresses, so this must not lock
out the others: a credential that was good here before is still verified, a request without any credential is not
counted, and neither is one that a page of another site made a browser send.
"""

from __future__ import annotations

import asyncio
import hashlib
from uuid import UUID

from starlette.requests import Request

from windlass.access.limiter import OverLimit
from windlass.access.sessions import Session
from windlass.api.address import network_of
from windlass.api.browser import cookie_of, is_foreign
from windlass.api.parts import Parts
from windlass.api.visit import visit_of
from windlass.core.caller import CallerContext, stranger
from windlass.core.errors import BadCsrf, BadRequest, Limited, Unauthenticated
from windlass.pure.audit import AuditEvent
from windlass.pure.key import parse_key
from windlass.telemetry import logs

REFUSALS_PER_MINUTE_MAX = 600
_MINUTE_S = 60.0
_ADDRESSES_MAX = 10_000
_GOOD_MAX = 10_000
_CREDENTIAL_MAX = 4_096
_UNREADABLE = "unreadable"
CSRF_HEADER = "x-windlass-csrf"
_SAFE = ("GET", "HEAD", "OPTIONS")


class Refusals:
    """How many bad credentials each address has sent in this minute, and which credentials were good here."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._counts: dict[str, int] = {}
        # Digests, the one that was used longest ago first.
        self._good: dict[bytes, None] = {}

    def check(self, address: str, credential: str, now_s: float) -> None:
        """Raise Limited for an address that has sent too many, unless this credential is known to be good."""
        if now_s - self._since_s >= _MINUTE_S:
            self._since_s, self._counts = now_s, {}
        is_over = self._counts.get(network_of(address), 0) >= REFUSALS_PER_MINUTE_MAX
        if is_over and _digest(credential) not in self._good:
            raise Limited(
                "too many bad keys from this address", retry_after_s=max(1.0, self._since_s + _MINUTE_S - now_s)
            )

    def add(self, address: str, credential: str) -> None:
        """Count a bad one. Beyond so many addresses the others are not counted: they share nothing but the minute."""
        self._good.pop(_digest(credential), None)
        network = network_of(address)
        if network in self._counts or len(self._counts) < _ADDRESSES_MAX:
            self._counts[network] = self._counts.get(network, 0) + 1

    def good(self, credential: str) -> None:
        """Remember a good one."""
        digest = _digest(credential)
        self._good.pop(digest, None)
        self._good[digest] = None
        if len(self._good) > _GOOD_MAX:
            del self._good[next(iter(self._good))]


def _digest(credential: str) -> bytes:
    return hashlib.blake2b(credential.encode(errors="surrogateescape"), digest_size=16).digest()


async def authenticate(request: Request, parts: Parts, *, takes_ticket: bool) -> CallerContext:
    """Who asks: by a key, by a ticket where it is taken, or by the cookie of the console."""
    credential = _credential(request)
    ticket = request.query_params.get("ticket") if takes_ticket and credential is None else None
    cookie = cookie_of(request, parts) if credential is None and ticket is None else None
    given = credential if credential is not None else ticket if ticket is not None else cookie
    if given is None:
        _note_refused(request, parts, claimed(None))
        raise stranger()
    check_refusals(request, given)
    try:
        if ticket is not None:
            caller = await parts.tickets.spend(ticket[:_CREDENTIAL_MAX], _job_in(request))
        elif cookie is not None:
            caller = (await signed_in(request, parts, cookie)).caller
        elif 0 < len(given) <= _CREDENTIAL_MAX:
            caller = await parts.verifier.verify(given)
        else:
            raise stranger()
    except Unauthenticated:
        refused(request, parts, given, "session" if cookie is not None else claimed(credential))
        # One text for all: whether a key is unknown, revoked or expired is nobody's business.
        raise stranger() from None
    if ticket is None:
        accepted(request, given)
    return known(request, caller)


async def signed_in(request: Request, parts: Parts, cookie: str) -> Session:
    """Whose cookie this is. What changes something must also carry what only the console's own page was told."""
    session = await parts.sessions.look(cookie)
    if request.method not in _SAFE and not session.is_sent_with(request.headers.get(CSRF_HEADER, "")):
        who = session.caller.key_id or session.caller.caller_id
        parts.audit.refused(AuditEvent.AUTH_REJECTED, who, BadCsrf.code, visit_of(request).request_id)
        raise BadCsrf("a change that is made with the cookie needs the session's csrf")
    return session


def known(request: Request, caller: CallerContext) -> CallerContext:
    """From here on it is known who asks."""
    visit_of(request).caller = caller
    logs.caller.set(caller.caller_id)
    return caller


def check_refusals(request: Request, credential: str) -> None:
    """Turn away an address that has sent too many bad credentials, unless this one is known to be good."""
    refusals: Refusals = request.app.state.refusals
    refusals.check(visit_of(request).address, credential, asyncio.get_running_loop().time())


def accepted(request: Request, credential: str) -> None:
    """Remember a credential that was good and will be used again."""
    refusals: Refusals = request.app.state.refusals
    refusals.good(credential)


def refused(request: Request, parts: Parts, credential: str, who: str) -> None:
    """Count a bad credential, and note it in the audit."""
    refusals: Refusals = request.app.state.refusals
    if not is_foreign(request, parts):
        refusals.add(visit_of(request).address, credential)
    _note_refused(request, parts, who)


def _note_refused(request: Request, parts: Parts, who: str) -> None:
    parts.audit.refused(AuditEvent.AUTH_REJECTED, who, "bad_credential", visit_of(request).request_id)


def claimed(credential: str | None) -> str:
    """Which key it says it is, for the audit: the public part of what has the form of one."""
    if credential is None:
        return "none"
    key = parse_key(credential)
    return _UNREADABLE if key is None else key.id


async def charged(request: Request, parts: Parts, caller: CallerContext, cost: int) -> None:
    """Count a request against its caller's limit, and note what is left for the answer."""
    visit = visit_of(request)
    try:
        visit.headers = (await parts.limiter.admit(caller, cost)).headers
    except OverLimit as error:
        visit.headers = error.window.headers
        parts.audit.refused(AuditEvent.RATE_LIMIT_HIT, caller.caller_id, error.code, visit.request_id)
        raise


def _credential(request: Request) -> str | None:
    """The key that was sent: X-API-Key, or a bearer token. Different keys are refused: which one counts is unclear."""
    found = list(request.headers.getlist("x-api-key"))
    for line in request.headers.getlist("authorization"):
        scheme, _, token = line.partition(" ")
        if scheme.lower() == "bearer":
            found.append(token.strip())
    if len(set(found)) > 1:
        raise BadRequest("the request has two different keys", remedy="Send one key, in one header")
    return found[0] if found else None


def _job_in(request: Request) -> UUID | None:
    text = request.path_params.get("job_id")
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
