"""The composition root: everything that the rest of the code is handed is made here, and put together.

`Windlass` is also what a Python program uses:

    async with Windlass.connect() as windlass:
        job = await windlass.submit(trailer, topic="the sea")
        film = await job.result(timeout=600)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from windlass.app.apart import program
from windlass.app.artifacts import open_artifacts
from windlass.app.asked import check_options, plan_of
from windlass.app.embedded.home import make_private
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.app.entropy import Ids, chance
from windlass.app.job import Access, Job
from windlass.app.providing import announce, means, read_providers
from windlass.app.schema import prepare
from windlass.app.settings import Settings, flag, load
from windlass.core.errors import BadInput, Conflict, NotFound
from windlass.core.plan import Plan
from windlass.core.queue import DEFAULT_QUEUES
from windlass.engine import installation, recipes
from windlass.engine.loops.auditor import Auditor
from windlass.engine.loops.followers import Followers
from windlass.engine.loops.herald import Herald
from windlass.engine.loops.runner import Loops
from windlass.engine.recipes import NamedPlans
from windlass.engine.submit import BATCH_MAX, Submission, Webhook, submit
from windlass.engine.submitter import Submitter
from windlass.providers.desk import Counts
from windlass.providers.poller import Poller
from windlass.providers.registry import Registry
from windlass.pure.argument import check_many, job_id_of
from windlass.pure.observer import Observer
from windlass.recipe.duration import duration_s
from windlass.recipe.evaluator import shared_evaluator
from windlass.recipe.schema import check_inputs
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.migrate import check
from windlass.views.read import Waiter
from windlass.worker.begun import Begun
from windlass.worker.handler import StepLike
from windlass.worker.worker import CONCURRENCY, Worker

_log = logging.getLogger("windlass.recipes")

POOL_MAX = 8
KEPT_FOR_GOOD_DAYS = 36_500.0

Time = float | str | timedelta
Money = Decimal | str | float


class HasPlan(Protocol):
    """A recipe, however it was written."""

    @property
    def plan(self) -> Plan:
        """What it compiles to."""
        ...

    @property
    def description(self) -> str:
        """What it is for, for people; may be empty."""
        ...

    @property
    def children(self) -> Mapping[str, HasPlan]:
        """The recipes that it uses as steps."""
        ...


class HasSteps(Protocol):
    """An app, as far as a worker needs it."""

    @property
    def steps(self) -> Mapping[str, StepLike]:
        """Its handlers, by name."""
        ...


class _Given(NamedTuple):
    """What is the same for all jobs of a call."""

    labels: Mapping[str, str] | None
    priority: int
    deadline: Time | None
    ttl: Time | None
    webhook: Webhook | None
    correlation_id: str | None
    budget: Decimal | None


class Windlass:
    """A connection to a Windlass: submit jobs, register recipes, look at jobs."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        artifacts: Artifacts,
        dsn: str,
        *,
        is_served: bool = False,
        observer: Observer | None = None,
    ) -> None:
        self.db = db
        self.settings = settings
        self.artifacts = artifacts
        self.dsn = dsn
        self.ids = Ids(db.clock.now_ms)
        # Where there is a service every job is followed: it is on the streams, in the audit and in the tallies.
        self.is_served = is_served
        self.observer = observer
        self._access = Access(db, artifacts, shared_evaluator(), Waiter(db))
        self._submitter = Submitter(db, observer, time.perf_counter)
        self._providers: Registry | None = None
        self._stored: set[str] = set()
        self._named = NamedPlans(db, time.monotonic)

    def observe(self, observer: Observer) -> None:
        """Tell this observer of all that is submitted here, and by workers and loops that are made from now on."""
        self.observer = observer
        self._submitter = Submitter(self.db, observer, time.perf_counter)

    @property
    def providers(self) -> Registry:
        """The providers that the settings name, read when they are first needed; BadSetting if they cannot be."""
        if self._providers is None:
            self._providers = read_providers(self.settings)
        return self._providers

    @providers.setter
    def providers(self, registry: Registry) -> None:
        self._providers = registry

    async def announce_providers(self) -> None:
        """Tell all processes how much may be asked of them. Whoever starts a worker or the loops does this first."""
        await announce(self.db, self.providers)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        dsn: str | None = None,
        *,
        home: str | Path | None = None,
        settings: Settings | None = None,
        pool_max: int = POOL_MAX,
        observer: Observer | None = None,
    ) -> AsyncIterator[Windlass]:
        """Open the database: the one given, else the one that is set, else the embedded server of `home`.

        The embedded server is started if it does not run, its schema is brought up to date, and it is stopped
        afterwards unless another process uses it. The schema of any other database is only checked.
        """
        settings = settings or load({"home": None if home is None else str(home)})
        dsn = dsn or settings.database_url
        if dsn is not None:
            async with cls._opened(dsn, settings, pool_max, observer) as windlass:
                await check(windlass.db)
                windlass.is_served = (await installation.read(windlass.db)).is_served
                yield windlass
            return
        server = EmbeddedPostgres(settings.database_path)
        address = await asyncio.to_thread(server.start)
        try:
            async with cls._opened(address, settings, pool_max, observer) as windlass:
                await prepare(windlass.db, settings)
                windlass.is_served = (await installation.read(windlass.db)).is_served
                yield windlass
        finally:
            await asyncio.to_thread(server.stop)

    @classmethod
    @asynccontextmanager
    async def _opened(
        cls, dsn: str, settings: Settings, pool_max: int, observer: Observer | None
    ) -> AsyncIterator[Windlass]:
        if settings.artifacts is None:
            with contextlib.suppress(OSError):  # the store says what is wrong with the folder
                make_private(settings.home)
        artifacts = open_artifacts(settings.artifacts_place)
        db = await Database.open(dsn, max_size=pool_max)
        try:
            windlass = cls(db, settings, artifacts, dsn, observer=observer)
            try:
                yield windlass
            finally:
                if windlass._providers is not None:
                    await windlass._providers.close()
        finally:
            await db.close()

    async def register(self, *wanted: HasPlan | Plan, newest: bool = False) -> dict[str, int]:
        """Register these recipes and the recipes that they use; return the version of each.

        A plan that was never registered becomes its recipe's newest version. A plan that was registered before keeps
        its version, so an old process that restarts does not undo a deployment; `newest=True` puts it in force again.
        """
        versions: dict[str, int] = {}
        for plan, description in _plans(wanted):
            found = await recipes.register(self.db, plan, description=description, is_newest=newest)
            versions[plan.recipe] = found.version
            self._stored.add(plan.hash)
            if found.version != found.newest:
                _log.warning(
                    "recipe %s: this code is version %d, and jobs submitted by name use version %d, the newest; "
                    "`windlass recipes rollback %s %d` puts version %d in force",
                    *(plan.recipe, found.version, found.newest, plan.recipe, found.version, found.version),
                )
        return versions

    async def submit(
        self,
        recipe: HasPlan | Plan | str,
        /,
        *,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        deadline: Time | None = None,
        ttl: Time | None = None,
        webhook: Webhook | None = None,
        correlation_id: str | None = None,
        budget: Money | None = None,
        inputs: Mapping[str, Any] | None = None,
        **more_inputs: Any,
    ) -> Job:
        """Make a job, durably, and return its handle.

        The recipe may be given by name if it is registered. Its inputs are keywords; those whose names are taken here
        go into `inputs`. The same `key` gives the same job; with another body it raises Conflict. Concurrent calls
        share commits. A `correlation_id` puts the job on the feed under that name; a `webhook` has a sealed secret. The
        steps of the job spend no more than its `budget`.
        """
        check_options(key, labels, priority, webhook, correlation_id, inputs)
        plan = await self._plan(recipe)
        is_heard = self._access.waiter.is_listening
        given = _Given(labels, priority, deadline, ttl, webhook, correlation_id, _budget(budget))
        accepted = await self._submitter.submit(self._submission(plan, {**(inputs or {}), **more_inputs}, key, given))
        # An earlier job with the same key may have been made from another version of the recipe, and have ended.
        is_new = accepted.is_new
        return Job(
            self._access, accepted.job_id, is_new=is_new, is_heard=is_heard and is_new, plan=plan if is_new else None
        )

    async def submit_many(
        self,
        recipe: HasPlan | Plan | str,
        /,
        inputs: Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        deadline: Time | None = None,
        ttl: Time | None = None,
        webhook: Webhook | None = None,
        correlation_id: str | None = None,
        budget: Money | None = None,
    ) -> list[Job]:
        """Make a job per element of `inputs`, a thousand to a commit. All inputs are checked before any job is made.

        With `keys`, one per element, the call can be repeated safely. A Conflict is raised after all others are made.
        """
        check_options(None, labels, priority, webhook, correlation_id, None)
        check_many(inputs, keys)
        plan = await self._plan(recipe)
        given = _Given(labels, priority, deadline, ttl, webhook, correlation_id, _budget(budget))
        own_keys = keys if keys is not None else [None] * len(inputs)
        submissions = [self._submission(plan, one, key, given) for one, key in zip(inputs, own_keys, strict=True)]
        jobs: list[Job] = []
        conflict: Conflict | None = None
        for start in range(0, len(submissions), BATCH_MAX):
            for answer in await submit(self.db, submissions[start : start + BATCH_MAX]):
                if isinstance(answer, Conflict):
                    conflict = conflict or answer
                else:
                    jobs.append(Job(self._access, answer.job_id, is_new=answer.is_new))
        if conflict is not None:
            raise conflict
        return jobs

    def job(self, job_id: UUID | str) -> Job:
        """The handle of a job that exists."""
        return Job(self._access, job_id_of(job_id), is_new=False)

    async def _plan(self, recipe: HasPlan | Plan | str) -> Plan:
        if isinstance(recipe, str):
            if not recipe.isprintable():
                raise NotFound(f"there is no recipe {recipe[:80]!r}")
            return await self._named.latest(recipe)
        plan = plan_in(recipe)
        if plan.hash not in self._stored:
            await self.register(recipe)
        return plan

    def _submission(self, plan: Plan, inputs: Mapping[str, Any], key: str | None, given: _Given) -> Submission:
        job_id = self.ids.new()
        own = str(job_id) if self.is_served or given.webhook is not None else None
        return Submission(
            plan=plan,
            inputs=check_inputs(plan, inputs),
            job_id=job_id,
            caller=self.settings.caller,
            idempotency_key=key,
            labels=given.labels,
            priority=given.priority,
            deadline_s=_seconds(given.deadline, "deadline"),
            ttl_s=_seconds(given.ttl, "ttl"),
            correlation_id=given.correlation_id or own,
            webhook=given.webhook,
            budget=given.budget,
        )

    def worker(
        self,
        app: HasSteps,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        begun: Begun | None = None,
        yield_s: float = 0.0,
    ) -> Worker:
        """A worker that runs the steps of an app. It works while its `run` is awaited, until its `stop` is called.

        `begun` and `yield_s` are for a worker whose process is watched by another one (`app/apart_worker.py`).
        """
        settings = self.settings
        # The names of apart twins are not for users to choose.
        chosen = queues if begun is not None else flag("queues", "queues", queues)
        return Worker(
            self.db,
            app.steps,
            artifacts=self.artifacts,
            resolver=shared_evaluator(),
            ids=self.ids,
            chance=chance,
            queues=chosen or settings.queues or DEFAULT_QUEUES,
            concurrency=concurrency or settings.concurrency or CONCURRENCY,
            dsn=self.dsn,
            lease_s=settings.lease_s,
            drain_s=settings.drain_s,
            output_max_bytes=settings.inline_max_bytes,
            observer=self.observer,
            means=means(self.db, settings, self.providers, self.ids.new, self._counts),
            program=program(self.dsn, settings, app.steps),
            begun=begun,
            yield_s=yield_s,
        )

    def loops(self) -> Loops:
        """The engine's duties: timers, leases, deadlines, retention. Any number of processes may run them."""
        days = self.settings.retention_days or KEPT_FOR_GOOD_DAYS
        return Loops(
            self.db,
            self.artifacts,
            shared_evaluator(),
            new_id=self.ids.new,
            chance=chance,
            retention_s=days * 86400,
            observer=self.observer,
            fan_out_max=self.settings.fan_out_max,
            backlog_max=self.settings.caller_depth_max,
            engine=(self.ids.new(), socket.gethostname(), os.getpid()),
        )

    def poller(self) -> Poller:
        """Asks providers about their work. It goes with the loops; any number of processes may run it."""
        return Poller(
            self.db,
            {one.name: one for one in self.providers},
            self.artifacts,
            chance=chance,
            clock_s=time.monotonic,
            output_max_bytes=self.settings.inline_max_bytes,
            observer=self.observer,
            counts=self._counts,
        )

    @property
    def _counts(self) -> Counts | None:
        observer: Any = self.observer
        return observer if isinstance(observer, Counts) else None

    def followers(self) -> Followers:
        """Who follows the feed of a served installation: the audit, and the word of webhooks."""
        return Followers(self.db, (Auditor(self.db, observer=self.observer), Herald(self.db)), observer=self.observer)

    def as_caller(self, caller: str) -> Windlass:
        """The same connection, submitting for somebody else."""
        settings = replace(self.settings, caller=caller)
        other = Windlass(self.db, settings, self.artifacts, self.dsn, is_served=self.is_served, observer=self.observer)
        other._providers = self._providers
        return other


def plan_in(recipe: HasPlan | Plan) -> Plan:
    """The plan of a recipe, or the plan itself."""
    return plan_of(recipe)


def _plans(wanted: Sequence[HasPlan | Plan]) -> list[tuple[Plan, str]]:
    """Plans and descriptions of these and of all that they use, the used ones first: a job may start right after."""
    found: dict[str, tuple[Plan, str]] = {}
    stack = list(wanted)
    while stack:
        one = stack.pop()
        plan = plan_in(one)
        if plan.hash not in found:
            found[plan.hash] = (plan, "" if isinstance(one, Plan) else one.description)
            stack.extend([] if isinstance(one, Plan) else one.children.values())
    return list(reversed(found.values()))


def _budget(value: Money | None) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        raise BadInput(f"the budget is an amount of money, not {value!r}") from None


def _seconds(value: Time | None, name: str) -> float | None:
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else duration_s(value, name)
    if seconds <= 0:
        raise BadInput(f"{name} must be longer than 0")
    return seconds
