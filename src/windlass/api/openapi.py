"""The OpenAPI document: FastAPI's description of the routes, completed with facts that only the guards know.

Each operation gets its possible problems, the keys that it takes, and the headers of every response. Operations that
create a job get links to the operations on that job. A problem replaces FastAPI's own 422.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from importlib import metadata
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from windlass.api.edge import ALIAS
from windlass.api.guard import Guard, GuardedRoute, guard_of
from windlass.api.wire.console import FRAMES
from windlass.api.wire.problem import Problem
from windlass.core.caller import Scope
from windlass.core.external import ProviderStatus
from windlass.core.hold import HoldName
from windlass.core.wait import WaitKind
from windlass.pure.problem import KINDS

_TAGS = {
    "jobs": "Submit, read and control jobs.",
    "results": "Inputs and outputs of jobs and steps.",
    "streams": "Live events (server-sent events).",
    "recipes": "Recipes that can be submitted.",
    "overview": "The overview and dead letters.",
    "webhooks": "Notifications about the end of a job.",
    "approvals": "What waits for people: what exactly will run, who may decide, and their votes.",
    "providers": "Providers: their slots, their webhooks, and callbacks of external work.",
    "budgets": "Budgets and costs.",
    "callers": "Who asks.",
    "keys": "Keys of an installation without a Membership service.",
    "policy": "Policies: publish, read and ask them.",
    "audit": "The audit: a chain of records that shows tampering.",
    "workers": "The processes that run steps.",
    "console": "Sign-in and data of the web console.",
    "health": "For load balancers and monitoring.",
}
_ABOUT = (
    "Durable jobs over HTTP. Every refusal is a problem document (RFC 9457) with a stable `code`, a `hint` and the id "
    "of the request. Responses may gain fields; ignore unknown fields."
)
# The problems of every request that needs a key, and of every request.
_KEYED = ("unauthenticated", "forbidden", "rate_limited", "membership_unavailable", "database_unavailable")
_ALWAYS = ("bad_request", "broken", "too_large")
_SECURITY = {
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "windlass_session",
        "description": "The console's cookie, from POST /console/session. Its name ends with a suffix of the "
        "installation. Every method but GET also needs the session's `csrf` in the header `X-Windlass-CSRF`.",
    },
}
_TICKET = {"ticket": {"type": "apiKey", "in": "query", "name": "ticket"}}
_REQUEST_ID = {
    "description": "The id of the request, which is in logs, events and the audit too.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"},
}
_LINKED = (
    "jobs.get", "jobs.delete", "jobs.input", "jobs.output", "jobs.graph", "jobs.steps", "jobs.events", "jobs.why",
    "jobs.decisions",
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
    "policy.publish": {
        "documents": [{"name": "main", "text": "default_decision: allow\n"}],
        "note": "the first day",
        "untested": "there is no rule yet",
    },
    "policy.rollback": {"version": 1, "note": "too strict"},
    "policy.replay": {"version": 1, "days": 7, "limit": 1000},
    "policy.evaluate": {"request": {"topic": "job.mail.send", "tenant": "acme"}},
    "policy.simulate": {"request": {"topic": "job.mail.send", "tenant": "acme"}},
    "policy.explain": {"request": {"topic": "job.mail.send", "tenant": "acme"}},
    "console.sign_in": {"token": "wll_…"},
    "keys.create": {"caller": "indexer", "name": "nightly indexing", "caller_type": "service"},
}
# Enums whose members occur inside texts, such as `waiting_for`, or among words that others define.
WORDS: tuple[type[StrEnum], ...] = (HoldName, WaitKind, Scope, ProviderStatus)
_REF = "#/components/schemas/{model}"
# One response of each operation, as a server gave it; a test checks them against the models.
ANSWERS: dict[str, Any] = msgspec.json.decode(files("windlass.api").joinpath("answers.json").read_bytes())


def document(app: FastAPI) -> dict[str, Any]:
    """Return the whole document."""
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
    schemas.update(_beside())
    made["components"]["securitySchemes"] = {**_SECURITY, **_TICKET}
    made["components"]["headers"] = {"RequestId": _REQUEST_ID}
    for route, operation in _operations(app, made):
        _complete(operation, guard_of(route.endpoint))
    # A round trip through JSON: FastAPI leaves values in the document that are not JSON.
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made, order="sorted"))
    return value


def document_of(app: FastAPI) -> bytes:
    """Return the document as text; made once."""
    if not hasattr(app.state, "document"):
        app.state.document = msgspec.json.encode(app.openapi())
    text: bytes = app.state.document
    return text


def _beside() -> dict[str, Any]:
    """Return the schemas that no route returns: problems, the frames of the console's stream, enums inside texts."""
    models = [Problem, *FRAMES.values()]
    told = [(model, "serialization") for model in models]
    _, found = models_json_schema(told, ref_template=_REF)  # type: ignore[arg-type]
    found = dict(found["$defs"])
    for kind in WORDS:
        found[kind.__name__] = TypeAdapter(kind).json_schema(mode="serialization")
    return found


def _operations(app: FastAPI, made: dict[str, Any]) -> Iterator[tuple[GuardedRoute, dict[str, Any]]]:
    for route in app.routes:
        if isinstance(route, GuardedRoute) and route.include_in_schema:
            for method in sorted(route.methods or ()):
                yield route, made["paths"][route.path_format][method.lower()]


def _complete(operation: dict[str, Any], route_guard: Guard) -> None:
    answers = operation["responses"]
    answers.pop("422", None)
    for answer in answers.values():
        answer.setdefault("headers", {})["X-Request-Id"] = {"$ref": "#/components/headers/RequestId"}
    codes = {*_ALWAYS, *route_guard.codes, *(() if route_guard.is_open else _KEYED)}
    if not route_guard.is_open and route_guard.operation == "write":
        codes.add("bad_csrf")
    for status, rows in _by_status(codes).items():
        answers.setdefault(str(status), _problem(rows))
    if route_guard.is_open:
        operation["security"] = []
    else:
        operation["security"] = [{name: []} for name in (*_SECURITY, *(_TICKET if route_guard.takes_ticket else ()))]
    if route_guard.scope is not None:
        who = f"Scope: `{route_guard.scope}`{'; internal services and admins only' if route_guard.is_internal else ''}."
        operation["description"] = f"{operation.get('description', '')}\n\n{who}".strip()
    name = operation["operationId"]
    if name in _EXAMPLES:
        operation["requestBody"]["content"]["application/json"]["example"] = _EXAMPLES[name]
    for good in ("200", "201", "202"):
        content = answers.get(good, {}).get("content", {})
        # An operation that answers 202 answers 200 to a dry run.
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
