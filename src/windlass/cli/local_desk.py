"""The desk of a database: what commands ask for, read and done by the engine in this process."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from windlass.access.secret import Secret
from windlass.app.first_key import secret_of
from windlass.app.job import failure_of
from windlass.app.windlass import Windlass
from windlass.cli import wire
from windlass.cli.desk import AuditWish, KeyWish, Order
from windlass.cli.outside import LocalOutside
from windlass.cli.picture import boxes_of_job
from windlass.cli.redriving import LocalRedriving
from windlass.cli.snapshot import Snapshot
from windlass.cli.step_output import LocalStepOutput
from windlass.core.errors import BadInput, BadSetting
from windlass.core.plan import Plan
from windlass.core.states import JobState
from windlass.engine import control, installation, recipes
from windlass.engine.recipes import Described
from windlass.pure.job_failed import JobFailed
from windlass.store.plans import plan_of
from windlass.views import listing, read, workers
from windlass.views import recipes as recipe_views
from windlass.views.explain import Reason

REDRAW_S = 0.15


class LocalDesk(LocalOutside, LocalRedriving, LocalStepOutput):
    """See `Desk`."""

    def __init__(self, windlass: Windlass) -> None:
        self._windlass = windlass
        self._db = windlass.db

    async def find(self, text: str) -> UUID:
        """The job that the text names."""
        return await read.find(self._db, text.strip())

    async def job(self, job_id: UUID) -> read.JobView:
        """One job, with its input."""
        return await read.job(self._db, job_id)

    async def jobs(
        self,
        *,
        state: JobState | None,
        recipe: str | None,
        labels: Mapping[str, str] | None,
        limit: int,
        before: UUID | None,
    ) -> list[read.JobView]:
        """Jobs, the newest first."""
        wanted = listing.JobFilter(None, states=(state,) if state else (), recipe=recipe, labels=labels or {})
        found: list[read.JobView] = []
        while len(found) < limit:
            size = min(listing.PAGE_MAX, limit - len(found))
            page = await listing.page(self._db, wanted, before=before, limit=size)
            found += page.jobs
            if page.next is None:
                break
            before = page.next
        return found

    async def steps(self, job_id: UUID) -> list[dict[str, Any]]:
        """Every step of a job."""
        plan = await plan_of(self._db, (await read.job(self._db, job_id)).plan)
        return [wire.step_json(step, plan) for step in await read.steps(self._db, job_id)]

    async def snapshot(self, job_id: UUID) -> Snapshot:
        """The job and its graph as they are now."""
        job = await read.job(self._db, job_id)
        plan = await plan_of(self._db, job.plan)
        steps, counts = await read.overview(self._db, job_id)
        # Only for the lengths of time on the screen: nothing is decided by this clock.
        now = datetime.now(UTC)
        return Snapshot(job, boxes_of_job(plan, steps, counts, now), now)

    async def watching(self, job_id: UUID) -> AsyncGenerator[Snapshot, None]:
        """Snapshots until the job has ended."""
        while True:
            snapshot = await self.snapshot(job_id)
            yield snapshot
            if snapshot.is_over:
                return
            await asyncio.sleep(REDRAW_S)

    async def events(self, job_id: UUID, *, follow: bool) -> AsyncIterator[tuple[read.EventView, str]]:
        """Events with the names of their steps."""
        plan = await plan_of(self._db, (await read.job(self._db, job_id)).plan)
        names: dict[int, str] = {}
        async for event in self._windlass.job(job_id).events(follow=follow):
            yield event, await self._step_name(job_id, plan, names, event.no)

    async def _step_name(self, job_id: UUID, plan: Plan, names: dict[int, str], no: int | None) -> str:
        """A step's name; the children of a fan-out have numbers after the plan's and are looked up once."""
        if no is None:
            return ""
        if no < len(plan.nodes):
            return plan.nodes[no].name
        if no not in names:
            for step in await read.steps(self._db, job_id):
                if step.index is not None:
                    names[step.no] = f"{plan.nodes[step.node].name}[{step.index}]"
        return names.get(no, f"#{no}")

    async def state(self, job_id: UUID) -> JobState:
        """Where the job stands."""
        return await self._windlass.job(job_id).status()

    async def wait(self, job_id: UUID, timeout_s: float | None) -> JobState:
        """How the job ended, once it has."""
        return await self._windlass.job(job_id).wait(timeout_s)

    async def result(self, job_id: UUID) -> Any:
        """What a completed job gave."""
        return await self._windlass.job(job_id).result()

    async def failure(self, job_id: UUID) -> JobFailed:
        """What stands for a job that ended badly."""
        return await failure_of(self._db, await read.job(self._db, job_id))

    async def why(self, job_id: UUID, step: str | None) -> list[Reason]:
        """What each unfinished step waits for."""
        return await self._windlass.job(job_id).why(step)

    async def submit(self, order: Order) -> tuple[UUID, bool]:
        """Make a job."""
        webhook = None if order.webhook is None else await self._sealed(*order.webhook)
        job = await self._windlass.submit(
            order.plan,
            inputs=order.inputs,
            key=order.key,
            labels=order.labels,
            priority=order.priority,
            deadline=order.deadline_s,
            ttl=order.ttl_s,
            webhook=webhook,
            budget=order.budget,
        )
        return job.id, job.is_new

    async def _sealed(self, url: str, text: str) -> Any:
        """The webhook as it is stored: its address looked at, its secret sealed."""
        from windlass.engine.submit import Webhook
        from windlass.outbound.send import Sender
        from windlass.pure.webhook import parse_secret

        plain = parse_secret(text)
        await Sender(is_loopback_allowed=self._windlass.settings.webhook_loopback).check(url)
        return Webhook(url, (await self._secret()).seal(plain))

    async def control(self, action: str, job_id: UUID, reason: str) -> bool | None:
        """Do one thing to a job."""
        db = self._db
        match action:
            case "cancel":
                return await control.cancel(db, job_id, reason=reason)
            case "pause":
                return await control.pause(db, job_id)
            case "resume":
                return await control.resume(db, job_id)
            case _:
                await control.delete(db, job_id)
                return None

    async def recipes(self) -> list[recipe_views.RecipeVersion]:
        """Every recipe with its newest version."""
        return await recipe_views.listing(self._db)

    async def recipe(self, name: str, version: int | None = None) -> Plan:
        """One recipe's plan."""
        return await recipes.latest(self._db, name, version)

    async def described(self, name: str, version: int | None = None) -> Described:
        """One recipe's plan and description."""
        return await recipes.described(self._db, name, version)

    async def workers(self) -> list[dict[str, Any]]:
        """The worker processes."""
        return [wire.worker_json(worker) for worker in await workers.listing(self._db)]

    async def _keys(self) -> Any:
        from windlass.access.keys import Keys

        settings = self._windlass.settings
        if settings.membership_url is not None:
            raise BadInput(
                f"the keys of this installation are those of {settings.membership_url}",
                remedy="Make and revoke them there, or unset WINDLASS_MEMBERSHIP_URL",
            )
        return Keys(self._db, await self._secret(), entropy=secrets.token_bytes)

    async def _secret(self) -> Secret:
        """The secret, if it is the one that the servers go by: what is made with another would be of no use to them."""
        secret = secret_of(self._windlass.settings)
        is_served = (await installation.read(self._db)).is_served
        if is_served and not await installation.is_secret(self._db, secret.digests("check", b"")):
            raise BadSetting(
                "the secret here is not the one that this installation is served with",
                remedy="Set WINDLASS_SECRET as for its servers, or ask one of them: --server URL",
            )
        return secret

    async def create_key(self, wish: KeyWish) -> tuple[str, dict[str, Any]]:
        """Make a key."""
        from windlass.core.caller import USER_SCOPES

        made = await (await self._keys()).create(
            wish.caller,
            name=wish.name,
            caller_type=wish.caller_type,
            tier=wish.tier,
            scopes=frozenset(wish.scopes) or USER_SCOPES,
            expires_in_s=wish.expires_in_s,
            by=self._windlass.settings.caller,
        )
        return made.text, wire.key_json(made.view)

    async def keys(self, caller: str | None) -> list[dict[str, Any]]:
        """The keys that there are."""
        return [wire.key_json(key) for key in await (await self._keys()).listing(caller=caller)]

    async def revoke_key(self, key_id: str) -> None:
        """End a key's life."""
        await (await self._keys()).revoke(key_id, by=self._windlass.settings.caller)

    async def audit(self, wanted: AuditWish) -> list[dict[str, Any]]:
        """Records of the audit in order."""
        from windlass.access.audit import records

        found = await records(
            self._db,
            caller=wanted.caller,
            event=wanted.event,
            job_id=wanted.job_id,
            since=None if wanted.since is None else datetime.fromisoformat(wanted.since),
            until=None,
            after_no=0,
            limit=wanted.limit,
        )
        return [wire.record_json(record, digest) for record, digest in found]

    async def verify_audit(self, head: str | None) -> dict[str, Any]:
        """Whether the chain is whole."""
        from windlass.access.audit import verify_chain

        return wire.verdict_json(await verify_chain(self._db, head=None if head is None else bytes.fromhex(head)))

    async def webhook(self, job_id: UUID, *, redeliver: bool) -> dict[str, Any]:
        """How far the word of a job's end has come."""
        from windlass.outbound import courier

        if redeliver:
            await courier.webhook_of(self._db, job_id)
            await self._db.run(lambda connection: courier.redeliver(connection, job_id))
        return wire.webhook_json(await courier.webhook_of(self._db, job_id))
