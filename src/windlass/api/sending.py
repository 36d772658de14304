"""Sends a built file: in a coding that the browser accepts, with its tag and the policy of its page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from windlass.api.static import File, chosen
from windlass.api.tagged import is_known

# The name of such a file changes with its content. Any other file may change its content under the same name.
FOR_GOOD = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


def send_file(request: Request, file: File, policy: str, cache: str) -> Response:
    """Return the response with this file, or 304 if the browser has it."""
    coding = chosen(request.headers.get("accept-encoding", ""), file.forms)
    body = file.forms[coding]
    tag = f'"{file.tag}"' if coding == "identity" else f'"{file.tag}-{coding}"'
    headers = {
        "ETag": tag,
        "Cache-Control": cache,
        "Vary": "Accept-Encoding",
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = file.media_type
    if coding != "identity":
        headers["Content-Encoding"] = coding
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(len(body))})
    return Response(body, headers=headers)
