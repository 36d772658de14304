"""What commands ask for, whether it is a database that answers or a server.

The answers are the engine's own views and the shapes of `wire`, so a command prints the same whoever answered.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from windlass.cli.redriving import Again
from windlass.cli.snapshot import Snapshot
from windlass.core.plan import Plan
from windlass.core.states import JobState
from windlass.engine.recipes import Described
from windlass.pure.job_failed import JobFailed
from windlass.views.explain import Reason
from windlass.views.read import EventView, JobView
from windlass.views.recipes import RecipeVersion

ACTIONS = ("cancel", "pause", "resume", "delete")


@dataclass(frozen=True, slots=True)
class Order:
    """A job that is to be made. Its inputs fit the plan."""

    plan: Plan
    inputs: Mapping[str, Any]
    key: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 0
    deadline_s: float | None = None
    ttl_s: float | None = None
    webhook: tuple[str, str] | None = None
    budget: Decimal | None = None


@dataclass(frozen=True, slots=True)
class KeyWish:
    """A key that is to be made."""

    caller: str
    name: str
    caller_type: str = "user"
    tier: str | None = None
    scopes: Sequence[str] = ()
    expires_in_s: float | None = None


class Desk(Protocol):
    """Where commands ask. Both kinds raise the errors of `core/errors.py`, and neither writes to the terminal."""

    async def find(self, text: str) -> UUID:
        """The job of an id, of the beginning of one that fits no other, or the last that was submitted (`@last`)."""
        ...

    async def job(self, job_id: UUID) -> JobView:
        """One job, with its input."""
        ...

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
        ...

    async def steps(self, job_id: UUID) -> list[dict[str, Any]]:
        """Every step of a job, as `wire.step_json` has them."""
        ...

    async def snapshot(self, job_id: UUID) -> Snapshot:
        """The job and its graph as they are now."""
        ...

    def watching(self, job_id: UUID) -> AsyncGenerator[Snapshot, None]:
        """The same again and again, as things happen; the last one is that of the end."""
        ...

    def events(self, job_id: UUID, *, follow: bool) -> AsyncIterator[tuple[EventView, str]]:
        """Every event in order, each with its step's name; with `follow`, also those to come."""
        ...

    async def state(self, job_id: UUID) -> JobState:
        """Where the job stands."""
        ...

    async def wait(self, job_id: UUID, timeout_s: float | None) -> JobState:
        """How the job ended, once it has."""
        ...

    async def result(self, job_id: UUID) -> Any:
        """What a completed job gave."""
        ...

    async def step_output(self, job_id: UUID, step: str) -> Any:
        """What a step returned."""
        ...

    async def failure(self, job_id: UUID) -> JobFailed:
        """What stands for a job that ended badly."""
        ...

    async def why(self, job_id: UUID, step: str | None) -> list[Reason]:
        """What each unfinished step waits for."""
        ...

    async def submit(self, order: Order) -> tuple[UUID, bool]:
        """Make a job; the answer is its id, and whether it is new."""
        ...

    async def control(self, action: str, job_id: UUID, reason: str) -> bool | None:
        """Do one of ACTIONS: False if there was nothing to do."""
        ...

    async def run_again(self, job_id: UUID, wish: Again) -> UUID:
        """Retry or rerun: the new job's id."""
        ...

    async def preview(self, job_id: UUID, wish: Again) -> dict[str, Any]:
        """What that would run, as `wire.again_json` has it."""
        ...

    async def dead_letters(self) -> list[dict[str, Any]]:
        """Failed jobs that nobody has dealt with, by kind, as `wire.dead_letter_json` has them."""
        ...

    async def deal(
        self, fingerprint: str, action: str, *, start: str, dry_run: bool, expect: int | None, reason: str
    ) -> dict[str, Any]:
        """Redrive or discard the jobs of a kind."""
        ...

    async def recipes(self) -> list[RecipeVersion]:
        """Every recipe with its newest version."""
        ...

    async def recipe(self, name: str, version: int | None = None) -> Plan:
        """One recipe's plan."""
        ...

    async def described(self, name: str, version: int | None = None) -> Described:
        """One recipe's plan and description."""
        ...

    async def workers(self) -> list[dict[str, Any]]:
        """The worker processes, those lost lately among them, as `wire.worker_json` has them."""
        ...

    async def create_key(self, wish: KeyWish) -> tuple[str, dict[str, Any]]:
        """Make a key: its text, which nobody can tell again, and what is kept of it."""
        ...

    async def keys(self, caller: str | None) -> list[dict[str, Any]]:
        """The keys that there are, as `wire.key_json` has them."""
        ...

    async def revoke_key(self, key_id: str) -> None:
        """End a key's life."""
        ...

    async def audit(self, wanted: AuditWish) -> list[dict[str, Any]]:
        """Records of the audit in order, as `wire.record_json` has them."""
        ...

    async def verify_audit(self, head: str | None) -> dict[str, Any]:
        """Whether the chain is whole: `is_whole`, `records`, `head`, and `broken_at` and `because` where it is not."""
        ...

    async def webhook(self, job_id: UUID, *, redeliver: bool) -> dict[str, Any]:
        """How far the word of a job's end has come; with `redeliver` it is sent once more."""
        ...

    async def send_event(self, job_id: UUID, name: str, body: Any, id: str | None) -> str:
        """Send a job an event: `delivered`, `kept` or `already`."""
        ...

    async def providers(self) -> list[dict[str, Any]]:
        """Every provider, as `wire.provider_json` has them."""
        ...

    async def budgets(self) -> list[dict[str, Any]]:
        """Every budget, as `wire.budget_json` has them."""
        ...

    async def set_budget(self, scope: str, name: str, most: Decimal) -> dict[str, Any]:
        """Say how much a job, a recipe or a caller may spend."""
        ...

    async def remove_budget(self, scope: str, name: str) -> None:
        """Lift a limit."""
        ...

    async def costs(self, job_id: UUID) -> dict[str, Any]:
        """What a job's attempts cost, as `wire.costs_json` has it."""
        ...


@dataclass(frozen=True, slots=True)
class AuditWish:
    """Which records of the audit."""

    event: str | None = None
    caller: str | None = None
    job_id: UUID | None = None
    since: str | None = None
    limit: int = 100
