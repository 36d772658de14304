"""Velocity: how often requests may pass, and under which name they are counted.

Only the commit of a job can count exactly, because many processes submit at once. So the judge makes checks, the
commit takes them, and a simulation reads the counts through the port `VelocityCounts`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

from windlass.core.verdict import VelocityLimit
from windlass.policy.facts import Facts

COUNTER_CHARS_MAX = 200
LABEL_PART = "labels."


@dataclass(frozen=True, slots=True)
class VelocityCheck:
    """A request to be counted: under this counter at most `limit.max_requests` pass in a window."""

    rule: str
    counter: str
    limit: VelocityLimit


class VelocityCounts(Protocol):
    """Tells how many requests have passed under a counter. It only reads: a simulation leaves no trace."""

    def count(self, check: VelocityCheck) -> int:
        """Return the number of requests that passed in the window that ends now."""
        ...


def check_of(scope: str, rule: str, limit: VelocityLimit, facts: Facts) -> VelocityCheck:
    """Return the check of a request by a rule. `scope` keeps documents apart. A missing part counts as an empty one."""
    question = facts.question
    known = {
        "tenant": facts.tenant,
        "topic": question.topic,
        "caller": question.caller.id,
        "recipe": question.recipe,
        "actor_id": facts.actor_id,
        "actor_type": facts.actor_type,
        "pack_id": facts.pack_id,
        "capability": facts.capability,
    }
    parts = [
        known[part] if part in known else question.labels.get(part.removeprefix(LABEL_PART), "") for part in limit.key
    ]
    # Without the escapes, `a:b` + `c` and `a` + `b:c` would be one counter.
    value = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    if len(value) > COUNTER_CHARS_MAX or not value.isprintable():
        value = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
    return VelocityCheck(rule, f"{scope}:{rule}:{value}", limit)
