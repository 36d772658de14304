"""HTML pages for people: a list of the API's routes, and a page for each kind of problem. They load no other files."""

from __future__ import annotations

from html import escape

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from windlass.api.guard import guard, guarded_router
from windlass.api.openapi import document_of
from windlass.core.errors import NotFound
from windlass.pure.problem import KINDS

router = guarded_router("docs")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;"
    "background:#fff}code{background:#f2f2f2;padding:.1em .3em}td,th{padding:.3em .8em .3em 0;text-align:left;"
    "vertical-align:top}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code{background:#333}"
    "a{color:#8cf}}"
)
# The page loads no files and runs no scripts; its style is inline.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@router.get("/openapi.json", operation_id="docs.openapi", summary="The API as OpenAPI 3.1", include_in_schema=False)
@guard(is_open=True, cost=0)
async def openapi(request: Request) -> Response:
    """The document from which clients are generated."""
    return Response(document_of(request.app), media_type="application/json")


@router.get("/openapi", operation_id="docs.page", summary="The API for people", include_in_schema=False)
@guard(is_open=True, cost=0)
async def routes(request: Request) -> Response:
    """Lists every route with one sentence."""
    rows = [
        f"<tr><td>{method}<td><code>{escape(path)}</code><td>{escape(operation['summary'])}"
        for path, methods in request.app.openapi()["paths"].items()
        for method, operation in ((name.upper(), one) for name, one in methods.items())
    ]
    body = (
        "<h1>Windlass</h1><p>The API of this server. The full description for programs: "
        '<a href="/openapi.json">openapi.json</a>.</p><table><tr><th>method<th>path<th>purpose'
        f"{''.join(rows)}</table><h2>Problems</h2><ul>"
        + "".join(f'<li><a href="/problems/{code}">{code}</a>: {escape(row.title)}' for code, row in KINDS.items())
        + "</ul>"
    )
    return plain_page("API", body)


@router.get("/problems/{code}", operation_id="docs.problem", summary="A kind of problem", include_in_schema=False)
@guard(is_open=True, cost=0, codes=("not_found",))
async def problem(code: str = Path(description="A problem's code.")) -> Response:
    """Explains a problem and what to do about it."""
    row = KINDS.get(code)
    if row is None:
        raise NotFound("there is no such problem")
    again = "The same request may succeed later." if row.is_retryable else "The same request fails again."
    about = escape(" ".join((row.error.__doc__ or "").split()))
    return plain_page(
        row.title,
        f"<h1>{escape(row.title)}</h1><p><code>{row.code}</code>, status {row.status}</p><p>{about}</p>"
        f"<p>{escape(row.hint)} {again}</p>",
    )


def plain_page(title: str, body: str, status: int = 200) -> Response:
    """Return a page with this HTML."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    html = f'<!doctype html><html lang="en">{head}{body}'
    return Response(html, status, media_type="text/html", headers={"Content-Security-Policy": _POLICY})
