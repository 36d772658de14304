"""The console's pages. Every client may load them: their data comes from requests of the signed-in user."""

from __future__ import annotations

from importlib import metadata

from fastapi import Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from windlass.api.console_files import INDEX
from windlass.api.guard import guard, guarded_router, parts_of
from windlass.api.sending import ASK_AGAIN, FOR_GOOD, send_file
from windlass.api.static import ASSETS, Console, File
from windlass.core.errors import NotFound

router = guarded_router("console")
# Read once: the lookup in the package's files takes as long as the rest of a response.
VERSION = metadata.version("windlass")
_HOME = "/console/"
_READ = ["GET", "HEAD"]
EXTENSIONS = "x/"
# These paths answer with JSON or a stream, so no method of theirs returns a page.
_NO_PAGES = ("demo", "session", "stream")


def console_of(request: Request) -> Console:
    """Return the console that this process serves."""
    console: Console = request.app.state.console
    return console


@router.api_route("/", methods=_READ, operation_id="console.root", summary="To the console", include_in_schema=False)
@guard(is_open=True, cost=0, codes=("not_found",), takes_any_query=True)
async def root(request: Request) -> Response:
    """Redirects a browser to the console. A client that does not accept HTML gets 404."""
    if "text/html" not in request.headers.get("accept", "").lower():
        raise NotFound("there is nothing at this path", remedy="/openapi shows what there is")
    return RedirectResponse(_HOME, status_code=307, headers={"Vary": "Accept", "Cache-Control": "no-cache"})


@router.api_route(
    "/console", methods=_READ, operation_id="console.home", summary="To the console", include_in_schema=False
)
@guard(is_open=True, cost=0, takes_any_query=True)
async def home(request: Request) -> Response:
    """Redirects to the path with a trailing slash. Keeps the query, which may contain the token of a sign-in link."""
    query = request.url.query
    return RedirectResponse(f"{_HOME}?{query}" if query else _HOME, status_code=307)


@router.api_route(
    "/console/{path:path}", methods=_READ, operation_id="console.page", summary="A page", include_in_schema=False
)
@guard(is_open=True, cost=0, codes=("not_found",), takes_any_query=True)
async def page(request: Request, path: str = Path(description="A page or a file of it.")) -> Response:
    """Returns a file of the console, or its only page, which chooses its content by its URL."""
    if path.partition("/")[0] in _NO_PAGES:
        raise NotFound("there is no such page", remedy="/openapi shows what there is")
    build = console_of(request).build()
    found = build.files.get(path) or _of_extension(request, path)
    if found is None and (path.startswith(f"{ASSETS}/") or (path.startswith(EXTENSIONS) and path.endswith(".js"))):
        # A file of a previous build. A page in its place would look like a broken script.
        raise NotFound("there is no such file in this console", remedy="Load the page again")
    cache = FOR_GOOD if found is not None and path.startswith(f"{ASSETS}/") else ASK_AGAIN
    return send_file(request, found or build.files[INDEX], build.policy, cache)


def _of_extension(request: Request, path: str) -> File | None:
    """Return a file of an extension's pages, by `x/EXTENSION/FILE`."""
    if not path.startswith(EXTENSIONS):
        return None
    name, _, file = path.removeprefix(EXTENSIONS).partition("/")
    return next((extra.files.get(file) for extra in parts_of(request).extras if extra.name == name), None)
