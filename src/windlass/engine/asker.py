"""The asker of a job: its verified caller as policies see it, kept with the job.

The facts come from the key or the Membership service, never from labels. They are in the payload of the job's first
event, which never changes: children, re-runs and later questions about the job use the same facts. `tenant` is the
claim of that name; without it the policy's `default_tenant` applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from windlass.core.caller import LOCAL, CallerContext, Role
from windlass.policy.question import CallerFacts, caller_facts


class Asker(NamedTuple):
    """A verified caller and its tenant."""

    facts: CallerFacts
    tenant: str = ""

    @property
    def plain(self) -> dict[str, Any]:
        """The facts as they are stored; the job's row has the caller's id."""
        found = {"type": self.facts.type, "tier": self.facts.tier, "role": self.facts.role, "tenant": self.tenant}
        return {name: value for name, value in found.items() if value} | {"scopes": sorted(self.facts.scopes)}


def asker_of(ctx: CallerContext) -> Asker:
    """Return a verified caller as policies see it."""
    return Asker(caller_facts(ctx), ctx.tenant or "")


def stored_asker(caller: str, plain: Mapping[str, Any]) -> Asker:
    """Return the asker that `plain` was made of."""
    facts = CallerFacts(
        caller,
        plain.get("type", ""),
        plain.get("tier", ""),
        plain.get("role", ""),
        frozenset(plain.get("scopes", ())),
    )
    return Asker(facts, plain.get("tenant", ""))


def known_asker(caller: str, caller_type: str = "", tier: str = "") -> Asker:
    """Return an asker of which no more is known than the last request of its caller told: it has no scopes."""
    if caller == LOCAL.caller_id:
        return asker_of(LOCAL)
    role = Role.SERVICE if caller_type == "service" else Role.USER
    return Asker(CallerFacts(caller, caller_type, tier, role.value))
