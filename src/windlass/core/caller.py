"""Who asks: a caller's identity, type, tier and rights, as a value that is filled from whatever is known of it.

What is not known has a safe default. So a Membership service that says only "valid" today, and names the caller, its
type, its tier or its limits tomorrow, changes no code that uses the context.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from windlass.core.errors import BadInput, Forbidden, Unauthenticated

NAME_LENGTH_MAX = 255
PRIORITY_MAX = 100
CALLER_TYPES = ("user", "service")


class Scope(StrEnum):
    """What a key allows."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    AUDIT_READ = "audit:read"
    PRIORITY_HIGH = "priority:high"
    ADMIN = "admin"


class Role(StrEnum):
    """What a caller is, in one word."""

    USER = "user"
    SERVICE = "service"
    ADMIN = "admin"


# What a Membership answer without scopes means; never admin.
USER_SCOPES: frozenset[str] = frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE})


@dataclass(frozen=True, slots=True)
class CallerContext:
    """A caller, as far as it is known. The key itself is no part of it, only the public part of a built-in key."""

    caller_id: str
    caller_type: str = "unknown"
    tier: str | None = None
    scopes: frozenset[str] = frozenset()
    # Whatever a service said of the caller; not shown, as nobody knows what is in it.
    raw_claims: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    key_id: str | None = None

    @property
    def role(self) -> Role:
        """Admin by scope, service by type, else a user."""
        if Scope.ADMIN in self.scopes:
            return Role.ADMIN
        return Role.SERVICE if self.caller_type == "service" else Role.USER

    @property
    def owner(self) -> str | None:
        """Whose jobs it may know of: None means everybody's."""
        return None if self.role is Role.ADMIN else self.caller_id

    def has(self, scope: Scope) -> bool:
        """Whether it may do this. Admin may do all, and who may write jobs may read them."""
        if scope in self.scopes or Scope.ADMIN in self.scopes:
            return True
        return scope is Scope.JOBS_READ and Scope.JOBS_WRITE in self.scopes


def priority_max(ctx: CallerContext, most: int) -> int:
    """The highest priority that it may give a job; `most` is what a caller has without a scope for more."""
    return PRIORITY_MAX if ctx.has(Scope.PRIORITY_HIGH) else most


def check_priority(ctx: CallerContext, priority: int, most: int) -> None:
    """Refuse a priority above what the caller may give."""
    if priority > priority_max(ctx, most):
        raise Forbidden(
            f"a priority of {priority} takes the scope {Scope.PRIORITY_HIGH}",
            remedy=f"Ask for {most} or less, or use a key that has the scope",
        )


# Whoever runs commands on the database itself.
LOCAL = CallerContext("local", "user", None, frozenset({Scope.ADMIN}))


def context_of(claims: Mapping[str, Any], fallback_id: str, key_id: str | None = None) -> CallerContext:
    """The caller that these claims describe; a claim that cannot be read counts as not made."""
    caller_type = claims.get("caller_type")
    return CallerContext(
        caller_id=_name(claims.get("caller_id")) or fallback_id,
        caller_type=caller_type if caller_type in CALLER_TYPES else "unknown",
        tier=_name(claims.get("tier")),
        scopes=_scopes(claims.get("scopes")),
        raw_claims=claims,
        key_id=key_id,
    )


def is_internal(ctx: CallerContext, internal_callers: Collection[str]) -> bool:
    """Whether it is one of our own: a service, or named in the settings."""
    return ctx.caller_type == "service" or ctx.caller_id in internal_callers


def stranger() -> Unauthenticated:
    """The one refusal for a key that is missing, malformed, unknown, revoked or expired: which of these is not told."""
    return Unauthenticated(
        "no API key was given, or it is not valid",
        remedy="Send a key in the header X-API-Key, or as Authorization: Bearer",
    )


def check_name(what: str, text: str) -> str:
    """The text, if it can be stored and shown as a name."""
    if not _is_name(text):
        raise BadInput(f"{what} must be 1 to {NAME_LENGTH_MAX} printable characters")
    return text


def _name(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and _is_name(value) else None


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_LENGTH_MAX and text.isprintable() and bool(text.strip())


def _scopes(value: Any) -> frozenset[str]:
    if value is None:
        return USER_SCOPES
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))
