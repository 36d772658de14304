"""The documentation site that was built with the package. It needs no key and loads nothing from other hosts."""

from __future__ import annotations

import asyncio

from fastapi import Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from windlass.api.guard import guard, guarded_router
from windlass.api.pages import plain_page
from windlass.api.sending import ASK_AGAIN, FOR_GOOD, send_file
from windlass.api.site import INDEX, DocsSite
from windlass.core.errors import NotFound

router = guarded_router("docs")
_HOME = "/docs/"
_READ = ["GET", "HEAD"]
# The names of these files contain a hash of their content.
_NAMED_BY_CONTENT = ("assets/javascripts/", "assets/stylesheets/")
_NOT_BUILT = (
    "<h1>The documentation was not built</h1>"
    "<p>This installation of Windlass has no documentation site: its generator was not available when the package was "
    "built. In a checkout, <code>make site</code> builds it. The pages are also plain Markdown, in the folder "
    "<code>docs</code> of the source.</p>"
    '<p>The <a href="/openapi">routes of this server</a> are listed all the same.</p>'
)


@router.api_route("/docs", methods=_READ, operation_id="docs.home", summary="To the site", include_in_schema=False)
@guard(is_open=True, cost=0, takes_any_query=True)
async def home() -> Response:
    """Redirects to the path with a trailing slash, because the links of the pages are relative."""
    return RedirectResponse(_HOME, status_code=307)


@router.api_route(
    "/docs/{path:path}", methods=_READ, operation_id="docs.site", summary="A page", include_in_schema=False
)
@guard(is_open=True, cost=0, codes=("not_found",), takes_any_query=True)
async def page(request: Request, path: str = Path(description="A page or a file of it.")) -> Response:
    """Returns a file of the site. A folder returns its index page."""
    site: DocsSite = request.app.state.site
    name = path + INDEX if path == "" or path.endswith("/") else path
    build, file = await asyncio.to_thread(site.file, name)
    if build is None:
        return plain_page("Not built", _NOT_BUILT, status=200 if path == "" else 404)
    if file is None:
        raise NotFound("there is no such page in the documentation", remedy="/docs/ has the contents")
    return send_file(request, file, build.policy, FOR_GOOD if path.startswith(_NAMED_BY_CONTENT) else ASK_AGAIN)
