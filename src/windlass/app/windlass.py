"""The composition root: makes the objects that the rest of the code receives, and connects them.

`Windlass` is also the interface for Python programs:

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
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from windlass.app.apart import program
from windlass.app.artifacts import open_artifacts
from windlass.app.asked import plan_of, submit_options
from windlass.app.embedded.home import make_private
from windlass.app.embedded.server import EmbeddedPostgres
from windlass.app.entropy import Ids, spread
from windlass.app.job import Access, Job
from windlass.app.judging import policies_of
from windlass.app.providing import announce, capabilities, read_providers
from windlass.app.schema import prepare
from windlass.app.settings import Settings, flag, load
from windlass.client.async_submitting import AsyncSubmitting
from windlass.client.order import Order, check_order
from windlass.core.errors import BadInput, Conflict, Denied, NotFound
from windlass.core.plan import Plan
from windlass.core.queue import DEFAULT_QUEUES
from windlass.engine import installation, recipes
from windlass.engine.door import judge_by
from windlass.engine.loops.auditor import Auditor
from windlass.engine.loops.followers import Followers
from windlass.engine.loops.runner import Loops
from windlass.engine.loops.webhook_scheduler import WebhookScheduler
from windlass.engine.policy_watch import PolicyWatch
from windlass.engine.recipes import NamedPlans
from windlass.engine.submit import BATCH_MAX, Submission, submit
from windlass.engine.submitter import Submitter
from windlass.providers.desk import Counts
from windlass.providers.poller import Poller
from windlass.providers.registry import Registry
from windlass.pure.argument import check_many, job_id_of
from windlass.pure.observer import Observer
from windlass.pure.service import Part, Services
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


class HasPlan(Protocol):
    """A recipe, however it was written."""

    @property
    def plan(self) -> Plan:
        """The plan that the recipe compiles to."""
        ...

    @property
    def description(self) -> str:
        """The purpose of the recipe, for people; may be empty."""
        ...

    @property
    def children(self) -> Mapping[str, HasPlan]:
        """The recipes that this recipe uses as steps."""
        ...


class HasSteps(Protocol):
    """The part of an app that a worker needs."""

    @property
    def steps(self) -> Mapping[str, StepLike]:
        """The handlers of the app, by name."""
        ...


class Windlass(AsyncSubmitting["HasPlan | Plan | str", Job]):
    """A connection to a Windlass installation: submits jobs, registers recipes, and reads jobs.

    `submit` takes a recipe, or the name of a registered recipe.
    """

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
        # In a served installation every job is followed: its events go to the streams, the audit and the tallies.
        self.is_served = is_served
        self.observer = observer
        # The parts that run in this process, for health checks and for `windlass workers`.
        self.services = Services()
        self._access = Access(db, artifacts, shared_evaluator(), Waiter(db))
        self._submitter = Submitter(db, observer, time.perf_counter)
        # The policy that this process judges by. Processes that live long keep it current: see `watch_policy`.
        self.policies = policies_of(settings)
        judge_by(db, self.policies)
        self.policy_watch: PolicyWatch | None = None
        self._providers: Registry | None = None
        self._stored: set[str] = set()
        self._named = NamedPlans(db, time.monotonic)

    def observe(self, observer: Observer) -> None:
        """Report submissions of this connection to the observer, and the work of workers and loops made later."""
        self.observer = observer
        self._submitter = Submitter(self.db, observer, time.perf_counter)

    @property
    def providers(self) -> Registry:
        """The providers that the settings name. The first access reads them, and raises BadSetting on failure."""
        if self._providers is None:
            self._providers = read_providers(self.settings)
        return self._providers

    @providers.setter
    def providers(self, registry: Registry) -> None:
        self._providers = registry

    async def _forget_providers(self) -> None:
        if self._providers is not None:
            await self._providers.close()

    async def announce_providers(self) -> None:
        """Publish the limits of the providers to all processes. Call this before a worker or the loops start."""
        await announce(self.db, self.providers)

    async def watch_policy(self, services: Services) -> None:
        """Keep the policy current until these services stop. Once for all parts of a process."""
        if self.policy_watch is None or not self.policy_watch.is_running:
            self.policy_watch = await services.start(PolicyWatch(self.db, self.policies))

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
        """Open the database `dsn`, else the configured database, else the embedded server of `home`.

        `connect` starts the embedded server if it does not run, and migrates its schema. It stops the server
        afterwards unless another process uses it. For any other database it only checks the schema.
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
            with contextlib.suppress(OSError):  # the artifact store reports the fault of the folder
                make_private(settings.home)
        artifacts = open_artifacts(settings.artifacts_place)
        db = await Database.open(dsn, max_size=pool_max)
        try:
            windlass = cls(db, settings, artifacts, dsn, observer=observer)
            services = windlass.services
            try:
                # Without bells the work continues, with a small delay.
                bus = Part("bus", db.bus.close, is_ready=lambda: db.bus.health().can_be_used)
                await services.start(bus, is_needed=False)
                await services.start(Part("providers", windlass._forget_providers))
                yield windlass
            finally:
                await services.stop()
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

    async def _submit(
        self, recipe: HasPlan | Plan | str, order: Order, inputs: Mapping[str, Any], key: str | None
    ) -> Job:
        check_order(order, key)
        plan = await self._plan(recipe, order.get("version"))
        is_heard = self._access.waiter.is_listening
        options = await submit_options(self, order)
        accepted = await self._submitter.submit(self._submission(plan, inputs, key, options))
        # An earlier job with the same key may have used another version of the recipe, and may have ended.
        is_new = accepted.is_new
        return Job(
            self._access, accepted.job_id, is_new=is_new, is_heard=is_heard and is_new, plan=plan if is_new else None
        )

    async def _submit_many(
        self,
        recipe: HasPlan | Plan | str,
        order: Order,
        inputs: Sequence[Mapping[str, Any]],
        keys: Sequence[str] | None,
    ) -> list[Job]:
        check_order(order)
        check_many(inputs, keys)
        plan = await self._plan(recipe, order.get("version"))
        options = await submit_options(self, order)
        own_keys = keys if keys is not None else [None] * len(inputs)
        # All inputs are checked before any job is made.
        submissions = [self._submission(plan, one, key, options) for one, key in zip(inputs, own_keys, strict=True)]
        jobs: list[Job] = []
        refusal: Conflict | Denied | None = None
        for start in range(0, len(submissions), BATCH_MAX):
            for answer in await submit(self.db, submissions[start : start + BATCH_MAX]):
                if isinstance(answer, Conflict | Denied):
                    refusal = refusal or answer
                else:
                    jobs.append(Job(self._access, answer.job_id, is_new=answer.is_new))
        if refusal is not None:
            raise refusal
        return jobs

    def job(self, job_id: UUID | str) -> Job:
        """Return the handle of an existing job."""
        return Job(self._access, job_id_of(job_id), is_new=False)

    async def _plan(self, recipe: HasPlan | Plan | str, version: int | None) -> Plan:
        if isinstance(recipe, str):
            if not recipe.isprintable():
                raise NotFound(f"there is no recipe {recipe[:80]!r}")
            return await self._named.latest(recipe, version)
        if version is not None:
            raise BadInput("`version` needs the name of a recipe, not a recipe")
        plan = plan_in(recipe)
        if plan.hash not in self._stored:
            await self.register(recipe)
        return plan

    def _submission(
        self, plan: Plan, inputs: Mapping[str, Any], key: str | None, options: Mapping[str, Any]
    ) -> Submission:
        job_id = self.ids.new()
        made = Submission(
            plan=plan,
            inputs=check_inputs(plan, inputs),
            job_id=job_id,
            caller=self.settings.caller,
            idempotency_key=key,
            **options,
        )
        if made.correlation_id is None and (self.is_served or made.webhook is not None):
            return made._replace(correlation_id=str(job_id))
        return made

    def worker(
        self,
        app: HasSteps,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        begun: Begun | None = None,
        yield_s: float = 0.0,
    ) -> Worker:
        """Return a worker that runs the steps of an app. It works while its `run` is awaited, until `stop` is called.

        `begun` and `yield_s` are for a worker whose process another process watches (`app/apart_worker.py`).
        """
        settings = self.settings
        # Users must not choose the queue names of apart twins.
        chosen = queues if begun is not None else flag("queues", "queues", queues)
        return Worker(
            self.db,
            app.steps,
            artifacts=self.artifacts,
            resolver=shared_evaluator(),
            ids=self.ids,
            spread=spread,
            queues=chosen or settings.queues or DEFAULT_QUEUES,
            concurrency=concurrency or settings.concurrency or CONCURRENCY,
            dsn=self.dsn,
            lease_s=settings.lease_s,
            drain_s=settings.drain_s,
            output_max_bytes=settings.inline_max_bytes,
            observer=self.observer,
            capabilities=capabilities(self.db, settings, self.providers, self.ids.new, self._counts),
            program=program(self.dsn, settings, app.steps),
            begun=begun,
            yield_s=yield_s,
            services=self.services,
        )

    def loops(self) -> Loops:
        """Return the engine's loops: timers, leases, deadlines, retention. Any number of processes may run them."""
        days = self.settings.retention_days or KEPT_FOR_GOOD_DAYS
        return Loops(
            self.db,
            self.artifacts,
            shared_evaluator(),
            new_id=self.ids.new,
            spread=spread,
            retention_s=days * 86400,
            observer=self.observer,
            fan_out_max=self.settings.fan_out_max,
            backlog_max=self.settings.caller_depth_max,
            engine=(self.ids.new(), socket.gethostname(), os.getpid()),
        )

    def poller(self) -> Poller:
        """Return the poller of external work. Run it with the loops; any number of processes may run it."""
        return Poller(
            self.db,
            {one.name: one for one in self.providers},
            self.artifacts,
            spread=spread,
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
        """Return the followers of a served installation's feed: the audit and the webhooks."""
        return Followers(
            self.db, (Auditor(self.db, observer=self.observer), WebhookScheduler(self.db)), observer=self.observer
        )

    def as_caller(self, caller: str) -> Windlass:
        """Return a Windlass on this connection that submits jobs for another caller."""
        settings = replace(self.settings, caller=caller)
        other = Windlass(self.db, settings, self.artifacts, self.dsn, is_served=self.is_served, observer=self.observer)
        other._providers, other.services, other.policies = self._providers, self.services, self.policies
        judge_by(self.db, self.policies)
        return other


def plan_in(recipe: HasPlan | Plan) -> Plan:
    """Return the plan of a recipe, or the plan itself."""
    return plan_of(recipe)


def _plans(wanted: Sequence[HasPlan | Plan]) -> list[tuple[Plan, str]]:
    """Return the plans and descriptions of the recipes and of the recipes that they use.

    A used recipe comes before its users, because a job may start right after its recipe is registered.
    """
    found: dict[str, tuple[Plan, str]] = {}
    stack = list(wanted)
    while stack:
        one = stack.pop()
        plan = plan_in(one)
        if plan.hash not in found:
            found[plan.hash] = (plan, "" if isinstance(one, Plan) else one.description)
            stack.extend([] if isinstance(one, Plan) else one.children.values())
    return list(reversed(found.values()))
