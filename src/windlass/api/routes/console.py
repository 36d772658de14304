"""The console's pages. They are open to all: what they show is asked for by whoever is signed in."""

from __future__ import annotations

from importlib import metadata

from fastapi import Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from windlass.api.console_files import INDEX
from windlass.api.guard import guard, guarded_router, parts_of
from windlass.api.static import ASSETS, Build, Console, File, chosen
from windlass.api.tagged import is_known
from windlass.core.errors import NotFound

router = guarded_router("console")
# Read once: it is looked up in the package's files, which takes as long as all the rest of an answer.
VERSION = metadata.version("windlass")
_HOME = "/console/"
_READ = ["GET", "HEAD"]
# An asset's name has its content in it; whatever else there is may change with the next build.
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
EXTENSIONS = "x/"
# What is answered in JSON or as a stream is nobody's page, whatever the method.
_NO_PAGES = ("demo", "session", "stream")


def console_of(request: Request) -> Console:
    """The console that this process serves."""
    console: Console = request.app.state.console
    return console


@router.api_route("/", methods=_READ, operation_id="console.root", summary="To the console", include_in_schema=False)
@guard(is_open=True, cost=0, codes=("not_found",), takes_any_query=True)
async def root(request: Request) -> Response:
    """A browser goes to the console. Whoever does not ask for a page is told that there is nothing here."""
    if "text/html" not in request.headers.get("accept", "").lower():
        raise NotFound("there is nothing at this path", remedy="/docs shows what there is")
    return RedirectResponse(_HOME, status_code=307, headers={"Vary": "Accept", "Cache-Control": "no-cache"})


@router.api_route(
    "/console", methods=_READ, operation_id="console.home", summary="To the console", include_in_schema=False
)
@guard(is_open=True, cost=0, takes_any_query=True)
async def home(request: Request) -> Response:
    """With the slash at the end, and the query as it was: a link's token may be in it."""
    query = request.url.query
    return RedirectResponse(f"{_HOME}?{query}" if query else _HOME, status_code=307)


@router.api_route(
    "/console/{path:path}", methods=_READ, operation_id="console.page", summary="A page", include_in_schema=False
)
@guard(is_open=True, cost=0, codes=("not_found",), takes_any_query=True)
async def page(request: Request, path: str = Path(description="A page or a file of it.")) -> Response:
    """A file of the console, or its one page: which part of that is shown, the page finds out by its address."""
    if path.partition("/")[0] in _NO_PAGES:
        raise NotFound("there is no such page", remedy="/docs shows what there is")
    build = console_of(request).build()
    found = build.files.get(path) or _of_extension(request, path)
    if found is None and (path.startswith(f"{ASSETS}/") or (path.startswith(EXTENSIONS) and path.endswith(".js"))):
        # Of a build that is gone. A page in its place would be taken for a script that is broken.
        raise NotFound("there is no such file in this console", remedy="Load the page again")
    cache = _FOR_GOOD if found is not None and path.startswith(f"{ASSETS}/") else _ASK_AGAIN
    return _sent(request, build, found or build.files[INDEX], cache)


def _of_extension(request: Request, path: str) -> File | None:
    """A file of an extension's pages, by `x/EXTENSION/FILE`."""
    if not path.startswith(EXTENSIONS):
        return None
    name, _, file = path.removeprefix(EXTENSIONS).partition("/")
    return next((extra.files.get(file) for extra in parts_of(request).extras if extra.name == name), None)


def _sent(request: Request, build: Build, file: File, cache: str) -> Response:
    coding = chosen(request.headers.get("accept-encoding", ""), file.forms)
    body = file.forms[coding]
    tag = f'"{file.tag}"' if coding == "identity" else f'"{file.tag}-{coding}"'
    headers = {
        "ETag": tag,
        "Cache-Control": cache,
        "Vary": "Accept-Encoding",
        "Content-Security-Policy": build.policy,
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
