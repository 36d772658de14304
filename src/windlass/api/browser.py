"""What a browser's request says of itself: which page it comes from, over what, and with whose cookie.

The cookie counts only for requests of pages of this very origin. SameSite leaves out other sites, but all ports of a
host are one site, and on a developer's machine somebody else's page may well be on the next port.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from windlass.access.sessions import LIFE_S
from windlass.api.parts import Parts
from windlass.core.errors import BadCsrf

# A browser takes a cookie of such a name from this very host and over TLS only, whatever a neighbour tries.
_OWN_HOST = "__Host-"
_OURS = ("same-origin", "none")


def cookie_of(request: Request, parts: Parts) -> str | None:
    """The session's cookie, if there is one and the page that sends it is ours."""
    if request.headers.get("sec-fetch-site", "none") not in _OURS:
        return None
    prefix = _prefix(request, parts)
    given = request.cookies
    return next((given[prefix + name] for name in parts.sessions.names if given.get(prefix + name)), None)


def put_cookie(request: Request, parts: Parts, answer: Response, cookie: str | None) -> None:
    """Let the browser keep the session's cookie, or with None forget it."""
    prefix = _prefix(request, parts)
    for name in parts.sessions.names[: 1 if cookie is not None else None]:
        answer.set_cookie(
            prefix + name,
            cookie or "",
            max_age=int(LIFE_S) if cookie is not None else 0,
            path="/",
            secure=bool(prefix),
            httponly=True,
            samesite="strict",
        )


def is_foreign(request: Request, parts: Parts) -> bool:
    """Whether a page of another site sent the request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OURS
    # Over plain HTTP browsers say only this.
    origin = request.headers.get("origin")
    ours = {_asked_host(request), _host(parts.settings.public_url or "")} - {""}
    return origin is not None and _host(origin) not in ours


def check_own_page(request: Request, parts: Parts) -> None:
    """Refuse what another site's page sends: no other page may sign a user in or out."""
    if is_foreign(request, parts):
        raise BadCsrf(
            "this was sent by a page of another site",
            remedy="Use the console of this server; behind a proxy that changes Host, set public_url",
        )


def _prefix(request: Request, parts: Parts) -> str:
    return _OWN_HOST if _is_secure(request, parts) else ""


def _is_secure(request: Request, parts: Parts) -> bool:
    """Whether the browser speaks TLS: to us, to a proxy that is believed, or to the address that is made public."""
    if request.url.scheme == "https":
        return True
    if request.client is not None and request.client.host in parts.settings.proxies:
        # The nearest proxy writes last, whether to the same line or to one of its own.
        told = ",".join(request.headers.getlist("x-forwarded-proto")).rpartition(",")[2].strip().lower()
        if told:
            return told == "https"
    public = parts.settings.public_url or ""
    return public.startswith("https:") and _host(public) == _asked_host(request)


def _asked_host(request: Request) -> str:
    return request.headers.get("host", "").lower()


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""
