"""The asker of a job: its verified caller as policies see it, kept with the job.

The facts come from the key or the Membership service, never from labels. They are in the payload of the job's first
event, which never changes: children, re-runs and later questions about the job use the same facts. `tenant` is the
claim of that name; without it the policy's `default_tenant` applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import asyncpg
import msgspec

from windlass.core.caller import LOCAL, CallerContext, Role
from windlass.core.verdict import Edge
from windlass.policy.question import CallerFacts, Question, caller_facts, topic_of


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


def row_question(row: asyncpg.Record, edge: Edge) -> Question:
    """Return the question about the job of a row with the `asker` of its first event, and its caller as `known`."""
    asker = _row_asker(row)
    return Question(
        edge,
        topic_of(row["recipe"]),
        recipe=row["recipe"],
        job_id=str(row["id"]),
        tenant=asker.tenant,
        caller=asker.facts,
        labels=msgspec.json.decode(row["labels"] or "{}"),
        inputs=msgspec.json.decode(row["input"]),
        priority=row["priority"],
        depth=row["depth"],
    )


def _row_asker(row: asyncpg.Record) -> Asker:
    """Return the facts of the submit. For a job that was submitted before any policy, those of its caller now."""
    if row["asker"] is not None:
        return stored_asker(row["caller"], msgspec.json.decode(row["asker"]))
    known: Mapping[str, Any] = msgspec.json.decode(row["known"] or "{}")
    return known_asker(row["caller"], known.get("caller_type") or "", known.get("tier") or "")
