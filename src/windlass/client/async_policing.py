"""The methods of the client about the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from windlass.client import policing
from windlass.client.exchange import Flow, Sources
from windlass.client.views import PolicyVersionView, PublishedView

T = TypeVar("T")


class AsyncPolicing:
    """Publishes policies and asks them about requests, with a key that has the scope policy:read or policy:write."""

    sources: Sources

    async def run(self, flow: Flow[T]) -> T:
        """Perform a flow and return its value."""
        raise NotImplementedError

    async def policy(self) -> dict[str, Any]:
        """Return the policy in force, and whether the server can judge by it."""
        return await self.run(policing.policy(self.sources))

    async def policy_versions(self, limit: int = 50) -> list[PolicyVersionView]:
        """Return the newest published versions, without their texts."""
        return await self.run(policing.versions(self.sources, limit))

    async def policy_version(self, version: int) -> PolicyVersionView:
        """Return a published version with its texts."""
        return await self.run(policing.version(self.sources, version))

    async def publish_policy(
        self,
        documents: Mapping[str, str],
        *,
        only: bool = False,
        new_only: bool = False,
        note: str | None = None,
        untested: str | None = None,
        signature: str | None = None,
        expected: int | None = None,
    ) -> PublishedView:
        """Put documents (texts by name) in force, in place of their namesakes, or with `only` of all documents.

        Their tests must pass, unless `untested` gives a reason. Once this returns, no job is claimed by an older
        version. With `new_only`, jobs that were submitted before are not judged again. If another version than
        `expected` is in force, PolicyChanged is raised.
        """
        wish = {
            "only": only, "new_only": new_only, "note": note, "untested": untested, "signature": signature,
            "expected": expected,
        }  # fmt: skip
        return await self.run(policing.publish(self.sources, documents, wish))

    async def rollback_policy(self, version: int, *, new_only: bool = False, note: str | None = None) -> PublishedView:
        """Publish the content of an earlier version again, under a new number."""
        return await self.run(policing.rollback(self.sources, version, {"new_only": new_only, "note": note}))

    async def evaluate_policy(self, request: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """Return the verdict about a request if no velocity limit is exceeded."""
        return await self.run(policing.judged(self.sources, "evaluate", request, version))

    async def simulate_policy(self, request: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """Return the verdict that a request would get now. Nothing is recorded."""
        return await self.run(policing.judged(self.sources, "simulate", request, version))

    async def explain_policy(self, request: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """Return the verdict that a request would get now, and what came of every rule."""
        return await self.run(policing.judged(self.sources, "explain", request, version))

    async def replay_policy(
        self,
        documents: Mapping[str, str] | None = None,
        *,
        only: bool = False,
        version: int | None = None,
        days: float = 7,
        limit: int = 1000,
    ) -> dict[str, Any]:
        """Return what documents, or a version, would have decided about past jobs. Nothing is recorded."""
        wish = {"only": only, "version": version, "days": days, "limit": limit}
        return await self.run(policing.replay(self.sources, documents, wish))

    async def policy_shadow(self, minutes: int = 60) -> dict[str, Any]:
        """Return how often shadow rules would have decided in the last minutes, and the newest examples."""
        return await self.run(policing.shadow(self.sources, minutes))
