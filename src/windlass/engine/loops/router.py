"""The router resolves what the engine itself must know before a step can go on.

A READY step has a condition, a fan-out, a timer, a child recipe, an event to wait for, or something to stand in line
for. Its expressions are evaluated outside any transaction, as they may take long; what they gave is then decided on
and written under the job's lock, if the step is still READY. Two routers that resolve the same step come to the same
value, and the second finds it done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import route as law
from windlass.core.draft import Draft, Step, touched_by
from windlass.core.errors import BadExpression, Refused
from windlass.core.outcome import Fault
from windlass.core.plan import NodeKind, Plan
from windlass.core.route import Await, Call, Fan, Resolution, Run, Skip, Sleep, Unresolvable
from windlass.core.template import as_condition, as_items, as_key, plan_templates
from windlass.engine import rerun
from windlass.engine.children import Line, hand_down, kept_children
from windlass.engine.loops.duty import Done
from windlass.engine.read import Resolver
from windlass.engine.recipes import latest, plan_of, read_plan
from windlass.engine.signals import Early
from windlass.engine.submit import Submission, insert
from windlass.engine.values import outputs_of_many, scope
from windlass.recipe.schema import check_inputs
from windlass.store import drafts
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.drafts import encode
from windlass.store.statements import sql

BATCH_MAX = 200
# A batch stops growing once it would add this many children.
CHILDREN_MAX = 10_000
MATCH_CHARS_MAX = 64 * 1024


class Router:
    """See the module."""

    name = "router"

    def __init__(self, db: Database, artifacts: Artifacts, resolver: Resolver, new_id: Callable[[], UUID]) -> None:
        self._db = db
        self._artifacts = artifacts
        self._resolver = resolver
        self._new_id = new_id

    async def run_once(self) -> Done:
        """Resolve one batch of READY steps."""
        rows = await self._db.run(lambda connection: connection.fetch(sql("step_ready"), BATCH_MAX))
        if not rows:
            return Done(0)
        plans = [await plan_of(self._db, row["plan"]) for row in rows]
        wanted = [(row["job_id"], plan, _names(plan, row)) for row, plan in zip(rows, plans, strict=True)]
        outputs = await outputs_of_many(self._db, self._artifacts, wanted)
        resolved: list[tuple[asyncpg.Record, Resolution]] = []
        children = 0
        for row, plan, values in zip(rows, plans, outputs, strict=True):
            resolution = await self._resolve(plan, row, values)
            resolved.append((row, resolution))
            children += len(resolution.items) if isinstance(resolution, Fan) else 0
            if children >= CHILDREN_MAX:
                break
        calls = await self._calls(resolved)
        await self._db.run(lambda connection: self._write(connection, resolved, calls))
        is_more = len(rows) >= BATCH_MAX or children > 0
        return Done(len(resolved), is_more)

    async def _resolve(self, plan: Plan, row: asyncpg.Record, outputs: Mapping[str, Any]) -> Resolution:
        node = plan.nodes[row["node"]]
        templates = plan_templates(plan).nodes[row["node"]]
        values = scope(msgspec.json.decode(row["input"]), dict(outputs), item=row["item"], index=row["index"])
        place = f"steps.{node.name}"
        try:
            if row["index"] is None and row["fan"] is None and templates.when is not None:
                held = await self._resolver.resolve_async(templates.when, values)
                if not as_condition(held, f"{place}.when"):
                    return Skip()
            if row["index"] is None and templates.each is not None:
                items = as_items(await self._resolver.resolve_async(templates.each, values), f"{place}.each")
                return _fan(items, row["fanned"] or 0)
            if node.kind is NodeKind.TASK:
                if templates.concurrency is None:
                    return Run()
                key = await self._resolver.resolve_async(templates.concurrency, values)
                return Run(as_key(key, f"{place}.concurrency"))
            arguments = await self._resolver.resolve_async(templates.with_, values)
            if node.kind is NodeKind.EVENT:
                return _await(arguments)
            return _sleep(arguments) if node.kind is NodeKind.TIMER else Call(arguments)
        except Refused as error:
            code = "bad_expression" if isinstance(error, BadExpression) else error.code
            return Unresolvable(Fault(code, str(error)))

    async def _calls(self, resolved: list[tuple[asyncpg.Record, Resolution]]) -> dict[tuple[UUID, int], Submission]:
        """The child jobs that the batch starts; one that cannot be started becomes Unresolvable in place."""
        asked = [
            (at, row, (await plan_of(self._db, row["plan"])).nodes[row["node"]], resolution.inputs)
            for at, (row, resolution) in enumerate(resolved)
            if isinstance(resolution, Call)
        ]
        calls: dict[tuple[UUID, int], Submission] = {}
        if not asked:
            return calls
        wanted = [(row["job_id"], node.run) for _, row, node, _ in asked]
        line = await self._db.run(lambda connection: Line.load(connection, wanted))
        newest: dict[str, Plan] = {}
        for at, row, node, given in asked:
            kin = line.kin[row["job_id"]]
            try:
                if node.run not in newest:
                    newest[node.run] = await latest(self._db, node.run)
                inputs = check_inputs(newest[node.run], given)
                line.check(row["job_id"], node.run, inputs)
            except Refused as error:
                resolved[at] = (row, Unresolvable(Fault("bad_child", str(error))))
                continue
            new = kin.submission(self._new_id(), newest[node.run], inputs, node.ttl_s)
            calls[row["job_id"], row["no"]] = new._replace(retry_of=kin.child_of(row["node"]))
        return calls

    async def _write(
        self,
        connection: asyncpg.Connection,
        resolved: list[tuple[asyncpg.Record, Resolution]],
        calls: dict[tuple[UUID, int], Submission],
    ) -> None:
        wanted: dict[UUID, set[int]] = {}
        for row, _ in resolved:
            plan = await read_plan(connection, row["plan"])
            touched = touched_by(plan, row["no"], row["node"], is_success=False)
            wanted.setdefault(row["job_id"], set()).update(touched)
        async with connection.transaction():
            await drafts.lock(connection, wanted)
            found = await drafts.load(connection, wanted, lambda h: read_plan(connection, h))
            by_job = {draft.job.id: draft for draft in found}
            early = await Early.load(connection, self._awaited(resolved, by_job))
            for row, resolution in resolved:
                if (draft := by_job.get(row["job_id"])) is not None:
                    draft.source = self.name
                    if isinstance(resolution, Await):
                        early.route(draft, row["no"], resolution)
                    else:
                        law.route(draft, row["no"], resolution)
            await drafts.write(connection, found)
            await early.write(connection)
            started = [call for draft in found for call in _children_of(draft, calls)]
            if started:
                await self._start(connection, started)

    async def _start(self, connection: asyncpg.Connection, started: list[tuple[Step, Submission]]) -> None:
        """Make the child jobs. One that is made for a retried job goes on where the one before it failed."""
        again = [(new.retry_of, step.node, step.index, new) for step, new in started if new.retry_of is not None]
        kept = await kept_children(connection, again)
        made = [submission._replace(retry_of=kept.get(submission.job_id)) for _, submission in started]
        await insert(connection, made)
        for submission in made:
            if submission.retry_of is not None:
                await rerun.keep(connection, submission.retry_of, submission, self.name)
        if timed := [submission.job_id for submission in made if submission.deadline_s is not None]:
            await hand_down(connection, timed)

    @staticmethod
    def _awaited(
        resolved: list[tuple[asyncpg.Record, Resolution]], by_job: Mapping[UUID, Draft]
    ) -> set[tuple[UUID, str]]:
        """The jobs that begin to wait for an event, with the events' names."""
        return {
            (row["job_id"], by_job[row["job_id"]].plan.nodes[row["node"]].run)
            for row, resolution in resolved
            if isinstance(resolution, Await) and row["job_id"] in by_job
        }


def _names(plan: Plan, row: asyncpg.Record) -> frozenset[str]:
    templates = plan_templates(plan).nodes[row["node"]]
    names = templates.with_.steps if plan.nodes[row["node"]].kind is not NodeKind.TASK else frozenset[str]()
    if templates.concurrency is not None:
        names |= templates.concurrency.steps
    for template in (templates.when, templates.each):
        if template is not None and row["index"] is None:
            names |= template.steps
    return names


def _fan(items: list[Any], start: int) -> Fan:
    batch = items[start : start + law.FAN_BATCH_MAX]
    return Fan(tuple(encode(item) for item in batch), start, len(items))


def _await(match: Any) -> Resolution:
    text = encode(match)
    if len(text) > MATCH_CHARS_MAX:
        told = f"what the event must hold has {len(text):,} characters, and may have {MATCH_CHARS_MAX:,}"
        return Unresolvable(Fault("bad_event", told))
    return Await(text)


def _sleep(arguments: Any) -> Resolution:
    seconds = arguments.get("seconds") if isinstance(arguments, dict) else None
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= 10 * 365 * 86400:
        return Unresolvable(Fault("bad_timer", f"a timer cannot wait for {seconds!r} seconds"))
    return Sleep(float(seconds))


def _children_of(draft: Draft, calls: Mapping[tuple[UUID, int], Submission]) -> list[tuple[Step, Submission]]:
    return [
        (draft.steps[new.no], calls[draft.job.id, new.no]._replace(parent=(draft.job.id, new.no, new.attempt)))
        for new in draft.child_jobs
    ]
