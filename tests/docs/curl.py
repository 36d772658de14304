"""Whether a `curl` line of the docs would be understood: by a route, its query and its body."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.routing import Match

from windlass.api.app import bare
from windlass.api.guard import guard_of, query_names

_SERVER = re.compile(r"^(https?://[^/]+|\$\{?[A-Z_]+\}?)(?=/)")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]+\}?")
_SOME_ID = "0199aaaa-0000-7000-8000-000000000000"
_BARE = {"-s", "-S", "-sS", "-f", "-fsS", "-i", "-N", "-sN", "--no-buffer", "--fail", "--silent"}
_WITH_VALUE = {"-X", "--request", "-H", "--header", "-d", "--data", "--json", "-o", "--max-time", "-r", "--range"}


def curl_complaint(words: list[str]) -> str | None:
    """Why the API would not understand this, or None."""
    method, url, body, headers = "", "", None, []
    rest = iter(words)
    for word in rest:
        if word in _BARE:
            continue
        if word not in _WITH_VALUE:
            url = word
            continue
        value = next(rest, "")
        match word:
            case "-X" | "--request":
                method = value
            case "-H" | "--header":
                headers.append(value)
            case "-d" | "--data" | "--json":
                body = value
                headers += ["Content-Type: application/json"] if word == "--json" else []
    if not _SERVER.match(url):
        return f"{url!r} is not an address of a server"
    parts = urlsplit(_VARIABLE.sub(_SOME_ID, _SERVER.sub("", url)))
    return _route_complaint(method or ("GET" if body is None else "POST"), parts.path, parts.query, body, headers)


def _route_complaint(method: str, path: str, query: str, body: str | None, headers: list[str]) -> str | None:
    scope = {"type": "http", "method": method, "path": path.removeprefix("/api/v1")}
    routes = [route for route in bare().routes if isinstance(route, APIRoute)]
    route = next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)
    if route is None:
        return f"there is no route {method} {path}"
    names = {header.partition(":")[0].strip().lower() for header in headers}
    if not guard_of(route.endpoint).is_open and not names & {"x-api-key", "authorization"} and "ticket=" not in query:
        return f"{method} {path} needs a key"
    if unknown := {name for name, _ in parse_qsl(query)} - query_names(route).keys():
        return f"{method} {path} has no query parameter {sorted(unknown)}"
    if body is None:
        return None
    if "content-type" not in names:
        return f"{method} {path}: curl would not send it as JSON"
    if route.body_field is None:
        return f"{method} {path} takes no body"
    try:
        TypeAdapter(route.body_field.field_info.annotation).validate_json(_VARIABLE.sub(_SOME_ID, body))
    except ValidationError as error:
        return f"{method} {path}: {error}"
    return None
