"""JSON answers to browsers, compressed: a list of a hundred jobs is a tenth of its size on the wire.

Programs are left alone: most are near, all say that they take gzip, and for them it is only work. So are streams, which
must not be held back, and whatever is small. What is secret stands in small answers only, and no other origin can make
a browser ask with the cookie: nobody learns a secret from how well it compresses.
"""

from __future__ import annotations

import zlib

from starlette.requests import Request
from starlette.responses import Response

from windlass.api.static import chosen

BYTES_MIN = 2_048
# A quarter of a millisecond for a hundred jobs; more effort saves little.
_LEVEL = 1
_GZIP = 31


def for_browsers(request: Request, answer: Response) -> Response:
    """The same answer, smaller if that is of use."""
    body = getattr(answer, "body", b"")
    headers = answer.headers
    if (
        len(body) < BYTES_MIN
        or not headers.get("content-type", "").startswith("application/json")
        or "content-encoding" in headers
        or not _is_browser(request)
    ):
        return answer
    headers.add_vary_header("Accept-Encoding")
    if chosen(request.headers.get("accept-encoding", ""), {"gzip": b""}) == "gzip":
        answer.body = zlib.compress(body, _LEVEL, _GZIP)
        headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(answer.body))
        if (tag := headers.get("etag", "W/")).startswith('"'):
            # The same content in other bytes.
            headers["ETag"] = f"W/{tag}"
    return answer


def _is_browser(request: Request) -> bool:
    return "sec-fetch-site" in request.headers or "cookie" in request.headers
