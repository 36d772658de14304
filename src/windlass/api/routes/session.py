"""Signs users of the console in and out. A cookie then stands for the key; see `access/sessions.py`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from windlass.access.sessions import Session, no_entry, no_session
from windlass.api.admission import accepted, charged, check_refusals, claimed, known, refused, signed_in
from windlass.api.browser import check_own_page, cookie_of, put_cookie
from windlass.api.guard import Has, RequestId, guard, guarded_router
from windlass.api.parts import Parts
from windlass.api.routes.console import VERSION, console_of
from windlass.api.wire.session import ConsolePage, Demo, SessionDocument, SignIn
from windlass.core.caller import Role
from windlass.core.errors import Unauthenticated

router = guarded_router("console")
_CODES = ("unauthenticated", "rate_limited", "membership_unavailable", "database_unavailable")


@router.post(
    "/console/session",
    operation_id="console.sign_in",
    status_code=201,
    response_model=SessionDocument,
    summary="Sign in at the console",
)
@guard(is_open=True, cost=0, operation="write", codes=(*_CODES, "bad_csrf", "bad_input", "bad_media", "too_large"))
async def sign_in(
    wish: SignIn, request: Request, answer: Response, parts: Has, request_id: RequestId
) -> SessionDocument:
    """Signs in with the token of a link, which is valid once, or with a key. Sets a cookie that no script can read.

    The cookie opens every route that the key opens, including streams. A request that changes something also needs the
    header `X-Windlass-CSRF` with the `csrf` of this response.
    """
    check_own_page(request, parts)
    given = wish.token if wish.token is not None else wish.key or ""
    check_refusals(request, given)
    former = cookie_of(request, parts)
    try:
        if wish.token is not None:
            cookie = await parts.sessions.begin_by_token(wish.token, request_id=request_id)
        else:
            key = wish.key or ""
            caller = known(request, await parts.verifier.verify(key))
            await charged(request, parts, caller, 1)
            cookie = await parts.sessions.begin_by_key(caller, key, request_id=request_id)
        session = await parts.sessions.look(cookie)
    except Unauthenticated:
        refused(request, parts, given, "link" if wish.token is not None else claimed(wish.key))
        raise no_entry() from None
    known(request, session.caller)
    accepted(request, cookie)
    if former is not None:
        await parts.sessions.end(former, request_id=request_id)
    put_cookie(request, parts, answer, cookie)
    return _document(request, parts, session)


@router.get(
    "/console/session", operation_id="console.session", response_model=SessionDocument, summary="Get the session"
)
@guard(is_open=True, cost=0, codes=_CODES)
async def session(request: Request, parts: Has) -> SessionDocument:
    """Returns the session of the cookie. A key is ignored here: without a valid cookie the response is 401."""
    cookie = cookie_of(request, parts)
    if cookie is None:
        # Every first visit to the page sends this request, so it does not count as a failed attempt.
        raise no_session()
    check_refusals(request, cookie)
    try:
        found = await signed_in(request, parts, cookie)
    except Unauthenticated:
        refused(request, parts, cookie, "session")
        raise no_session() from None
    known(request, found.caller)
    return _document(request, parts, found)


@router.delete(
    "/console/session",
    operation_id="console.sign_out",
    status_code=204,
    response_class=Response,
    summary="Sign out",
)
@guard(is_open=True, cost=0, operation="write", codes=(*_CODES, "bad_csrf"))
async def sign_out(request: Request, parts: Has, request_id: RequestId) -> Response:
    """Invalidates the cookie everywhere, and ends the streams that it opened. Also returns 204 without a session."""
    check_own_page(request, parts)
    cookie = cookie_of(request, parts)
    if cookie is not None:
        check_refusals(request, cookie)
        try:
            known(request, (await signed_in(request, parts, cookie)).caller)
        except Unauthenticated:
            refused(request, parts, cookie, "session")
        await parts.sessions.end(cookie, request_id=request_id)
    answer = Response(status_code=204)
    put_cookie(request, parts, answer, None)
    return answer


def _document(request: Request, parts: Parts, session: Session) -> SessionDocument:
    caller, demo = session.caller, parts.demo
    is_admin = caller.role is Role.ADMIN
    return SessionDocument(
        caller=caller.caller_id,
        role="admin" if is_admin else "caller",
        scopes=sorted(map(str, caller.scopes)),
        csrf=session.csrf,
        expires_at=session.expires_at,
        version=VERSION,
        console=console_of(request).build().kind,
        pages=[
            ConsolePage(
                title=page.title,
                icon=page.icon,
                path=f"/x/{extra.name}/{page.path}".rstrip("/"),
                module=f"/console/x/{extra.name}/{page.module}",
            )
            for extra in parts.extras
            for page in extra.pages
        ],
        demo=Demo(job_id=demo.job_id, can_kill=demo.can_kill) if demo is not None and is_admin else None,
    )
