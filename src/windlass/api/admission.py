"""Who asks, and whether they have asked too much: the part of the guard that speaks to `access`.

An address that sends bad credentials over and over is turned away for the rest of the minute before any verifier is
asked: guessing keys must not cost us more than it costs the one who guesses.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from starlette.requests import Request

from windlass.access.limiter import OverLimit
from windlass.access.sessions import Session
from windlass.api.browser import cookie_of
from windlass.api.parts import Parts
from windlass.api.visit import visit_of
from windlass.core.audit import AuditEvent
from windlass.core.caller import CallerContext, stranger
from windlass.core.errors import BadCsrf, Limited, Unauthenticated
from windlass.core.key import parse_key
from windlass.telemetry import logs

REFUSALS_PER_MINUTE_MAX = 600
_MINUTE_S = 60.0
_ADDRESSES_MAX = 10_000
_CREDENTIAL_MAX = 4_096
_UNREADABLE = "unreadable"
CSRF_HEADER = "x-windlass-csrf"
_SAFE = ("GET", "HEAD", "OPTIONS")


class Refusals:
    """How many bad credentials each address has sent in this minute."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._counts: dict[str, int] = {}

    def check(self, address: str, now_s: float) -> None:
        """Raise Limited for an address that has sent too many."""
        if now_s - self._since_s >= _MINUTE_S:
            self._since_s, self._counts = now_s, {}
        if self._counts.get(address, 0) >= REFUSALS_PER_MINUTE_MAX:
            raise Limited(
                "too many bad keys from this address", retry_after_s=max(1.0, self._since_s + _MINUTE_S - now_s)
            )

    def add(self, address: str) -> None:
        """Count one more. Beyond so many addresses the others are not counted: they share nothing but the minute."""
        if address in self._counts or len(self._counts) < _ADDRESSES_MAX:
            self._counts[address] = self._counts.get(address, 0) + 1


async def authenticate(request: Request, parts: Parts, *, takes_ticket: bool) -> CallerContext:
    """Who asks: by a key, by a ticket where it is taken, or by the cookie of the console."""
    check_refusals(request)
    credential = cookie = None
    try:
        credential = _credential(request)
        ticket = request.query_params.get("ticket") if takes_ticket and credential is None else None
        if ticket is not None:
            caller = await parts.tickets.spend(ticket[:_CREDENTIAL_MAX], _job_in(request))
        elif credential is not None:
            caller = await parts.verifier.verify(credential)
        elif (cookie := cookie_of(request, parts)) is not None:
            caller = (await signed_in(request, parts, cookie)).caller
        else:
            raise stranger()
    except Unauthenticated:
        refused(request, parts, "session" if cookie is not None else claimed(credential))
        # One text for all: whether a key is unknown, revoked or expired is nobody's business.
        raise stranger() from None
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


def check_refusals(request: Request) -> None:
    """Turn away an address that has sent too many bad credentials."""
    refusals: Refusals = request.app.state.refusals
    refusals.check(visit_of(request).address, asyncio.get_running_loop().time())


def refused(request: Request, parts: Parts, who: str) -> None:
    """A credential was not good: it is counted, and told to the audit."""
    visit = visit_of(request)
    refusals: Refusals = request.app.state.refusals
    refusals.add(visit.address)
    parts.audit.refused(AuditEvent.AUTH_REJECTED, who, "bad_credential", visit.request_id)


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
    """The key that was sent: X-API-Key, else a bearer token. Two that differ are nobody's."""
    key = request.headers.get("x-api-key")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else None
    if key is not None and bearer is not None and key != bearer:
        raise stranger()
    found = key if key is not None else bearer
    if found is not None and not 0 < len(found) <= _CREDENTIAL_MAX:
        raise stranger()
    return found


def _job_in(request: Request) -> UUID | None:
    text = request.path_params.get("job_id")
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
