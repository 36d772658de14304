"""The question that a policy answers: everything about a job, a step or an output that rules may look at.

A question is a plain value. The asker fills it from immutable rows and verified claims, never from labels that a
caller could have set: the delegation chain, the tenant and the caller come from the caller's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from windlass.core.caller import CallerContext
from windlass.core.verdict import Edge

TOPIC_PREFIX = "job."
TOPIC_CHARS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class CallerFacts:
    """The caller of a job, as rules see it."""

    id: str = ""
    type: str = ""
    tier: str = ""
    role: str = ""
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DelegationChain:
    """The verified chain of agents on whose behalf a request was made. A direct request has none."""

    depth: int
    issuers: tuple[str, ...] = ()
    scope: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FindingFact:
    """One finding of a scanner, without the text that was found."""

    scanner: str
    type: str = ""
    severity: str = "high"
    confidence: float = 1.0
    path: str = "$"


@dataclass(frozen=True, slots=True)
class ContentFacts:
    """What is known about the content of inputs or of an output."""

    size_bytes: int = 0
    content_type: str = ""
    # The scanners that answered; None means all that a rule may name.
    scanners: frozenset[str] | None = None
    findings: tuple[FindingFact, ...] = ()
    # The keywords and regular expressions of rules that occur in the content.
    keywords: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    has_error: bool = False


NO_CALLER = CallerFacts()
NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Question:
    """A request for a verdict. An empty text means that the value is not known or does not exist."""

    edge: Edge
    topic: str
    recipe: str = ""
    step: str = ""
    job_id: str = ""
    tenant: str = ""
    caller: CallerFacts = NO_CALLER
    labels: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    # The number of jobs above this one: 0 for a job that a caller submitted.
    depth: int = 0
    capability: str = ""
    risk_tags: frozenset[str] = frozenset()
    requires: frozenset[str] = frozenset()
    pack_id: str = ""
    actor_id: str = ""
    actor_type: str = ""
    agent_risk_tier: str = ""
    agent_data_classifications: frozenset[str] = frozenset()
    provider: str = ""
    model: str = ""
    host: str = ""
    cost: Decimal | None = None
    delegation: DelegationChain | None = None
    content: ContentFacts | None = None


def topic_of(recipe: str, step: str = "") -> str:
    """Return the topic of a job, or of a step of it."""
    return f"{TOPIC_PREFIX}{recipe}.{step}" if step else f"{TOPIC_PREFIX}{recipe}"


def caller_facts(ctx: CallerContext) -> CallerFacts:
    """Return a caller as rules see it."""
    return CallerFacts(ctx.caller_id, ctx.caller_type, ctx.tier or "", ctx.role.value, ctx.scopes)


def fold(text: str) -> str:
    """Return the form in which names are compared: case and surrounding spaces do not count."""
    return text.strip().casefold()
