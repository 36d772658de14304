"""Work that is done elsewhere, for the API's tests: a provider of their own, and steps that wait for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from tests.api.rig import Rig
from windlass.core.external import ProviderStatus, Said
from windlass.core.outcome import Cost, Fault, Outcome, Parked, Report
from windlass.core.plan import Node, Plan
from windlass.engine import claim, external, recipes, settle, workers
from windlass.engine.claim import Claimed
from windlass.engine.submit import Submission, submit
from windlass.providers.adapter import ProviderAdapter, Started, StartRequest, WebhookNews
from windlass.providers.errors import NotSupported
from windlass.pure.signature import SignatureProfile, sign
from windlass.views import explain, read

SECRET = b"0123456789abcdef0123456789abcdef"
# The first is on its way out, the second is new: either is good.
SECRETS = "whsec_b2xkIHNlY3JldCB0aGF0IGlzIGdvaW5nIGF3YXkhISE=,whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
VARIABLE = "WINDLASS_TEST_HOOKS_SECRETS"
QUEUE = "main_processing"
TRIES = 50
FILE = f"""
providers:
  hooks:
    adapter: tests.api.outside:HookAdapter
    concurrency: 1000
    rate: 1000
    webhook: {{profile: standard, secret_env: {VARIABLE}}}
  mute:
    adapter: tests.api.outside:HookAdapter
"""
RENDER = Plan("render", (Node("render", run="render", provider="hooks"), Node("after", run="after", needs=("render",))))
HAND = Plan("by_hand", (Node("scrape", run="scrape"), Node("index", run="index", needs=("scrape",))))


class HookAdapter(ProviderAdapter):
    """A provider that only sends webhooks: `{"id": …, "status": …}` and what belongs to it."""

    # How many bodies were read.
    read: ClassVar[int] = 0

    async def start_job(self, request: StartRequest) -> Started:
        raise NotSupported("only webhooks")

    async def get_job_status(self, external_id: str) -> Said:
        raise NotSupported("only webhooks")

    async def cancel_job(self, external_id: str) -> ProviderStatus:
        raise NotSupported("only webhooks")

    def parse_webhook(self, headers: Mapping[str, str], body: bytes, query: Mapping[str, str]) -> WebhookNews:
        HookAdapter.read += 1
        told = msgspec.json.decode(body)
        said = Said(
            ProviderStatus(told["status"]),
            output=None if "output" not in told else json.dumps(told["output"]),
            fault=None if "fault" not in told else Fault("out_of_paint", str(told["fault"])),
            is_retryable=False,
            cost=None if "cost" not in told else Cost(told["cost"], provider=self.config.name),
            progress_pct=told.get("pct"),
            preview=None if "preview" not in told else json.dumps(told["preview"]),
        )
        return WebhookNews("", told["id"], said, told.get("key"), needs_look=query.get("look") == "yes")


def providers_file(folder: Path) -> Path:
    """A providers.yaml. The variable that it names must hold SECRETS."""
    path = folder / "providers.yaml"
    path.write_text(FILE)
    return path


def signed(body: bytes, at_s: float, id: str, secret: bytes = SECRET) -> dict[str, str]:
    """The headers of a webhook."""
    return sign(SignatureProfile.STANDARD, secret, body, now_s=at_s, id=id)


async def handed_over(api: Rig, plan: Plan = RENDER, caller: str = "user") -> Claimed:
    """A job whose first step is running."""
    parts = api.parts
    worker = parts.ids.new()
    await workers.enlist(parts.db, worker, host="h", pid=1, queues=[QUEUE], concurrency=9)
    await recipes.register(parts.db, plan)
    job_id = parts.ids.new()
    await submit(parts.db, [Submission(plan, {}, job_id, caller, correlation_id="c")])
    await api.windlass.announce_providers()
    loops = api.windlass.loops()
    for _ in range(TRIES):
        await loops.run_until_idle()
        for one in await claim.claim(parts.db, worker=worker, queues=[QUEUE], limit=100):
            if one.job_id == job_id:
                return one
    raise AssertionError(await explain.why(parts.db, job_id))


async def park(api: Rig, one: Claimed, external_id: str | None = None) -> bool:
    """The step waits for what is done elsewhere."""
    if external_id is not None:
        assert await external.intend(api.parts.db, one.job_id, one.no, one.attempt, "hooks") is not None
    return await report(api, one, Parked("hooks", 3600.0, external_id))


async def report(api: Rig, one: Claimed, outcome: Outcome) -> bool:
    """What the worker says."""
    said = Report(one.job_id, one.no, one.attempt, outcome)
    return (await settle.settle(api.parts.db, [said], spread=lambda: 0.0)).took_effect[0]


async def parked(api: Rig, external_id: str, caller: str = "user") -> Claimed:
    """A job whose first step waits for the provider."""
    one = await handed_over(api, caller=caller)
    assert await park(api, one, external_id)
    return one


async def step(api: Rig, job_id: UUID, no: int = 0) -> read.StepView:
    """A step as it is."""
    return (await read.steps(api.parts.db, job_id))[no]


def token(api: Rig, one: Claimed, ttl_s: float = 60.0) -> str:
    """The data that the worker hands to the service that does the work."""
    return api.parts.callbacks.sign(one.job_id, one.no, one.attempt, ttl_s)


async def ending(api: Rig, job_id: UUID) -> dict[str, Any]:
    """How often a step ended, by the events."""
    found = await read.events(api.parts.db, job_id)
    return {type: [event for event in found if event.type == type] for type in ("step.completed", "step.failed")}
