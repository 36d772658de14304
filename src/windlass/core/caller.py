"""The caller of a request: its identity, type, tier and rights, built from claims that may be incomplete.

A missing claim has a safe default. A Membership service may at first say only "valid", and later also send the caller's
name, type, tier or limits. Code that uses the context does not change then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from windlass.core.errors import BadInput, Forbidden, Unauthenticated

NAME_LENGTH_MAX = 255
PRIORITY_MAX = 100
# The priority of undo jobs: above every priority that a caller may give.
CRITICAL = PRIORITY_MAX + 1
CALLER_TYPES = ("user", "service")
UNKNOWN_TYPE = "unknown"


class CallerType(StrEnum):
    """What a caller is, as far as its key or a Membership service says."""

    USER = "user"
    SERVICE = "service"
    UNKNOWN = "unknown"


class Scope(StrEnum):
    """The rights that a key may have."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    AUDIT_READ = "audit:read"
    APPROVALS_DECIDE = "approvals:decide"
    PRIORITY_HIGH = "priority:high"
    POLICY_READ = "policy:read"
    POLICY_WRITE = "policy:write"
    ADMIN = "admin"


# The scope that includes another one.
_WRITES_OF = {Scope.JOBS_READ: Scope.JOBS_WRITE, Scope.POLICY_READ: Scope.POLICY_WRITE}


class Role(StrEnum):
    """The role of a caller."""

    USER = "user"
    SERVICE = "service"
    ADMIN = "admin"


# The scopes of a Membership answer that lists none; never admin.
USER_SCOPES: frozenset[str] = frozenset({Scope.JOBS_READ, Scope.JOBS_WRITE})


@dataclass(frozen=True, slots=True)
class CallerContext:
    """A caller and its known claims. It never contains the key, only the public id of a built-in key."""

    caller_id: str
    caller_type: str = UNKNOWN_TYPE
    tier: str | None = None
    scopes: frozenset[str] = frozenset()
    # All claims that the Membership service sent. `repr` leaves them out, because they may contain secrets.
    raw_claims: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    key_id: str | None = None
    # The roles that the key or the Membership service gives the caller, for rules that say who may decide.
    roles: frozenset[str] = frozenset()
    # The id is the name of a person or a program. False: it was made for one key, whose holder may have others.
    is_named: bool = True
    # The organisation for which the caller acts, by the claim `tenant`. A label never sets it.
    tenant: str | None = None

    @property
    def all_roles(self) -> frozenset[str]:
        """Return the roles by which an approval may name the caller: its own, and `role`."""
        return self.roles | {self.role.value}

    @property
    def role(self) -> Role:
        """Return ADMIN by scope, SERVICE by type, otherwise USER."""
        if Scope.ADMIN in self.scopes:
            return Role.ADMIN
        return Role.SERVICE if self.caller_type == "service" else Role.USER

    @property
    def owner(self) -> str | None:
        """The caller whose jobs this caller may see. None means the jobs of all callers."""
        return None if self.role is Role.ADMIN else self.caller_id

    def has(self, scope: Scope) -> bool:
        """Return whether the caller has the right. Admin includes every scope; the right to write includes to read."""
        if scope in self.scopes or Scope.ADMIN in self.scopes:
            return True
        return _WRITES_OF.get(scope) in self.scopes


def priority_max(ctx: CallerContext, most: int) -> int:
    """Return the highest priority that the caller may give a job. `most` applies without the scope for more."""
    return PRIORITY_MAX if ctx.has(Scope.PRIORITY_HIGH) else most


def check_priority(ctx: CallerContext, priority: int, most: int) -> None:
    """Raise Forbidden if the priority is above the caller's maximum."""
    if priority > priority_max(ctx, most):
        raise Forbidden(
            f"a priority of {priority} needs the scope {Scope.PRIORITY_HIGH}",
            remedy=f"Ask for {most} or less, or use a key that has the scope",
        )


# The caller of commands that connect to the database directly.
LOCAL = CallerContext("local", "user", None, frozenset({Scope.ADMIN}))


def context_of(claims: Mapping[str, Any], fallback_id: str, key_id: str | None = None) -> CallerContext:
    """Build a caller from its claims. An unreadable claim counts as absent."""
    caller_type = claims.get("caller_type")
    return CallerContext(
        caller_id=_name(claims.get("caller_id")) or fallback_id,
        caller_type=caller_type if caller_type in CALLER_TYPES else UNKNOWN_TYPE,
        tier=_name(claims.get("tier")),
        scopes=_scopes(claims.get("scopes")),
        roles=_roles(claims.get("roles")),
        raw_claims=claims,
        key_id=key_id,
        tenant=_name(claims.get("tenant")),
    )


def is_internal(ctx: CallerContext, internal_callers: Collection[str]) -> bool:
    """Return whether the caller is internal: a service, or named in the settings."""
    return ctx.caller_type == "service" or ctx.caller_id in internal_callers


def stranger() -> Unauthenticated:
    """Return the error for a missing, malformed, unknown, revoked or expired key. It does not reveal which."""
    return Unauthenticated(
        "no API key was given, or it is not valid",
        remedy="Send a key in the header X-API-Key, or as Authorization: Bearer",
    )


def check_name(what: str, text: str) -> str:
    """Return the text if it can be stored and shown as a name; raise BadInput otherwise."""
    if not _is_name(text):
        raise BadInput(f"{what} must be 1 to {NAME_LENGTH_MAX} printable characters")
    return text


def _name(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and _is_name(value) else None


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_LENGTH_MAX and text.isprintable() and bool(text.strip())


def _roles(value: Any) -> frozenset[str]:
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str) and _is_name(name))


def _scopes(value: Any) -> frozenset[str]:
    if value is None:
        return USER_SCOPES
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))
