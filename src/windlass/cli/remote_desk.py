"""The desk of a server: what commands ask for, over HTTP, in the very shapes that a database would have given."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from windlass.cli import wire
from windlass.cli.desk import AuditWish, KeyWish, Order
from windlass.cli.picture import boxes_of_job
from windlass.cli.remote_outside import RemoteOutside
from windlass.cli.remote_redriving import RemoteRedriving
from windlass.cli.snapshot import Snapshot
from windlass.cli.step_output import RemoteStepOutput
from windlass.client import flows, views
from windlass.client.async_client import AsyncClient
from windlass.client.exchange import Means
from windlass.core.errors import BadInput, NotFound, Unavailable
from windlass.core.plan import Node, NodeKind, OnFailure, Plan
from windlass.core.retry import Retry
from windlass.core.states import STEP_TERMINAL, JobState, StepState
from windlass.engine.recipes import Described
from windlass.pure.job_failed import JobFailed
from windlass.views.explain import Reason
from windlass.views.read import EventView, FanCount, JobView, StepView
from windlass.views.recipes import RecipeVersion

# A server is asked no more often than this for a picture, and no less often either while it is silent.
REDRAW_S = 0.3
SILENCE_S = 5.0
# A job's id begins with the millisecond in which it was made.
_ID_DIGITS, _TIME_DIGITS = 32, 12
# By how much the clock of the process that made an id may differ from the database's.
_SKEW_MS = 10_000
_LOOKED_MAX = 20_000
_MS_MAX = int(datetime.max.replace(tzinfo=UTC).timestamp() * 1000) - 1


class RemoteDesk(RemoteOutside, RemoteRedriving, RemoteStepOutput):
    """See `Desk`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._means = Means()
        self._inputs: dict[UUID, Any] = {}
        self._whose: list[tuple[str, str]] | None = None

    async def _everybody(self) -> list[tuple[str, str]]:
        """As at a database, an admin sees everybody's jobs; others see their own."""
        if self._whose is None:
            me = await self._client.me()
            self._whose = [("caller", "*")] if "admin" in (me.get("role"), *me.get("scopes", ())) else []
        return self._whose

    async def find(self, text: str) -> UUID:
        """The job that the text names."""
        text = text.strip()
        if text == "@last":
            found, _ = await self._page([("limit", "1")])
            return _only([view.id for view in found], text)
        digits = text.replace("-", "").lower()
        if not digits or len(digits) > _ID_DIGITS or set(digits) - set("0123456789abcdef"):
            raise BadInput(f"{text!r} is not a job's id", remedy="An id, the beginning of one, or @last")
        if len(digits) == _ID_DIGITS:
            return (await self._client.job(UUID(digits)).view()).id
        first, last = (int(digits.ljust(_ID_DIGITS, end)[:_TIME_DIGITS], 16) for end in "0f")
        if first > _MS_MAX:
            return _only([], text)
        return _only(await self._beginning_with(digits, first, last), text)

    async def _beginning_with(self, digits: str, first: int, last: int) -> list[UUID]:
        """Two jobs at most whose ids begin so; they were made about then."""
        bounds = [("since", _instant(max(0, first - _SKEW_MS))), ("until", _instant(min(last + _SKEW_MS, _MS_MAX)))]
        looked, found = 0, list[UUID]()
        async for view in self._client.iterate(flows.jobs(self._means, [*await self._everybody(), *bounds])):
            looked += 1
            if view.id.hex.startswith(digits):
                found.append(view.id)
            if len(found) > 1:
                break
            if looked == _LOOKED_MAX:
                raise BadInput(f"{looked:,} jobs were made about when {digits} was", remedy="Give the whole id")
        return found

    async def _page(self, query: list[tuple[str, str]]) -> tuple[list[views.JobView], str | None]:
        return await self._client.run(flows.page_of_jobs(self._means, [*await self._everybody(), *query]))

    async def job(self, job_id: UUID) -> JobView:
        """One job, with its input."""
        handle = self._client.job(job_id)
        if job_id not in self._inputs:
            self._inputs[job_id] = await handle.input()
        return _job(await handle.view(), self._inputs[job_id])

    async def jobs(
        self,
        *,
        state: JobState | None,
        recipe: str | None,
        labels: Mapping[str, str] | None,
        limit: int,
        before: UUID | None,
    ) -> list[JobView]:
        """Jobs, the newest first."""
        query = flows.filter_query(state=state, recipe=recipe, labels=labels)
        if before is not None:
            query.append(("until", _instant(min((before.int >> 80) + _SKEW_MS, _MS_MAX))))
        found: list[JobView] = []
        cursor: str | None = None
        while len(found) < limit:
            size = ("limit", str(flows.PAGE if before is not None else min(flows.PAGE, limit - len(found))))
            page, cursor = await self._page([*query, size, *([("cursor", cursor)] if cursor else [])])
            found += [_job(view) for view in page if before is None or view.id < before]
            if cursor is None:
                break
        return found[:limit]

    async def steps(self, job_id: UUID) -> list[dict[str, Any]]:
        """Every step of a job."""
        handle = self._client.job(job_id)
        unmet = _unmet(await handle.graph())
        return [_step_json(step, unmet.get(step.no, 0)) async for step in handle.steps()]

    async def snapshot(self, job_id: UUID) -> Snapshot:
        """The job and its graph as they are now."""
        job = await self.job(job_id)
        graph = await self._client.job(job_id).graph()
        plan, steps, counts = _graph(job.recipe, graph)
        now = datetime.now(UTC)
        return Snapshot(job, boxes_of_job(plan, steps, counts, now), now)

    async def watching(self, job_id: UUID) -> AsyncGenerator[Snapshot, None]:
        """Snapshots until the job has ended, whenever the stream says that something happened."""
        changed = asyncio.Event()
        listener = asyncio.create_task(self._listen(job_id, changed))
        try:
            while True:
                changed.clear()
                began_s = time.monotonic()
                snapshot = await self.snapshot(job_id)
                yield snapshot
                if snapshot.is_over:
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SILENCE_S):
                        await changed.wait()
                error = listener.exception() if listener.done() else None
                if error is not None and not isinstance(error, Unavailable):
                    raise error
                await asyncio.sleep(max(0.0, REDRAW_S - (time.monotonic() - began_s)))
        finally:
            listener.cancel()
            await asyncio.wait([listener])

    async def _listen(self, job_id: UUID, changed: asyncio.Event) -> None:
        try:
            async for _ in self._client.job(job_id).stream():
                changed.set()
        finally:
            changed.set()

    async def events(self, job_id: UUID, *, follow: bool) -> AsyncIterator[tuple[EventView, str]]:
        """Events with the names of their steps. The stream only rings; what is told comes from the list."""
        handle = self._client.job(job_id)
        names: dict[int, str] = {}
        seen = 0
        async for event in handle.events():
            seen = event.seq
            yield _event(event), await self._step_name(job_id, names, event.no)
        if not follow:
            return
        async for told in handle.stream(after=seen):
            if told.seq <= seen:
                continue
            async for event in handle.events(after=seen):
                seen = event.seq
                yield _event(event), await self._step_name(job_id, names, event.no)

    async def _step_name(self, job_id: UUID, names: dict[int, str], no: int | None) -> str:
        if no is None:
            return ""
        if no not in names:
            async for step in self._client.job(job_id).steps():
                names[step.no] = step.step if step.index is None else f"{step.step}[{step.index}]"
        return names.get(no, f"#{no}")

    async def state(self, job_id: UUID) -> JobState:
        """Where the job stands."""
        return await self._client.job(job_id).status()

    async def wait(self, job_id: UUID, timeout_s: float | None) -> JobState:
        """How the job ended, once it has."""
        return await self._client.job(job_id).wait(timeout_s)

    async def result(self, job_id: UUID) -> Any:
        """What a completed job gave."""
        return await self._client.run(flows.output(self._means, job_id))

    async def failure(self, job_id: UUID) -> JobFailed:
        """What stands for a job that ended badly."""
        return views.failure_of(await self._client.job(job_id).view())

    async def why(self, job_id: UUID, step: str | None) -> list[Reason]:
        """What each unfinished step waits for."""
        found = await self._client.job(job_id).why(step)
        return [Reason(one.step, StepState(one.state), one.because, one.detail) for one in found]

    async def submit(self, order: Order) -> tuple[UUID, bool]:
        """Make a job."""
        job = await self._client.submit(
            order.plan.recipe,
            inputs=order.inputs,
            key=order.key,
            labels=order.labels,
            priority=order.priority,
            deadline=order.deadline_s,
            ttl=order.ttl_s,
            webhook=order.webhook,
            budget=order.budget,
        )
        return job.id, job.is_new

    async def control(self, action: str, job_id: UUID, reason: str) -> bool | None:
        """Do one thing to a job."""
        handle = self._client.job(job_id)
        match action:
            case "cancel":
                return (await handle.cancel(reason)).changed
            case "pause":
                return (await handle.pause()).changed
            case "resume":
                return (await handle.resume()).changed
            case _:
                await handle.delete()
                return None

    async def recipes(self) -> list[RecipeVersion]:
        """Every recipe with its newest version."""
        return [
            RecipeVersion(one.name, one.version or 0, one.plan, one.created_at or datetime.now(UTC), one.description)
            for one in await self._client.recipes()
        ]

    async def recipe(self, name: str, version: int | None = None) -> Plan:
        """One recipe's plan."""
        return (await self.described(name, version)).plan

    async def described(self, name: str, version: int | None = None) -> Described:
        """One recipe's plan and description."""
        told = await self._client.recipe(name, version)
        return Described(_plan(told), told.get("description", ""))

    async def workers(self) -> list[dict[str, Any]]:
        """The worker processes."""
        body = await self._client.run(flows.document(self._means, "/workers"))
        return [{name: one.get(name) for name in wire.WORKER} for one in body["items"]]

    async def create_key(self, wish: KeyWish) -> tuple[str, dict[str, Any]]:
        """Make a key."""
        text, key = await self._client.create_key(
            wish.caller,
            name=wish.name,
            caller_type=wish.caller_type,
            tier=wish.tier,
            scopes=list(wish.scopes) or None,
            expires_in=wish.expires_in_s,
        )
        return text, wire.key_json(key)

    async def keys(self, caller: str | None) -> list[dict[str, Any]]:
        """The keys that there are."""
        return [wire.key_json(key) for key in await self._client.keys(caller)]

    async def revoke_key(self, key_id: str) -> None:
        """End a key's life."""
        await self._client.revoke_key(key_id)

    async def audit(self, wanted: AuditWish) -> list[dict[str, Any]]:
        """Records of the audit in order."""
        named = {"event": wanted.event, "caller": wanted.caller, "job_id": wanted.job_id, "since": wanted.since}
        query = [(name, str(value)) for name, value in named.items() if value is not None]
        return [
            record async for record in self._client.iterate(flows.pages(self._means, "/audit", query, wanted.limit))
        ]

    async def verify_audit(self, head: str | None) -> dict[str, Any]:
        """Whether the chain is whole."""
        told: dict[str, Any] = await self._client.run(flows.verify_audit(self._means, head))
        return told

    async def webhook(self, job_id: UUID, *, redeliver: bool) -> dict[str, Any]:
        """How far the word of a job's end has come."""
        path = f"/jobs/{job_id}/webhook"
        if redeliver:
            body = await self._client.run(flows.post(self._means, f"{path}/redeliver"))
        else:
            body = await self._client.run(flows.document(self._means, path))
        return {("state" if name == "status" else name): value for name, value in body.items()}


def _only(found: list[UUID], text: str) -> UUID:
    if not found:
        raise NotFound(f"there is no job {text}", remedy="`windlass jobs` lists the known ones")
    if len(found) > 1:
        raise BadInput(f"more than one job's id begins with {text}", remedy="Give more of it")
    return found[0]


def _instant(ms: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).isoformat()


def _job(view: views.JobView, given: Any = None) -> JobView:
    return JobView(
        **{name: getattr(view, name) for name in _SAME},
        event_seq=0,
        input=given,
        progress={"pct": view.progress_pct, "message": view.progress_message},
        parent_no=None,
    )


_SAME = (
    "id", "recipe", "recipe_version", "plan", "state", "caller", "priority", "is_paused", "steps_total", "steps_open",
    "steps_failed", "error", "labels", "idempotency_key", "correlation_id", "parent_job", "retry_of", "created_at",
    "started_at", "finished_at", "deadline_at", "expires_at", "deleted_at",
)  # fmt: skip


# What servers of earlier releases do not tell.
_SINCE = ("provider", "concurrency", "limit", "cost", "wait_s", "ttl_s")


def _plan(told: dict[str, Any]) -> Plan:
    nodes = tuple(
        Node(
            name=one["step"],
            kind=NodeKind(one["kind"]),
            run=one["run"],
            needs=tuple(one["needs"]),
            with_=one["arguments"],
            when=one["when"],
            each=one["each"],
            queue=one["queue"],
            retry=Retry(**one["retry"]),
            timeout_s=one["timeout_s"],
            **{name: one[name] for name in _SINCE if name in one},
        )
        for one in told["nodes"]
    )
    return Plan(told["name"], nodes, told["inputs_schema"], told["output"], OnFailure(told["on_failure"]))


def _unmet(graph: dict[str, Any]) -> dict[int, int]:
    """How many things each node waits for: of a fan-out that is under way, its children."""
    found: dict[int, int] = {}
    for node in graph["nodes"]:
        fan = node.get("fan")
        found[node["no"]] = graph["incoming"][node["step"]]
        if fan is not None and node["status"] == StepState.PARKED:
            done = sum(count for state, count in fan["by_status"].items() if StepState(state) in STEP_TERMINAL)
            found[node["no"]] = (fan["total"] or 0) - done
    return found


def _step_json(step: views.StepDocument, unmet: int) -> dict[str, Any]:
    return {
        "no": step.no,
        "step": step.step,
        "index": step.index,
        "kind": step.kind,
        "run": step.run,
        "state": step.state,
        "queue": step.queue,
        "needs_unmet": unmet,
        "attempt": step.attempt,
        "failures": step.failures,
        "losses": step.losses,
        "worker": step.worker,
        "waiting_for": step.waiting_for,
        "wake_at": wire.moment(step.wake_at),
        "progress": step.progress,
        "error": step.error,
        "started_at": wire.moment(step.started_at),
        "finished_at": wire.moment(step.finished_at),
    }


def _event(event: views.Event) -> EventView:
    return EventView(
        event.seq,
        event.at or datetime.now(UTC),
        event.type,
        event.source,
        event.no,
        event.attempt,
        event.payload,
        event.correlation_id,
        event.idempotency_key,
    )


def _graph(recipe: str, graph: dict[str, Any]) -> tuple[Plan, list[StepView], list[FanCount]]:
    """A graph document as the rows that a picture is drawn from."""
    nodes: list[Node] = []
    steps: list[StepView] = []
    counts: list[FanCount] = []
    for place, told in enumerate(graph["nodes"]):
        fan = told.get("fan")
        nodes.append(
            Node(
                told["step"],
                NodeKind(told["kind"]),
                told.get("run") or "",
                tuple(told.get("needs") or ()),
                each=None if fan is None else "",
            )
        )
        steps.append(_node(place, told, fan))
        for state, count in ((fan or {}).get("by_status") or {}).items():
            # Failures and times of single children are not told; the picture does without.
            counts.append(FanCount(place, StepState(state), count, 0, None, None))
    return Plan(recipe, tuple(nodes)), steps, counts


def _node(place: int, told: dict[str, Any], fan: dict[str, Any] | None) -> StepView:
    names = ("wake_at", "started_at", "finished_at")
    values: dict[str, Any] = {n: datetime.fromisoformat(told[n]) if told.get(n) else None for n in names}
    values |= {name: told.get(name) or 0 for name in ("attempt", "failures", "losses")}
    values |= {name: told.get(name) for name in ("waiting_for", "error", "progress")}
    return StepView(
        no=told["no"],
        node=place,
        index=None,
        state=StepState(told["status"]),
        queue=told.get("queue") or "",
        unmet=0,
        fan=None if fan is None else fan.get("total"),
        worker=None,
        item=None,
        output=None,
        **values,
    )
