"""An engine inside a test: a throwaway database, real handlers, and time that jumps.

    async with harness() as h:
        job = await h.submit(trailer, topic="the sea")
        assert await h.result(job) == {...}

Nothing runs in the background. `run` lets the engine and a worker act, with the code of production. When every step
waits, the clock jumps to the end of the next wait: a retry after a minute and a timer of a day take no time at all. The
providers that recipes name exist too, and give the answers that the test sets (`provider`).
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from windlass.app.entropy import Ids
from windlass.app.job import Job
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.client.views import Event, JobView, StepDocument
from windlass.core.approval import ApprovalState, Choice, Voter
from windlass.core.caller import LOCAL
from windlass.core.errors import NotFound, WrongState
from windlass.core.outcome import Failure, Fault, Report, Success
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.engine import approvals, signals
from windlass.engine.loops.runner import Loops
from windlass.engine.settle import settle
from windlass.recipe.evaluator import shared_evaluator
from windlass.recipe.recipe import Recipe
from windlass.recipe.step import Step
from windlass.store.artifact import INLINE_MAX, FolderArtifacts, fitted
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.store.plans import plan_of
from windlass.testing.clock import VirtualClock
from windlass.testing.hands import Hands, Stand
from windlass.testing.history import history
from windlass.testing.postgres import fresh_database
from windlass.testing.scripted import Asked, Respond
from windlass.testing.stage import CONCURRENCY, Stage
from windlass.views import explain, read
from windlass.views.approvals import of_job as approvals_of

# A recipe without an end after this many turns (an endless snooze, say) is stopped.
TURNS_MAX = 10_000


class Harness:
    """An engine for a test. `clock` is the time of the whole engine; `windlass` is the SDK on the same database."""

    def __init__(
        self,
        windlass: Windlass,
        clock: VirtualClock,
        loops: Loops,
        hands: Hands,
        steps: dict[str, Stand],
        stage: Stage,
    ) -> None:
        self.windlass = windlass
        self.db = windlass.db
        self.clock = clock
        self._loops = loops
        self._hands = hands
        self._steps = steps
        self._stage = stage
        self._sent = 0
        self._stubs: set[str] = set()

    async def submit(self, recipe: Recipe, /, **given: Any) -> Job:
        """Submit a job, with the inputs and options of `Windlass.submit`. Nothing runs yet."""
        await self.register(recipe)
        return await self.windlass.submit(recipe, **given)

    async def register(self, *recipes: Recipe) -> None:
        """Register the recipes, with their handlers, child recipes and providers."""
        await self.windlass.register(*recipes)
        for recipe in _with_children(recipes):
            for step in recipe.steps.values():
                if step.name not in self._stubs:
                    self._steps[step.name] = Stand(step.name, step.function)
            for name in sorted({node.provider for node in recipe.plan.nodes if node.provider}):
                self._stage.adapter(name)
            self._hands.forget_handlers()
            undos = {node.undo.queue for node in recipe.plan.nodes if node.undo is not None}
            await self._hands.enlist(sorted(undos | {node.queue for node in recipe.plan.nodes}))

    def stub(self, step: Step | str, function: Callable[..., Any]) -> None:
        """From now on let `function` do this step. It must take the same arguments, or any."""
        name = step if isinstance(step, str) else step.name
        self._stubs.add(name)
        self._steps[name] = Stand(name, function)
        self._hands.forget_handlers()

    def provider(self, name: str, respond: Respond | None = None, *, concurrency: int = CONCURRENCY) -> None:
        """Let `respond(model, input)` do the work of this provider; no network is used.

        It may be `async`. Its return value is the step's result, its exception the step's failure. A provider without
        `respond` accepts the work and never reports an end: end the step with `answer` or `refuse`.
        """
        self._stage.add(name, respond, concurrency)

    def asked(self, name: str) -> list[Asked]:
        """Return the work that this provider was given: model, input, key, and whether it was cancelled."""
        return list(self._stage.adapter(name).asked)

    async def run(self, job: Job | UUID | None = None) -> JobState | None:
        """Run until the job has ended, or until nothing can run any more; return the job's state.

        The clock jumps to the moment at which a step wakes without an event: a timer, a retry, a snooze. When only an
        event or an external answer could continue the job, the run stops. It does not jump to the timeout of that wait,
        nor to the end of the job's time to live. Use `advance` for those.
        """
        for _ in range(TURNS_MAX):
            acted = await self._act()
            if job is not None and (status := await self._handle(job).status()) in JOB_TERMINAL:
                return status
            if not acted and not await self._jump():
                return None if job is None else await self._handle(job).status()
        raise AssertionError(
            f"no end after {TURNS_MAX} turns" + ("" if job is None else "\n" + await self.history(job))
        )

    async def advance(self, by: float | str | timedelta) -> None:
        """Let this much time pass; each thing due within it happens at its own moment."""
        until = VirtualClock(self.clock.now()).advance(by)
        for _ in range(TURNS_MAX):
            if await self._act():
                continue
            if not await self._jump(until=until):
                self.clock.reach(until)
                if not await self._act():
                    return
        raise AssertionError(f"no end after {TURNS_MAX} turns")

    async def result(self, job: Job | UUID) -> Any:
        """Run the job to its end and return its output; fails with its history if it does not complete."""
        await self.assert_status(job, JobState.COMPLETED, await self.run(job))
        return await read.result(self.db, self.windlass.artifacts, shared_evaluator(), _id(job))

    async def answer(self, job: Job | UUID, step: str, value: Any) -> bool:
        """Report the success of a step that waits for an external answer (`Parked`); return whether it took effect."""
        text = msgspec.json.encode(value).decode()
        return await self._report(job, step, Success(await fitted(self.windlass.artifacts, text, INLINE_MAX)))

    async def refuse(self, job: Job | UUID, step: str, message: str, *, code: str = "external") -> bool:
        """Report the final failure of a step that waits for an external answer."""
        return await self._report(job, step, Failure(Fault(code, message), is_retryable=False))

    async def send(self, job: Job | UUID, name: str, body: Any = None, *, id: str | None = None) -> signals.Sent:
        """Send the job an event; the same `id` again changes nothing."""
        self._sent += 1
        return await signals.send(self.db, _id(job), name, body, id=id or f"test-{self._sent}", sender="test")

    async def approve(self, job: Job | UUID, *, by: str, roles: Sequence[str] = (), reason: str = "") -> ApprovalState:
        """Approve what the job waits for, as this caller; return the approval's state after it."""
        return await self._vote(job, Choice.APPROVE, by, roles, reason)

    async def reject(self, job: Job | UUID, *, by: str, roles: Sequence[str] = (), reason: str = "") -> ApprovalState:
        """Reject what the job waits for, as this caller; return the approval's state after it."""
        return await self._vote(job, Choice.REJECT, by, roles, reason)

    async def _vote(self, job: Job | UUID, choice: Choice, by: str, roles: Sequence[str], reason: str) -> ApprovalState:
        await self.run()
        found = await approvals_of(self.db, LOCAL, _id(job))
        waiting = [one.id for one in found if one.state is ApprovalState.PENDING]
        if not waiting:
            raise WrongState(f"job {_id(job)} waits for no approval")
        voter = Voter(by, frozenset(roles), may_decide=True)
        return await approvals.vote(self.db, approvals.Cast(waiting[-1], voter, choice, reason))

    async def view(self, job: Job | UUID) -> JobView:
        """Return the job as `Job.view` and the client show it."""
        return await self._handle(job).view()

    async def events(self, job: Job | UUID) -> list[Event]:
        """Return all events of the job, in order."""
        return [event async for event in self._handle(job).events(follow=False)]

    async def steps(self, job: Job | UUID) -> dict[str, StepDocument]:
        """Return the job's steps by name; children of a fan-out are `name[0]`, `name[1]`, …"""
        found = await self._handle(job).steps()
        return {one.step if one.index is None else f"{one.step}[{one.index}]": one for one in found}

    async def history(self, job: Job | UUID) -> str:
        """Return the job's history as text."""
        view = await read.job(self.db, _id(job))
        plan = await plan_of(self.db, view.plan)
        events: list[read.EventView] = []
        while page := await read.events(self.db, view.id, after=events[-1].seq if events else 0):
            events += page
        steps, reasons = await read.steps(self.db, view.id), await explain.why(self.db, view.id)
        return history(view, plan, steps, events, reasons)

    async def assert_status(self, job: Job | UUID, status: JobState | str, found: JobState | None = None) -> None:
        """Fail, with the job's history, unless the job has this status."""
        found = found or await self._handle(job).status()
        if found != status:
            raise AssertionError(f"the job is {found}, not {status}\n{await self.history(job)}")

    async def assert_steps(self, job: Job | UUID, wanted: Mapping[str, StepState | str]) -> None:
        """Fail, with the job's history, unless these steps have these statuses."""
        steps = await self.steps(job)
        found = {name: steps[name].status if name in steps else None for name in wanted}
        wrong = {name: status for name, status in found.items() if status != wanted[name]}
        if wrong:
            told = ", ".join(f"{name} is {status}, not {wanted[name]}" for name, status in wrong.items())
            raise AssertionError(f"{told}\n{await self.history(job)}")

    def _handle(self, job: Job | UUID) -> Job:
        return self.windlass.job(_id(job))

    async def _report(self, job: Job | UUID, name: str, outcome: Success | Failure) -> bool:
        steps = await self.steps(job)
        if name not in steps:
            raise NotFound(f"the job has no step {name}", remedy=f"Its steps are {', '.join(steps)}")
        step = steps[name]
        report = Report(_id(job), step.no, step.attempt, outcome, source="test")
        return (await settle(self.db, [report], spread=random.Random(0).random)).took_effect[0]

    async def _act(self) -> bool:
        await self._stage.announce()
        return bool(await self._loops.run_until_idle() + await self._hands.work() + await self._stage.act())

    async def _jump(self, until: Any = None) -> bool:
        """Move the clock to the next due moment; return False when there is none to wait for."""
        moments = await self._loops.moments()
        due = await self._stage.due()
        due += [moments["granter"]] if "granter" in moments else []
        if until is None and not due:
            return False
        # The clock jumps over waits too, so an earlier end of a wait must come at its own moment.
        due += [moments[name] for name in ("waker", "expirer") if name in moments]
        if not due or (until is not None and min(due) > until):
            return False
        return self.clock.reach(min(due))


@asynccontextmanager
async def harness(dsn: str | None = None, *, seed: int = 0) -> AsyncIterator[Harness]:
    """Start an engine on an empty database: a new one, or `dsn`, which must be a database for tests.

    The first use in a process starts a PostgreSQL server, which takes a second or two. The server ends with the
    process.
    """
    rng = random.Random(seed)
    clock = VirtualClock()
    address = dsn or await fresh_database()
    db = await Database.open(address, now=clock.now)
    with tempfile.TemporaryDirectory(prefix="windlass-artifacts-") as folder:
        artifacts = FolderArtifacts(Path(folder))
        windlass = Windlass(db, Settings(), artifacts, address)
        windlass.ids = Ids(clock.now_ms, rng.getrandbits)
        evaluator = shared_evaluator()
        loops = Loops(db, artifacts, evaluator, new_id=windlass.ids.new, spread=rng.random)
        steps: dict[str, Stand] = {}
        stage = Stage(db, artifacts, clock, windlass.ids.new, rng)
        hands = Hands(
            db,
            steps,
            artifacts=artifacts,
            resolver=evaluator,
            worker=windlass.ids.new(),
            spread=rng.random,
            capabilities=stage.capabilities,
        )
        try:
            await migrate(db)
            yield Harness(windlass, clock, loops, hands, steps, stage)
        finally:
            await hands.close()
            await db.close()


def _id(job: Job | UUID) -> UUID:
    return job if isinstance(job, UUID) else job.job_id


def _with_children(recipes: Iterable[Recipe]) -> list[Recipe]:
    found: dict[str, Recipe] = {}
    stack = list(recipes)
    while stack:
        recipe = stack.pop()
        if recipe.name not in found:
            found[recipe.name] = recipe
            stack.extend(recipe.children.values())
    return list(found.values())
