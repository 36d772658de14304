"""Pages for people: the API by name, and one for each kind of problem. Plain HTML, nothing from elsewhere."""

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
# Nothing is loaded, nothing runs: the style is in the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@router.get("/openapi.json", operation_id="docs.openapi", summary="The API as OpenAPI 3.1", include_in_schema=False)
@guard(is_open=True, cost=0)
async def openapi(request: Request) -> Response:
    """The document that the clients are made from."""
    return Response(document_of(request.app), media_type="application/json")


@router.get("/docs", operation_id="docs.page", summary="The API for people", include_in_schema=False)
@guard(is_open=True, cost=0)
async def docs(request: Request) -> Response:
    """Every route in a sentence."""
    rows = [
        f"<tr><td>{method}<td><code>{escape(path)}</code><td>{escape(operation['summary'])}"
        for path, methods in request.app.openapi()["paths"].items()
        for method, operation in ((name.upper(), one) for name, one in methods.items())
    ]
    body = (
        "<h1>Windlass</h1><p>The API of this server. The whole of it, for programs: "
        '<a href="/openapi.json">openapi.json</a>.</p><table><tr><th>method<th>path<th>what for'
        f"{''.join(rows)}</table><h2>Problems</h2><ul>"
        + "".join(f'<li><a href="/problems/{code}">{code}</a>: {escape(row.title)}' for code, row in KINDS.items())
        + "</ul>"
    )
    return _page("API", body)


@router.get("/problems/{code}", operation_id="docs.problem", summary="A kind of problem", include_in_schema=False)
@guard(is_open=True, cost=0, codes=("not_found",))
async def problem(code: str = Path(description="A problem's code.")) -> Response:
    """What a problem means and what to do about it."""
    row = KINDS.get(code)
    if row is None:
        raise NotFound("there is no such problem")
    again = "The same request may succeed later." if row.is_retryable else "The same request fails again."
    about = escape(" ".join((row.error.__doc__ or "").split()))
    return _page(
        row.title,
        f"<h1>{escape(row.title)}</h1><p><code>{row.code}</code>, status {row.status}</p><p>{about}</p>"
        f"<p>{escape(row.hint)} {again}</p>",
    )


def _page(title: str, body: str) -> Response:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    html = f'<!doctype html><html lang="en">{head}{body}'
    return Response(html, media_type="text/html", headers={"Content-Security-Policy": _POLICY})
