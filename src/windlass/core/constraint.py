"""Constraints: limits that a verdict puts on a job, and what the limits of several verdicts become together.

Each field says who enforces it. The engine and the output scanners stop a handler that ignores a limit. A handler's
own limits are only told to the handler: Windlass cannot see which commands it runs.

| enforced | fields |
|---|---|
| engine | runtime, retries, concurrency, cost, size of outputs, destinations |
| output | size of artifacts, redaction |
| handler | sandbox, toolchain, diff, tokens |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum
from typing import Any, assert_never

from windlass.core.glob import narrower

# From the most lenient to the strictest.
REDACTION_LEVELS = ("none", "partial", "full")


class Enforcer(StrEnum):
    """Who stops a job that breaks a constraint."""

    ENGINE = "engine"
    OUTPUT = "output"
    # The handler gets the constraint and has to keep it. Windlass never calls such a constraint enforced.
    HANDLER = "handler"


class Meet(StrEnum):
    """The ways in which two values of a constraint become the tighter one."""

    # The smaller number.
    LEAST = "least"
    # Only things that both lists allow.
    BOTH = "both"
    # Only texts that globs of both lists match.
    BOTH_GLOBS = "both_globs"
    # Things that either list forbids, or a demand of either side.
    EITHER = "either"
    # The stricter level.
    LEVEL = "level"


@dataclass(frozen=True, slots=True)
class ConstraintField:
    """A field of `Constraints`: its group in documents, its enforcer, and the way in which two values meet."""

    group: str
    enforced: Enforcer
    meet: Meet


CONSTRAINT_FIELDS: Mapping[str, ConstraintField] = {
    "max_runtime_ms": ConstraintField("budgets", Enforcer.ENGINE, Meet.LEAST),
    "max_retries": ConstraintField("budgets", Enforcer.ENGINE, Meet.LEAST),
    "max_concurrent_jobs": ConstraintField("budgets", Enforcer.ENGINE, Meet.LEAST),
    "max_artifact_bytes": ConstraintField("budgets", Enforcer.OUTPUT, Meet.LEAST),
    "max_input_tokens": ConstraintField("budgets", Enforcer.HANDLER, Meet.LEAST),
    "max_output_tokens": ConstraintField("budgets", Enforcer.HANDLER, Meet.LEAST),
    "max_total_tokens": ConstraintField("budgets", Enforcer.HANDLER, Meet.LEAST),
    "max_cost": ConstraintField("budgets", Enforcer.ENGINE, Meet.LEAST),
    "isolated": ConstraintField("sandbox", Enforcer.HANDLER, Meet.EITHER),
    "network_allowlist": ConstraintField("sandbox", Enforcer.HANDLER, Meet.BOTH_GLOBS),
    "fs_read_only": ConstraintField("sandbox", Enforcer.HANDLER, Meet.BOTH),
    "fs_read_write": ConstraintField("sandbox", Enforcer.HANDLER, Meet.BOTH),
    "allowed_tools": ConstraintField("toolchain", Enforcer.HANDLER, Meet.BOTH),
    "allowed_commands": ConstraintField("toolchain", Enforcer.HANDLER, Meet.BOTH),
    "max_files": ConstraintField("diff", Enforcer.HANDLER, Meet.LEAST),
    "max_lines": ConstraintField("diff", Enforcer.HANDLER, Meet.LEAST),
    "deny_path_globs": ConstraintField("diff", Enforcer.HANDLER, Meet.EITHER),
    "max_output_bytes": ConstraintField("", Enforcer.ENGINE, Meet.LEAST),
    "allowed_destinations": ConstraintField("", Enforcer.ENGINE, Meet.BOTH_GLOBS),
    "redaction_level": ConstraintField("", Enforcer.OUTPUT, Meet.LEVEL),
    "redact_patterns": ConstraintField("", Enforcer.OUTPUT, Meet.EITHER),
}


@dataclass(frozen=True, slots=True)
class Constraints:
    """The limits of a verdict. None means that there is no limit; an empty list of allowed things allows nothing."""

    max_runtime_ms: int | None = None
    max_retries: int | None = None
    max_concurrent_jobs: int | None = None
    max_artifact_bytes: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    max_cost: Decimal | None = None
    isolated: bool | None = None
    network_allowlist: frozenset[str] | None = None
    fs_read_only: frozenset[str] | None = None
    fs_read_write: frozenset[str] | None = None
    allowed_tools: frozenset[str] | None = None
    allowed_commands: frozenset[str] | None = None
    max_files: int | None = None
    max_lines: int | None = None
    deny_path_globs: frozenset[str] | None = None
    max_output_bytes: int | None = None
    allowed_destinations: frozenset[str] | None = None
    redaction_level: str | None = None
    redact_patterns: frozenset[str] | None = None

    def meet(self, other: Constraints) -> Constraints:
        """Return the tighter of both, field by field."""
        if other == NO_CONSTRAINTS or self == other:
            return self
        if self == NO_CONSTRAINTS:
            return other
        return Constraints(
            **{
                name: _tighter(field.meet, getattr(self, name), getattr(other, name))
                for name, field in CONSTRAINT_FIELDS.items()
            }
        )

    @property
    def enforced(self) -> dict[str, Enforcer]:
        """The enforcer of each limit that is set."""
        return {name: field.enforced for name, field in CONSTRAINT_FIELDS.items() if getattr(self, name) is not None}

    def plain(self) -> dict[str, Any]:
        """Return the set limits as a document has them: in groups, lists in order, amounts of money as text."""
        out: dict[str, Any] = {}
        for name in self.enforced:
            group = CONSTRAINT_FIELDS[name].group
            value = getattr(self, name)
            if isinstance(value, frozenset):
                value = sorted(value)
            elif isinstance(value, Decimal):
                value = str(value)
            (out.setdefault(group, {}) if group else out)[name] = value
        return out


NO_CONSTRAINTS = Constraints()

assert [each.name for each in fields(Constraints)] == list(CONSTRAINT_FIELDS), "each field has its row"


def _tighter(meet: Meet, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    match meet:
        case Meet.LEAST:
            return min(left, right)
        case Meet.BOTH:
            return left & right
        case Meet.BOTH_GLOBS:
            return narrower(left, right)
        case Meet.EITHER:
            return left | right
        case Meet.LEVEL:
            return max(left, right, key=REDACTION_LEVELS.index)
        case _:
            assert_never(meet)
