"""The calls about approvals, of the asynchronous client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from windlass.client import approving
from windlass.client.exchange import Flow, Sources
from windlass.client.views import ApprovalView
from windlass.pure.argument import job_id_of

T = TypeVar("T")


class AsyncDeciding:
    """Lists approvals and votes on them."""

    sources: Sources

    async def run(self, flow: Flow[T]) -> T:
        """Perform a flow and return its value."""
        raise NotImplementedError

    def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Perform a flow and yield the values that it gives."""
        raise NotImplementedError

    def approvals(
        self, *, state: str | Sequence[str] = "PENDING", mine: bool = False, decidable: bool = False
    ) -> AsyncIterator[ApprovalView]:
        """Iterate over approvals that the caller requested (`mine`) or may decide, the newest first."""
        states = [state] if isinstance(state, str) else list(state)
        return self.iterate(approving.approvals(self.sources, states, mine=mine, decidable=decidable))

    async def approval(self, approval_id: UUID | str) -> ApprovalView:
        """Return one approval: what exactly will run, who may decide, and the votes so far."""
        return await self.run(approving.approval(self.sources, job_id_of(approval_id)))

    async def approve(
        self, approval_id: UUID | str, *, reason: str = "", note: str = "", subject: str | None = None
    ) -> ApprovalView:
        """Approve. With `subject` the vote is refused if something else would run than the caller saw."""
        id = job_id_of(approval_id)
        return await self.run(approving.decide(self.sources, id, "approve", reason, note, subject))

    async def reject(
        self, approval_id: UUID | str, *, reason: str = "", note: str = "", subject: str | None = None
    ) -> ApprovalView:
        """Reject. One rejection ends the approval."""
        id = job_id_of(approval_id)
        return await self.run(approving.decide(self.sources, id, "reject", reason, note, subject))
