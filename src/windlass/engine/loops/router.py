"""The router resolves READY steps: steps that need a decision of the engine before they can go on.

A READY step has a condition, a fan-out, a timer, a child recipe, an event to wait for, or a slot to wait for. The
router evaluates its expressions outside any transaction, because they may take long. It then decides and writes under
the job's lock, if the step is still READY. Two routers that resolve the same step get the same value, and the second
finds it done.

Callers take turns. One task per caller resolves steps whose expressions need the evaluator. A task that takes longer
than `patience_s` continues beside the router. Until it has ended, the router reads no further steps of its caller.
After a full batch the router reads the steps of other callers first.

    read READY steps ─► plain ones: resolve ───────────────────────────────────┐
      of callers whose    │                                                    ├─► write ─► read again
      turn it is          └► expressions: a task per caller ─► within patience ┘
                                    │ longer                                   ▲
                                    ▼                                          │
                                 goes on; the caller is passed over ─► ends ───┘

A fan-out adds its children while its caller has room for them (`engine/backlog.py`). Until then its step stays READY
and the router skips it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeGuard
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import route as law
from windlass.core.bell import RouteDue
from windlass.core.draft import Draft, Step, touched_by
from windlass.core.effect import StartJob
from windlass.core.errors import BadExpression, OutputQuarantined, Refused
from windlass.core.outcome import Fault
from windlass.core.plan import NodeKind, Plan
from windlass.core.route import Await, Call, Fan, Resolution, Run, Skip, Sleep, Unresolvable
from windlass.core.template import Resolver, Template, as_condition, as_items, as_key, plan_templates
from windlass.core.visibility import Reader
from windlass.engine import approvals, rerun
from windlass.engine.backlog import FREE_MAX, Backlog
from windlass.engine.children import Line, hand_down, kept_children
from windlass.engine.door import enter, gated
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.policies import Current
from windlass.engine.recipes import latest
from windlass.engine.signals import Early
from windlass.engine.submit import Accepted, Submission, insert
from windlass.recipe.schema import check_inputs
from windlass.store import drafts
from windlass.store.artifact import Artifacts
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.plans import plan_of, read_plan
from windlass.store.statements import sql
from windlass.store.values import Wanted, outputs_of_many, scope

BATCH_MAX = 200
# A batch takes no further step once it adds this many children.
CHILDREN_MAX = 10_000
MATCH_CHARS_MAX = 64 * 1024
# The most items of a fan-out.
FAN_OUT_MAX = 100_000
# How long a batch waits for expressions before it goes on without them.
PATIENCE_S = 0.05

# The outputs that a step refers to, or the error that denies them.
Outputs = Mapping[str, Any] | OutputQuarantined
Ready = tuple[asyncpg.Record, Plan, Outputs]
Resolved = tuple[asyncpg.Record, Resolution]
# A batch that starts no job needs no policy.
NO_JOBS = Current()


class _Slow:
    """The steps of one caller whose expressions a task resolves."""

    def __init__(self, task: asyncio.Task[None], found: list[Resolved]) -> None:
        self.task = task
        self.found = found

    def take(self) -> list[Resolved]:
        """Return and clear the steps resolved since the last call."""
        found = self.found[:]
        self.found.clear()
        return found


class Router(EngineDuty):
    """Resolves READY steps."""

    name = "router"
    bells = (RouteDue,)
    due = Due("step_ready_due")

    def __init__(
        self,
        db: Database,
        artifacts: Artifacts,
        resolver: Resolver,
        new_id: Callable[[], UUID],
        *,
        backlog: Backlog,
        fan_out_max: int = FAN_OUT_MAX,
        on_resolved: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._artifacts = artifacts
        self._resolver = resolver
        self._new_id = new_id
        self._backlog = backlog
        self._fan_out_max = fan_out_max
        self._on_resolved = on_resolved
        self.patience_s = PATIENCE_S
        # By caller: the steps that a task resolves beside the router.
        self._slow: dict[str, _Slow] = {}
        # Callers that had their turn in this round. Empty when all callers may be read.
        self._served: set[str] = set()

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(
            engine.db,
            engine.artifacts,
            engine.resolver,
            engine.new_id,
            fan_out_max=engine.fan_out_max,
            backlog=Backlog(engine.db, engine.backlog_max, lambda: asyncio.get_running_loop().time()),
            on_resolved=lambda: engine.ring(cls.name),
        )

    async def run_once(self) -> Done:
        """Resolve one batch of READY steps."""
        is_round = bool(self._served)
        rows = await self._read()
        if not rows and is_round:
            self._served.clear()
            rows = await self._read()
        if not rows and not self._slow:
            return Done(0)
        is_full = len(rows) >= BATCH_MAX
        self._served = self._served | {row["caller"] for row in rows} if is_full else set()
        plans = [await plan_of(self._db, row["plan"]) for row in rows]
        wanted = [(row["job_id"], plan, _names(plan, row)) for row, plan in zip(rows, plans, strict=True)]
        outputs = await self._outputs(wanted)
        resolved = await self._paced(await self._resolve_all(list(zip(rows, plans, outputs, strict=True))))
        if resolved:
            calls = await self._calls(resolved)
            if calls:
                await gated(self._db, lambda connection, gate: self._write(connection, resolved, calls, gate))
            else:
                await self._db.run(lambda connection: self._write(connection, resolved, calls, NO_JOBS))
        for error in self._ended():
            raise error
        is_fan = any(isinstance(resolution, Fan) and resolution.items for _, resolution in resolved)
        return Done(len(resolved), bool(resolved) and (is_round or is_full or is_fan))

    async def _read(self) -> list[asyncpg.Record]:
        if self._backlog.full:
            await self._backlog.refresh()
        passed_over, full = sorted(self._served | self._slow.keys()), sorted(self._backlog.full)
        found: list[asyncpg.Record] = await self._db.run(
            lambda connection: connection.fetch(sql("step_ready"), BATCH_MAX, passed_over, full)
        )
        return found

    async def _outputs(self, wanted: Sequence[Wanted]) -> list[Outputs]:
        """Read the outputs that each step refers to. A refusal for one step does not affect the rest of the batch."""
        try:
            return list(await outputs_of_many(self._db, self._artifacts, wanted, Reader.NEXT_STEP))
        except OutputQuarantined as error:
            if len(wanted) == 1:
                return [error]
        return [found for one in wanted for found in await self._outputs([one])]

    async def resolving(self) -> bool:
        """Wait for slow expressions or for room for fan-outs. Returns False if neither is pending.

        For tests: a started loop needs no such call.
        """
        if full := set(self._backlog.full):
            await self._backlog.refresh(at_once=True)
            if self._backlog.full < full:
                return True
        tasks = [slow.task for slow in self._slow.values()]
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return bool(tasks)

    async def close(self) -> None:
        """Cancel the running resolutions. Their steps stay READY, for another router or a restart."""
        slow, self._slow = self._slow, {}
        for one in slow.values():
            one.task.cancel()
        await asyncio.gather(*(one.task for one in slow.values()), return_exceptions=True)

    async def _resolve_all(self, ready: Sequence[Ready]) -> list[Resolved]:
        """Resolve these steps, and collect the results of slow tasks that are ready."""
        resolved: list[Resolved] = []
        by_caller: dict[str, list[Ready]] = {}
        children = 0
        for one in ready:
            row, plan, outputs = one
            if _needs_evaluator(plan, row):
                by_caller.setdefault(row["caller"], []).append(one)
            elif children < CHILDREN_MAX:
                resolution = await self._resolve(plan, row, outputs)
                resolved.append((row, resolution))
                children += len(resolution.items) if isinstance(resolution, Fan) else 0
        for caller, steps in by_caller.items():
            self._begin(caller, steps)
        if by_caller:
            tasks = [self._slow[caller].task for caller in by_caller]
            _, late = await asyncio.wait(tasks, timeout=self.patience_s)
            for task in late:
                task.add_done_callback(lambda _: self._on_resolved())
        for slow in self._slow.values():
            resolved += slow.take()
        return resolved

    def _ended(self) -> list[BaseException]:
        """Forget the tasks that have ended, so that their callers get turns again.

        Returns the errors of failed tasks.
        """
        ended = {caller: slow.task for caller, slow in self._slow.items() if slow.task.done() and not slow.found}
        for caller in ended:
            del self._slow[caller]
        tasks = [task for task in ended.values() if not task.cancelled()]
        return [error for task in tasks if (error := task.exception()) is not None]

    def _begin(self, caller: str, steps: Sequence[Ready]) -> None:
        found: list[Resolved] = []

        async def resolve() -> None:
            children = 0
            for row, plan, outputs in steps:
                resolution = await self._resolve(plan, row, outputs)
                found.append((row, resolution))
                children += len(resolution.items) if isinstance(resolution, Fan) else 0
                if children >= CHILDREN_MAX:
                    break

        task = asyncio.create_task(resolve(), name="windlass-resolving")
        self._slow[caller] = _Slow(task, found)

    async def _resolve(self, plan: Plan, row: asyncpg.Record, outputs: Outputs) -> Resolution:
        if isinstance(outputs, OutputQuarantined):
            return Unresolvable(Fault(outputs.code, str(outputs)))
        node = plan.nodes[row["node"]]
        templates = plan_templates(plan).nodes[row["node"]]
        values = scope(msgspec.json.decode(row["input"]), dict(outputs), item=row["item"], index=row["index"])
        place = f"steps.{node.name}"
        try:
            if row["index"] is None and row["fan"] is None and templates.when is not None:
                held = await self._resolver.resolve_async(templates.when, values, row["caller"])
                if not as_condition(held, f"{place}.when"):
                    return Skip()
            if row["index"] is None and templates.each is not None:
                found = await self._resolver.resolve_async(templates.each, values, row["caller"])
                items = as_items(found, f"{place}.each")
                # A fan-out that has begun goes on if the limit was lowered meanwhile.
                if len(items) > self._fan_out_max and row["fan"] is None:
                    told = f"{place}.each has {len(items):,} items, and a fan-out may have {self._fan_out_max:,}"
                    return Unresolvable(Fault("fan_out_too_large", told))
                return _fan(items, row["fanned"] or 0)
            if node.kind is NodeKind.TASK:
                if templates.concurrency is None:
                    return Run()
                key = await self._resolver.resolve_async(templates.concurrency, values, row["caller"])
                return Run(as_key(key, f"{place}.concurrency"))
            arguments = await self._resolver.resolve_async(templates.with_, values, row["caller"])
            if node.kind is NodeKind.EVENT:
                return _await(arguments)
            if node.kind is NodeKind.APPROVAL:
                return approvals.ask(self._new_id(), arguments)
            return _sleep(arguments) if node.kind is NodeKind.TIMER else Call(arguments)
        except Refused as error:
            code = "bad_expression" if isinstance(error, BadExpression) else error.code
            return Unresolvable(Fault(code, str(error)))

    async def _paced(self, resolved: list[Resolved]) -> list[Resolved]:
        """Drop the children of fan-outs whose callers have no room now.

        A fan-out that has not begun is written without children, which marks it as waiting for room.
        """
        if any(_is_charged(resolution) for _, resolution in resolved):
            await self._backlog.refresh()
        paced: list[Resolved] = []
        for row, resolution in resolved:
            if not _is_charged(resolution) or self._backlog.take(row["caller"], len(resolution.items)):
                paced.append((row, resolution))
            elif row["fan"] is None:
                paced.append((row, Fan((), 0, resolution.total)))
        return paced

    async def _calls(self, resolved: list[tuple[asyncpg.Record, Resolution]]) -> dict[tuple[UUID, int], Submission]:
        """Build the child jobs that the batch starts. A child that cannot start becomes Unresolvable in `resolved`."""
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
        gate: Current,
    ) -> None:
        wanted: dict[UUID, set[int]] = {}
        for row, resolution in resolved:
            plan = await read_plan(connection, row["plan"])
            # Only these can fail the step, and with it all its dependents.
            can_fail = isinstance(resolution, Fan | Unresolvable)
            touched = touched_by(plan, row["no"], row["node"], is_success=not can_fail)
            wanted.setdefault(row["job_id"], set()).update(touched)
        async with connection.transaction():
            await enter(connection, gate)
            await drafts.lock(connection, wanted)
            found = await drafts.load(connection, wanted, lambda h: read_plan(connection, h))
            by_job = {draft.job.id: draft for draft in found}
            early = await Early.load(connection, self._awaited(resolved, by_job))
            asks = await approvals.asked(connection, resolved, by_job)
            for row, resolution in resolved:
                if (draft := by_job.get(row["job_id"])) is not None:
                    draft.source = self.name
                    resolution = asks.get((row["job_id"], row["no"]), resolution)
                    if isinstance(resolution, Await):
                        early.route(draft, row["no"], resolution)
                    else:
                        law.route(draft, row["no"], resolution)
            await drafts.write(connection, found)
            await early.write(connection)
            started = [call for draft in found for call in _children_of(draft, calls)]
            if started:
                await self._start(connection, started, gate)

    async def _start(
        self, connection: asyncpg.Connection, started: list[tuple[Step, Submission]], gate: Current
    ) -> None:
        """Make the child jobs. A child of a retried job continues where the earlier child failed.

        A child that the policy denies has ended in this commit, and its end is on the way to the parent's step.
        """
        again = [(new.retry_of, step.node, step.index, new) for step, new in started if new.retry_of is not None]
        kept = await kept_children(connection, again)
        made = [submission._replace(retry_of=kept.get(submission.job_id)) for _, submission in started]
        answers = await insert(connection, made, gate)
        live = [(new, one) for new, one in zip(made, answers, strict=True) if isinstance(one, Accepted)]
        for submission, answer in live:
            if submission.retry_of is not None:
                await rerun.keep(connection, submission.retry_of, submission, answer, self.name)
        if timed := [submission.job_id for submission, _ in live if submission.deadline_s is not None]:
            await hand_down(connection, timed)

    @staticmethod
    def _awaited(
        resolved: list[tuple[asyncpg.Record, Resolution]], by_job: Mapping[UUID, Draft]
    ) -> set[tuple[UUID, str]]:
        """Return the jobs that begin to wait for an event, with the events' names."""
        return {
            (row["job_id"], by_job[row["job_id"]].plan.nodes[row["node"]].run)
            for row, resolution in resolved
            if isinstance(resolution, Await) and row["job_id"] in by_job
        }


def _templates(plan: Plan, row: asyncpg.Record) -> list[Template]:
    """Return the templates that the router must resolve for this step."""
    templates = plan_templates(plan).nodes[row["node"]]
    asked = [templates.with_] if plan.nodes[row["node"]].kind is not NodeKind.TASK else []
    if templates.concurrency is not None:
        asked.append(templates.concurrency)
    if row["index"] is None:
        asked += [template for template in (templates.when, templates.each) if template is not None]
    return asked


def _names(plan: Plan, row: asyncpg.Record) -> frozenset[str]:
    return frozenset[str]().union(*(template.steps for template in _templates(plan, row)))


def _needs_evaluator(plan: Plan, row: asyncpg.Record) -> bool:
    return any(template.expressions for template in _templates(plan, row))


def _is_charged(resolution: Resolution) -> TypeGuard[Fan]:
    """Whether the resolution is a large fan-out, which needs room of its caller."""
    return isinstance(resolution, Fan) and resolution.total > FREE_MAX


def _fan(items: list[Any], start: int) -> Fan:
    batch = items[start : start + law.FAN_BATCH_MAX]
    return Fan(tuple(encode(item) for item in batch), start, len(items))


def _await(match: Any) -> Resolution:
    text = encode(match)
    if len(text) > MATCH_CHARS_MAX:
        told = f"the event's match has {len(text):,} characters; at most {MATCH_CHARS_MAX:,} are allowed"
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
        for new in draft.effects_of(StartJob)
    ]
