"""The OpenAPI document: what FastAPI writes of the routes, completed with what only the guards know.

Each operation gets the problems that it can answer with, the keys that it takes, the headers of every answer, and
links from what makes a job to what can be asked about it. FastAPI's own 422 goes: a problem stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from windlass.api.edge import ALIAS
from windlass.api.guard import Guard, GuardedRoute, guard_of
from windlass.api.wire.problem import Problem
from windlass.pure.problem import KINDS

_TAGS = {
    "jobs": "Submit jobs, look at them, and act on them.",
    "results": "What went into a job and what came out of it.",
    "streams": "What happens, as it happens (server-sent events).",
    "recipes": "What can be submitted.",
    "overview": "What to look at first, and failures that nobody has dealt with.",
    "webhooks": "Where the end of a job is told.",
    "providers": "Work that others do: who may ask them, and what they tell us.",
    "budgets": "How much may be spent, and what was.",
    "callers": "Who asks.",
    "keys": "Keys of an installation without a Membership service.",
    "audit": "What was done, by whom, in a chain that shows tampering.",
    "workers": "The processes that do the work.",
    "console": "Signing in at the web console, and what it needs beside the rest.",
    "health": "For load balancers and whoever watches.",
}
_ABOUT = (
    "Durable jobs over HTTP. Every refusal is a problem document (RFC 9457) with a stable `code`, a `hint` and the id "
    "of the request. Answers may gain fields; ignore those that you do not know."
)
# Of every request that needs a key, and of every request at all.
_KEYED = ("unauthenticated", "forbidden", "rate_limited", "membership_unavailable", "database_unavailable")
_ALWAYS = ("bad_request", "broken", "too_large")
_SECURITY = {
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "windlass_session",
        "description": "The console's cookie, from POST /console/session; its name ends in the installation's own. "
        "Whatever is no GET also needs the session's `csrf` in the header `X-Windlass-CSRF`.",
    },
}
_TICKET = {"ticket": {"type": "apiKey", "in": "query", "name": "ticket"}}
_REQUEST_ID = {
    "description": "The id of the request, which is in logs, events and the audit too.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"},
}
_LINKED = (
    "jobs.get", "jobs.delete", "jobs.input", "jobs.output", "jobs.graph", "jobs.steps", "jobs.events", "jobs.why",
    "jobs.cancel", "jobs.pause", "jobs.resume", "jobs.retry", "jobs.rerun",
)  # fmt: skip
_EXAMPLES: dict[str, Any] = {
    "jobs.submit": {"recipe": "hello", "inputs": {"name": "Ada"}, "labels": {"team": "docs"}},
    "jobs.submit_batch": {"jobs": [{"recipe": "hello"}, {"recipe": "hello", "inputs": {"name": "Ada"}}]},
    "jobs.bulk": {"action": "retry", "filter": {"status": ["FAILED"], "recipe": "hello"}, "dry_run": True},
    "jobs.cancel": {"reason": "no longer needed"},
    "jobs.rerun": {"from_step": "render", "inputs": {"name": "Ada"}, "dry_run": True},
    "dead_letters.redrive": {"start": "failed", "dry_run": False, "expect": 3, "reason": "the bucket is back"},
    "dead_letters.discard": {"dry_run": False, "expect": 3, "reason": "test data"},
    "jobs.complete": {
        "token": "wlc_…",
        "stage": "render",
        "status": "success",
        "result": {"url": "https://example.com/1"},
    },
    "jobs.send_event": {"name": "approved", "body": {"by": "ada"}},
    "budgets.set": {"most": "25.00"},
    "console.sign_in": {"token": "wll_…"},
    "keys.create": {"caller": "indexer", "name": "nightly indexing", "caller_type": "service"},
}
# One answer of each operation, as a server gave it; a test holds them against the models.
ANSWERS: dict[str, Any] = msgspec.json.decode(files("windlass.api").joinpath("answers.json").read_bytes())


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    made: dict[str, Any] = get_openapi(
        title="Windlass",
        version=metadata.version("windlass"),
        openapi_version="3.1.0",
        description=_ABOUT,
        routes=app.routes,
    )
    made["servers"] = [{"url": "/"}, {"url": ALIAS, "description": "The same."}]
    made["tags"] = [{"name": name, "description": about} for name, about in _TAGS.items()]
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    problem = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}), Problem=problem)
    made["components"]["securitySchemes"] = {**_SECURITY, **_TICKET}
    made["components"]["headers"] = {"RequestId": _REQUEST_ID}
    for route, operation in _operations(app, made):
        _complete(operation, guard_of(route.endpoint))
    # As it will be read: FastAPI leaves values in it that are not JSON.
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made, order="sorted"))
    return value


def document_of(app: FastAPI) -> bytes:
    """The document as text; made once."""
    if not hasattr(app.state, "document"):
        app.state.document = msgspec.json.encode(app.openapi())
    text: bytes = app.state.document
    return text


def _operations(app: FastAPI, made: dict[str, Any]) -> Iterator[tuple[GuardedRoute, dict[str, Any]]]:
    for route in app.routes:
        if isinstance(route, GuardedRoute) and route.include_in_schema:
            for method in sorted(route.methods or ()):
                yield route, made["paths"][route.path_format][method.lower()]


def _complete(operation: dict[str, Any], own: Guard) -> None:
    answers = operation["responses"]
    answers.pop("422", None)
    for answer in answers.values():
        answer.setdefault("headers", {})["X-Request-Id"] = {"$ref": "#/components/headers/RequestId"}
    codes = {*_ALWAYS, *own.codes, *(() if own.is_open else _KEYED)}
    if not own.is_open and own.operation == "write":
        codes.add("bad_csrf")
    for status, rows in _by_status(codes).items():
        answers.setdefault(str(status), _problem(rows))
    if own.is_open:
        operation["security"] = []
    else:
        operation["security"] = [{name: []} for name in (*_SECURITY, *(_TICKET if own.takes_ticket else ()))]
    if own.scope is not None:
        who = f"Scope: `{own.scope}`{'; internal services and admins only' if own.is_internal else ''}."
        operation["description"] = f"{operation.get('description', '')}\n\n{who}".strip()
    name = operation["operationId"]
    if name in _EXAMPLES:
        operation["requestBody"]["content"]["application/json"]["example"] = _EXAMPLES[name]
    for good in ("200", "201", "202"):
        content = answers.get(good, {}).get("content", {})
        # What is accepted can also be asked for without being done.
        key = f"{name}.dry_run" if good == "200" and "202" in answers else name
        if key in ANSWERS and "application/json" in content:
            content["application/json"]["example"] = ANSWERS[key]
    if name in ("jobs.submit", "jobs.retry", "jobs.rerun"):
        links = {one: {"operationId": one, "parameters": {"job_id": "$response.body#/job_id"}} for one in _LINKED}
        answers["202"]["links"] = links


def _by_status(codes: Iterable[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for code in sorted(codes):
        found.setdefault(KINDS[code].status, []).append(code)
    return dict(sorted(found.items()))


def _problem(codes: list[str]) -> dict[str, Any]:
    told = "; ".join(f"`{code}`: {KINDS[code].title}" for code in codes)
    return {
        "description": f"{told}.",
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
