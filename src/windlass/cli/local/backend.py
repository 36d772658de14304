"""A client backend that answers requests from the local database with the documents of the API.

Requests go to functions instead of a network, so neither a server nor an HTTP client is needed. A request that a
server would refuse raises the same error.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from windlass.app.windlass import Windlass
from windlass.cli.local import admin, approvals, jobs, policies
from windlass.cli.local.call import LocalRequest
from windlass.client.async_client import AsyncClient
from windlass.client.exchange import Answer, Ask, Give, Got, Lost, More, Pause, Wish
from windlass.core.errors import NotFound
from windlass.documents.tracebacks import expose_to_caller
from windlass.documents.values import encoded

Handler = Callable[[LocalRequest], Awaitable[Any]]
_ID = "(?P<job_id>[0-9a-f-]{36})"
_HANDLERS: dict[str, Handler] = {
    "GET /me": admin.me,
    "POST /jobs": jobs.submit,
    "GET /jobs": jobs.jobs,
    f"GET /jobs/{_ID}": jobs.job,
    f"DELETE /jobs/{_ID}": jobs.delete,
    f"GET /jobs/{_ID}/input": jobs.job_input,
    f"GET /jobs/{_ID}/output": jobs.output,
    f"GET /jobs/{_ID}/graph": jobs.graph,
    f"GET /jobs/{_ID}/steps": jobs.steps,
    f"GET /jobs/{_ID}/steps/(?P<no>[0-9]+)/output": jobs.step_output,
    f"GET /jobs/{_ID}/events": jobs.events,
    f"POST /jobs/{_ID}/events": jobs.send_event,
    f"GET /jobs/{_ID}/stream": jobs.stream,
    f"GET /jobs/{_ID}/why": jobs.why,
    f"GET /jobs/{_ID}/decisions": jobs.decisions,
    f"GET /jobs/{_ID}/costs": admin.costs,
    f"GET /jobs/{_ID}/webhook": jobs.webhook,
    f"POST /jobs/{_ID}/webhook/redeliver": jobs.redeliver,
    f"POST /jobs/{_ID}/cancel": jobs.cancel,
    f"POST /jobs/{_ID}/pause": jobs.pause,
    f"GET /jobs/{_ID}/undo": jobs.undo_plan,
    f"POST /jobs/{_ID}/undo": jobs.start_undo,
    f"POST /jobs/{_ID}/resume": jobs.resume,
    f"POST /jobs/{_ID}/(?P<action>retry|rerun)": jobs.run_again,
    "GET /dead-letters": jobs.list_dead_letters,
    "POST /dead-letters/(?P<fingerprint>[^/]+)/(?P<action>redrive|discard)": jobs.deal,
    "GET /approvals": approvals.list_approvals,
    f"GET /approvals/{_ID.replace('job_id', 'approval_id')}": approvals.approval,
    f"POST /approvals/{_ID.replace('job_id', 'approval_id')}/(?P<action>approve|reject)": approvals.decide,
    "GET /recipes": admin.list_recipes,
    "GET /recipes/(?P<name>[^/]+)": admin.recipe,
    "GET /workers": admin.workers,
    "GET /keys": admin.list_keys,
    "POST /keys": admin.create_key,
    "DELETE /keys/(?P<key_id>[^/]+)": admin.revoke_key,
    "GET /audit": admin.audit,
    "GET /audit/verify": admin.verify_audit,
    "GET /policy": policies.state,
    "GET /policy/snapshots": policies.snapshots,
    "GET /policy/snapshots/(?P<version>[0-9]+)": policies.snapshot,
    "POST /policy/publish": policies.publish_documents,
    "POST /policy/rollback": policies.roll_back,
    "POST /policy/evaluate": policies.evaluate,
    "POST /policy/simulate": policies.simulate,
    "POST /policy/explain": policies.explain,
    "POST /policy/replay": policies.replay,
    "GET /policy/shadow": policies.shadow,
    "GET /providers": admin.list_providers,
    "GET /providers/(?P<name>[^/]+)": admin.provider,
    "GET /budgets": admin.list_budgets,
    "PUT /budgets/(?P<scope>[^/]+)/(?P<name>[^/]+)": admin.set_budget,
    "DELETE /budgets/(?P<scope>[^/]+)/(?P<name>[^/]+)": admin.remove_budget,
}
_STREAM = {"content-type": "text/event-stream"}


def local_client(windlass: Windlass) -> AsyncClient:
    """Return a client whose requests are answered from the database of this installation."""
    return AsyncClient(windlass.dsn, backend=LocalBackend(windlass))


class LocalBackend:
    """Answers requests from the rows of the database."""

    def __init__(self, windlass: Windlass) -> None:
        self._windlass = windlass

    def performer(self) -> LocalPerformer:
        """Return the performer of one flow."""
        return LocalPerformer(self._windlass)

    async def close(self) -> None:
        """Close no connections, because they belong to the SDK."""


class LocalPerformer:
    """Performs the requests of one flow; it has one stream open at most."""

    def __init__(self, windlass: Windlass) -> None:
        self._windlass = windlass
        self._frames: AsyncIterator[bytes] | None = None
        self._silence_s: float | None = None

    async def __aenter__(self) -> LocalPerformer:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._close()

    async def perform(self, wish: Wish) -> Got:
        """Perform one request of the flow and return its result."""
        # A user with access to the database may see where an exception was raised.
        expose_to_caller(True)
        match wish:
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Ask():
                return await self._ask(wish)
            case More():
                return await self._more()
            case Give():
                pass  # `run` drives this flow and takes only its return value
        return None

    async def _ask(self, ask: Ask) -> Answer:
        await self._close()
        handler, names = _handler(ask)
        body = None if ask.body is None else msgspec.json.decode(ask.body)
        found = await handler(LocalRequest(self._windlass, names, ask.query, ask.headers, body))
        if ask.is_stream:
            self._frames, self._silence_s = found, ask.timeout_s
            return Answer(200, _STREAM)
        if found is None:
            return Answer(204, {})
        return Answer(200, {}, found if isinstance(found, bytes) else encoded(found))

    async def _more(self) -> bytes | Lost:
        if self._frames is None:
            return b""
        try:
            async with asyncio.timeout(self._silence_s):
                return await anext(self._frames, b"")
        except TimeoutError:
            return Lost("nothing happened for this long")

    async def _close(self) -> None:
        frames, self._frames = self._frames, None
        if frames is not None:
            await frames.aclose()  # type: ignore[attr-defined]


def _handler(ask: Ask) -> tuple[Handler, dict[str, str]]:
    line = f"{ask.method} {ask.path}"
    for pattern, handler in _HANDLERS.items():
        if found := re.fullmatch(pattern, line):
            return handler, {name: unquote(value) for name, value in found.groupdict().items()}
    raise NotFound(f"there is no {line} on this machine", remedy="Ask a server: --server URL")
