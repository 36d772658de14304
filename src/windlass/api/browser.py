"""Reads what a browser's request says about itself: the page it comes from, whether it uses TLS, and its cookie.

The cookie counts only for requests from pages of this exact origin. SameSite excludes other sites, but all ports of a
host are one site. On a developer's machine the next port may well serve a foreign page.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from windlass.access.sessions import LIFE_S
from windlass.api.parts import Parts
from windlass.core.errors import BadCsrf

# Browsers accept a cookie with this prefix only from this exact host and over TLS, so a neighbouring host cannot set
# it.
_OWN_HOST = "__Host-"
_OURS = ("same-origin", "none")


def cookie_of(request: Request, parts: Parts) -> str | None:
    """Return the session's cookie if the request has it and comes from our own page."""
    if request.headers.get("sec-fetch-site", "none") not in _OURS:
        return None
    prefix = _prefix(request, parts)
    given = request.cookies
    return next((given[prefix + name] for name in parts.sessions.names if given.get(prefix + name)), None)


def put_cookie(request: Request, parts: Parts, answer: Response, cookie: str | None) -> None:
    """Set the session's cookie in the browser, or delete it if `cookie` is None."""
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
    """Return whether a page of another site sent the request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OURS
    # Over plain HTTP browsers send only this header.
    origin = request.headers.get("origin")
    ours = {_asked_host(request), _host(parts.settings.public_url or "")} - {""}
    return origin is not None and _host(origin) not in ours


def check_own_page(request: Request, parts: Parts) -> None:
    """Refuse requests from pages of other sites: no other page may sign a user in or out."""
    if is_foreign(request, parts):
        raise BadCsrf(
            "this was sent by a page of another site",
            remedy="Use the console of this server; behind a proxy that changes Host, set public_url",
        )


def _prefix(request: Request, parts: Parts) -> str:
    return _OWN_HOST if _is_secure(request, parts) else ""


def _is_secure(request: Request, parts: Parts) -> bool:
    """Return whether the browser uses TLS: to this server, to a trusted proxy, or to the public URL."""
    if request.url.scheme == "https":
        return True
    if request.client is not None and request.client.host in parts.settings.proxies:
        # The nearest proxy writes last, whether to the same line or to a new line.
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
