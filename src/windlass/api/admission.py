"""Authenticates requests and enforces the callers' rate limits: the part of the guard that uses `access`.

An address that repeatedly sends bad credentials is refused for the rest of the minute, before a verifier is called. A
guess must not cost the server more than it costs the guesser.

Clients share addresses, so this must not lock out other clients. A credential that was accepted here before is still
verified. Requests without a credential are not counted, and neither are requests that a page of another site made a
browser send.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from uuid import UUID

from starlette.requests import Request

from windlass.access.limiter import OverLimit
from windlass.access.sessions import Session
from windlass.api.address import network_of
from windlass.api.browser import cookie_of, is_foreign
from windlass.api.parts import Parts
from windlass.api.visit import visit_of
from windlass.core.caller import CallerContext, stranger
from windlass.core.errors import BadCsrf, BadRequest, Limited, Unauthenticated, Unavailable
from windlass.core.limit import full
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
    """Counts the bad credentials of each address in this minute, and remembers the credentials that were accepted."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._counts: dict[str, int] = {}
        # Digests, the least recently used first.
        self._good: dict[bytes, None] = {}

    def check(self, address: str, credential: str, now_s: float) -> None:
        """Raise Limited after too many bad credentials of an address, unless this credential is known to be good."""
        if now_s - self._since_s >= _MINUTE_S:
            self._since_s, self._counts = now_s, {}
        is_over = self._counts.get(network_of(address), 0) >= REFUSALS_PER_MINUTE_MAX
        if is_over and _digest(credential) not in self._good:
            window = full(REFUSALS_PER_MINUTE_MAX, _MINUTE_S, self._since_s + _MINUTE_S - now_s)
            raise OverLimit(window, "too many bad keys from this address")

    def add(self, address: str, credential: str) -> None:
        """Count a bad credential.

        Networks beyond the first `_ADDRESSES_MAX` of a minute are not counted. The counts of different networks are
        independent of each other.
        """
        self._good.pop(_digest(credential), None)
        network = network_of(address)
        if network in self._counts or len(self._counts) < _ADDRESSES_MAX:
            self._counts[network] = self._counts.get(network, 0) + 1

    def good(self, credential: str) -> None:
        """Remember an accepted credential."""
        digest = _digest(credential)
        self._good.pop(digest, None)
        self._good[digest] = None
        if len(self._good) > _GOOD_MAX:
            del self._good[next(iter(self._good))]


def _digest(credential: str) -> bytes:
    return hashlib.blake2b(credential.encode(errors="surrogateescape"), digest_size=16).digest()


async def authenticate(request: Request, parts: Parts, *, takes_ticket: bool) -> CallerContext:
    """Return the caller that a key, a ticket (on routes that take tickets) or the console's cookie belongs to."""
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
        # All refusals have the same text: a stranger must not learn whether a key is unknown, revoked or expired.
        raise stranger() from None
    if ticket is None:
        accepted(request, given)
        await parts.audit.know(caller)
    return known(request, caller)


async def signed_in(request: Request, parts: Parts, cookie: str) -> Session:
    """Return the session of a cookie.

    A request that changes something must also carry the CSRF token, which only the console's own page received.
    """
    session = await parts.sessions.look(cookie)
    if request.method not in _SAFE and not session.is_sent_with(request.headers.get(CSRF_HEADER, "")):
        who = session.caller.key_id or session.caller.caller_id
        parts.audit.refused(AuditEvent.AUTH_REJECTED, who, BadCsrf.code, visit_of(request).request_id)
        raise BadCsrf("a change with the cookie needs the session's csrf")
    return session


def known(request: Request, caller: CallerContext) -> CallerContext:
    """Set the caller of the request, also in the log context, and return it."""
    visit_of(request).caller = caller
    logs.caller.set(caller.caller_id)
    return caller


def check_refusals(request: Request, credential: str) -> None:
    """Raise Limited after too many bad credentials of an address, unless this credential is known to be good."""
    refusals: Refusals = request.app.state.refusals
    refusals.check(visit_of(request).address, credential, asyncio.get_running_loop().time())


def accepted(request: Request, credential: str) -> None:
    """Remember an accepted credential that the client will use again."""
    refusals: Refusals = request.app.state.refusals
    refusals.good(credential)


def refused(request: Request, parts: Parts, credential: str, who: str) -> None:
    """Count a bad credential, and write it to the audit."""
    refusals: Refusals = request.app.state.refusals
    if not is_foreign(request, parts):
        refusals.add(visit_of(request).address, credential)
    _note_refused(request, parts, who)


def _note_refused(request: Request, parts: Parts, who: str) -> None:
    parts.audit.refused(AuditEvent.AUTH_REJECTED, who, "bad_credential", visit_of(request).request_id)


def claimed(credential: str | None) -> str:
    """Return the key id that a credential claims, for the audit: the public part of a well-formed key."""
    if credential is None:
        return "none"
    key = parse_key(credential)
    return _UNREADABLE if key is None else key.id


async def charged(request: Request, parts: Parts, caller: CallerContext, cost: int) -> None:
    """Count a request against its caller's limit, and set the response headers that show the remaining limit."""
    visit_of(request).headers = (await parts.limiter.admit(caller, cost)).lines


async def limited(request: Request, parts: Parts, error: Limited) -> None:
    """Count and audit a request that is refused with 429, and set the headers that show the remaining limit."""
    visit = visit_of(request)
    parts.meters.limited(error.code)
    if visit.caller is not None:
        parts.audit.refused(AuditEvent.RATE_LIMIT_HIT, visit.caller.caller_id, error.code, visit.request_id)
    if isinstance(error, OverLimit):
        visit.headers = error.window.lines
    elif visit.caller is not None and not visit.headers:
        # The request was refused for another reason before it was counted.
        with suppress(Unavailable):
            visit.headers = (await parts.limiter.admit(visit.caller, 0)).lines


def _credential(request: Request) -> str | None:
    """Return the key from X-API-Key or a bearer token.

    A request with different keys is refused, because it is unclear which key counts.
    """
    found: list[str] = []
    for name, value in request.scope["headers"]:
        if name == b"x-api-key":
            found.append(value.decode("latin-1"))
        elif name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() == "bearer":
                found.append(token.strip())
    if len(found) > 1 and len(set(found)) > 1:
        raise BadRequest("the request has two different keys", remedy="Send one key, in one header")
    return found[0] if found else None


def _job_in(request: Request) -> UUID | None:
    text = request.path_params.get("job_id")
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
