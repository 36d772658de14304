"""An engine inside a test: a throwaway database, handlers really run, and time that jumps.

    async with harness() as h:
        job = await h.submit(trailer, topic="the sea")
        assert await h.result(job) == {...}

Nothing happens by itself. `run` lets the engine and a worker act, on the same code as in production, and whenever
all that is left is waiting, the clock jumps to the moment the next wait is over: a retry after a minute and a timer of
a day take no time at all. Providers that recipes name are there too, and say what the test tells them to
(`provider`).
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
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
from windlass.core.errors import NotFound
from windlass.core.outcome import Failure, Fault, Report, Success
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.engine import signals
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

# A recipe that comes to no end in this many turns (a snooze for ever, say) is stopped.
TURNS_MAX = 10_000


class Harness:
    """See the module. `clock` is the time that everything goes by; `windlass` is the SDK on the same database."""

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
        """Make a job; inputs and options are those of `Windlass.submit`. Nothing runs yet."""
        await self.register(recipe)
        return await self.windlass.submit(recipe, **given)

    async def register(self, *recipes: Recipe) -> None:
        """Make the recipes known, with their handlers and with all that they use."""
        await self.windlass.register(*recipes)
        for recipe in _with_children(recipes):
            for step in recipe.steps.values():
                if step.name not in self._stubs:
                    self._steps[step.name] = Stand(step.name, step.function)
            for name in sorted({node.provider for node in recipe.plan.nodes if node.provider}):
                self._stage.adapter(name)
            self._hands.forget_handlers()
            await self._hands.enlist(sorted({node.queue for node in recipe.plan.nodes}))

    def stub(self, step: Step | str, function: Callable[..., Any]) -> None:
        """From now on let `function` do this step. It must take the same arguments, or any."""
        name = step if isinstance(step, str) else step.name
        self._stubs.add(name)
        self._steps[name] = Stand(name, function)
        self._hands.forget_handlers()

    def provider(self, name: str, respond: Respond | None = None, *, concurrency: int = CONCURRENCY) -> None:
        """Let `respond(model, input)` do what recipes ask of this provider; no network is used.

        It may be `async`. What it returns is the step's result, what it raises the step's failure. A provider without
        it takes the work and says nothing: answer with `answer` or `refuse`.
        """
        self._stage.add(name, respond, concurrency)

    def asked(self, name: str) -> list[Asked]:
        """The work that this provider was given: model, input, key, and whether it was cancelled."""
        return list(self._stage.adapter(name).asked)

    async def run(self, job: Job | UUID | None = None) -> JobState | None:
        """Let everything happen until the job has ended, or nothing can happen any more; returns the job's state.

        Time jumps to wherever a step wakes up by itself: a timer, a retry, a snooze. When only an event or an answer
        from outside could go on, it stops: it jumps neither to the timeout of that wait nor to the end of the job's
        time to live. Use `advance` for those.
        """
        for _ in range(TURNS_MAX):
            acted = await self._act()
            if job is not None and (state := await self._state(job)) in JOB_TERMINAL:
                return state
            if not acted and not await self._jump():
                return None if job is None else await self._state(job)
        raise AssertionError(
            f"no end after {TURNS_MAX} turns" + ("" if job is None else "\n" + await self.history(job))
        )

    async def advance(self, by: float | str | timedelta) -> None:
        """Let this much time pass, and everything happen that is due in it, each thing at its own moment."""
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
        await self.assert_state(job, JobState.COMPLETED, await self.run(job))
        return await read.result(self.db, self.windlass.artifacts, shared_evaluator(), _id(job))

    async def answer(self, job: Job | UUID, step: str, value: Any) -> bool:
        """Report the success of a step that waits for word from outside (`Parked`); says whether it was heard."""
        text = msgspec.json.encode(value).decode()
        return await self._report(job, step, Success(await fitted(self.windlass.artifacts, text, INLINE_MAX)))

    async def refuse(self, job: Job | UUID, step: str, message: str, *, code: str = "external") -> bool:
        """Report the failure, for good, of a step that waits for word from outside."""
        return await self._report(job, step, Failure(Fault(code, message), is_retryable=False))

    async def send(self, job: Job | UUID, name: str, body: Any = None, *, id: str | None = None) -> signals.Sent:
        """Send the job an event; the same `id` again changes nothing."""
        self._sent += 1
        return await signals.send(self.db, _id(job), name, body, id=id or f"test-{self._sent}", sender="test")

    async def view(self, job: Job | UUID) -> read.JobView:
        """The job's row."""
        return await read.job(self.db, _id(job))

    async def events(self, job: Job | UUID) -> list[read.EventView]:
        """Everything that happened to the job, in order."""
        found: list[read.EventView] = []
        while page := await read.events(self.db, _id(job), after=found[-1].seq if found else 0):
            found += page
        return found

    async def steps(self, job: Job | UUID) -> dict[str, read.StepView]:
        """The job's steps by name; children of a fan-out are `name[0]`, `name[1]`, …"""
        plan = await plan_of(self.db, (await self.view(job)).plan)
        return {explain.step_name(plan, step): step for step in await read.steps(self.db, _id(job))}

    async def history(self, job: Job | UUID) -> str:
        """The job's history as text."""
        view = await self.view(job)
        plan = await plan_of(self.db, view.plan)
        steps, reasons = await read.steps(self.db, view.id), await explain.why(self.db, view.id)
        return history(view, plan, steps, await self.events(job), reasons)

    async def assert_state(self, job: Job | UUID, state: JobState | str, found: JobState | None = None) -> None:
        """Fail, with the job's history, unless the job is in this state."""
        found = found or await self._state(job)
        if found != state:
            raise AssertionError(f"the job is {found}, not {state}\n{await self.history(job)}")

    async def assert_steps(self, job: Job | UUID, wanted: Mapping[str, StepState | str]) -> None:
        """Fail, with the job's history, unless these steps are in these states."""
        steps = await self.steps(job)
        wrong = {name: steps[name].state if name in steps else None for name in wanted}
        wrong = {name: state for name, state in wrong.items() if state != wanted[name]}
        if wrong:
            told = ", ".join(f"{name} is {state}, not {wanted[name]}" for name, state in wrong.items())
            raise AssertionError(f"{told}\n{await self.history(job)}")

    async def _state(self, job: Job | UUID) -> JobState:
        return (await self.view(job)).state

    async def _report(self, job: Job | UUID, name: str, outcome: Success | Failure) -> bool:
        steps = await self.steps(job)
        if name not in steps:
            raise NotFound(f"the job has no step {name}", remedy=f"Its steps are {', '.join(steps)}")
        step = steps[name]
        report = Report(_id(job), step.no, step.attempt, outcome, source="test")
        return (await settle(self.db, [report], chance=random.Random(0).random)).took_effect[0]

    async def _act(self) -> bool:
        await self._stage.announce()
        return bool(await self._loops.run_until_idle() + await self._hands.work() + await self._stage.act())

    async def _jump(self, until: Any = None) -> bool:
        """Move the clock to the next moment at which something is due; False when there is none to wait for."""
        moments = await self._loops.moments()
        due = await self._stage.due()
        due += [moments["granter"]] if "granter" in moments else []
        if until is None and not due:
            return False
        # Time passes anyway, so a wait that ends first ends at its own moment.
        due += [moments[name] for name in ("waker", "expirer") if name in moments]
        if not due or (until is not None and min(due) > until):
            return False
        return self.clock.reach(min(due))


@asynccontextmanager
async def harness(dsn: str | None = None, *, seed: int = 0) -> AsyncIterator[Harness]:
    """An engine on an empty database: one that is made for it, or `dsn`, which must be a database for tests.

    The first use in a process starts a PostgreSQL server, which takes a second or two; it ends with the process.
    """
    chance = random.Random(seed)
    clock = VirtualClock()
    address = dsn or await fresh_database()
    db = await Database.open(address, now=clock.now)
    with tempfile.TemporaryDirectory(prefix="windlass-artifacts-") as folder:
        artifacts = FolderArtifacts(Path(folder))
        windlass = Windlass(db, Settings(), artifacts, address)
        windlass.ids = Ids(clock.now_ms, chance.getrandbits)
        evaluator = shared_evaluator()
        loops = Loops(db, artifacts, evaluator, new_id=windlass.ids.new, chance=chance.random)
        steps: dict[str, Stand] = {}
        stage = Stage(db, artifacts, clock, windlass.ids.new, chance)
        hands = Hands(
            db,
            steps,
            artifacts=artifacts,
            resolver=evaluator,
            worker=windlass.ids.new(),
            chance=chance.random,
            means=stage.means,
        )
        try:
            await migrate(db)
            yield Harness(windlass, clock, loops, hands, steps, stage)
        finally:
            await hands.close()
            await db.close()


def _id(job: Job | UUID) -> UUID:
    return job if isinstance(job, UUID) else job.id


def _with_children(recipes: Iterable[Recipe]) -> list[Recipe]:
    found: dict[str, Recipe] = {}
    stack = list(recipes)
    while stack:
        recipe = stack.pop()
        if recipe.name not in found:
            found[recipe.name] = recipe
            stack.extend(recipe.children.values())
    return list(found.values())
