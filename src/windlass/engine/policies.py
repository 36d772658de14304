"""The published policies: versions that are never changed, and the copy of the current one that a process judges by.

    policies      no, hash, documents, who, when         one row a version, kept for good
    policy_now    no, floor                              the version in force; the oldest whose verdicts hold
        │ bell PolicyPublished, every 30 s, and after a commit that was refused with WL002
        ▼
    Policies.current ─► Current(no, floor, policy, error)      compiled once a process and version

A copy may be old for a moment, which is safe: every commit that judges names the version that it judged by
(`windlass.policy_check`), and every claim reads the floor (`windlass.policy_floor`). Both wait for a publish that is
under way (`engine/publish.py`).

**Closed by default.** Until the first publish no job is judged, unless the setting `policy_required` denies all jobs
then. From the first publish on, a process that cannot compile the current version denies everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from windlass.core.errors import BadPolicy, NotFound, Unavailable
from windlass.policy.rules import Policy
from windlass.policy.texts import LoadedPolicy, PolicyText, load_policy
from windlass.store.database import Database
from windlass.store.statements import sql

READ_EVERY_S = 30.0
PAGE_MAX = 200
NO_MAX = 2**63 - 1
# The SQLSTATE of a commit whose verdicts were made by another version than the one in force.
CHANGED = "WL002"

_log = logging.getLogger("windlass.policy")
_texts = msgspec.json.Decoder(list[PolicyText])

# Raises BadPolicy unless the signature fits the hash of a policy.
SignatureCheck = Callable[[str, str | None], None]
# Reads and compiles documents; a process with a busy loop does it in a thread.
Loading = Callable[[Sequence[PolicyText]], Awaitable[LoadedPolicy]]


@dataclass(frozen=True, slots=True)
class PolicyHead:
    """A published version without its texts."""

    no: int
    hash: str
    names: tuple[str, ...]
    by: str
    at: datetime
    note: str | None = None
    signature: str | None = None
    # The version whose content a rollback published again.
    rollback_of: int | None = None


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A published version: its head, and the texts of its documents by name."""

    head: PolicyHead
    texts: tuple[PolicyText, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """The version in force, 0 before the first publish; and the oldest version whose verdicts still hold."""

    no: int
    floor: int


@dataclass(frozen=True, slots=True)
class Current:
    """The policy that a process judges by.

    `policy` is None if nothing was published, or if the version cannot be used; then `error` says why.
    """

    no: int = 0
    floor: int = 0
    policy: Policy | None = None
    error: str | None = None
    is_required: bool = False

    @property
    def is_gated(self) -> bool:
        """Whether jobs are judged at all."""
        return self.no > 0 or self.is_required

    @property
    def problem(self) -> str | None:
        """Why this process denies every job, or None."""
        if self.error is not None:
            return f"policy {self.no} cannot be used: {self.error}"
        return "no policy was published, and policy_required is set" if self.is_gated and self.policy is None else None


async def loaded_here(texts: Sequence[PolicyText]) -> LoadedPolicy:
    """Read and compile documents on this loop."""
    return load_policy(texts)


class Policies:
    """The current policy of a process, read again after a bell and every READ_EVERY_S seconds.

    `check` verifies the signature of each version. `on_read` hears of every version that was read, and of its failure.
    """

    def __init__(
        self,
        clock_s: Callable[[], float],
        *,
        check: SignatureCheck | None = None,
        is_required: bool = False,
        loading: Loading = loaded_here,
        on_read: Callable[[Current], None] | None = None,
    ) -> None:
        self.check = check
        self.loading = loading
        self.on_read = on_read
        self._clock_s = clock_s
        self._is_required = is_required
        self._known: Current | None = None
        self._fresh_until_s = 0.0
        # Counts the bells: a bell during a read may be about a newer version than the one that was read.
        self._bells = 0
        self._lock = asyncio.Lock()

    @property
    def known(self) -> Current | None:
        """The policy that was read last, or None before the first read."""
        return self._known

    def expire(self) -> None:
        """Make the next call of `current` read the database: another version may be in force."""
        self._bells += 1
        self._fresh_until_s = 0.0

    async def current(self, db: Database) -> Current:
        """Return the policy to judge by. Costs nothing while the copy is fresh."""
        if self._known is not None and self._clock_s() < self._fresh_until_s:
            return self._known
        async with self._lock:
            # Another caller may have read it while this one waited for the lock.
            if self._known is None or self._clock_s() >= self._fresh_until_s:
                self._known = await self._read(db, self._known)
            return self._known

    async def _read(self, db: Database, known: Current | None) -> Current:
        bells = self._bells
        now = await read_now(db)
        if known is not None and (known.no, known.error) == (now.no, None):
            found = Current(now.no, now.floor, known.policy, None, self._is_required)
        else:
            found = await self._compiled(db, now)
        if bells == self._bells:
            self._fresh_until_s = self._clock_s() + READ_EVERY_S
        if self.on_read is not None:
            self.on_read(found)
        return found

    async def _compiled(self, db: Database, now: Now) -> Current:
        if now.no == 0:
            return Current(is_required=self._is_required)
        try:
            version = await read(db, now.no)
            if self.check is not None:
                self.check(version.head.hash, version.head.signature)
            loaded = await self.loading(version.texts)
            if self.check is not None and loaded.hash != version.head.hash:
                # The signature is about the hash, so the hash must be about the texts.
                raise BadPolicy("its texts are not those of the hash that was signed")
        except Unavailable:
            raise
        except Exception as error:
            # Whatever is wrong with the version, this process must deny, and say why.
            _log.exception("policy %d cannot be used, so every job is denied", now.no)
            reason = str(error) if isinstance(error, BadPolicy) else type(error).__name__
            return Current(now.no, now.floor, None, reason, self._is_required)
        return Current(now.no, now.floor, loaded.policy, None, self._is_required)


def is_changed(error: BaseException) -> bool:
    """Return whether a commit was refused because its verdicts were made by a version that is no longer in force."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == CHANGED


async def read_now(db: Database) -> Now:
    """Read which version is in force."""
    row = await db.run(lambda connection: connection.fetchrow(sql("policy_now")))
    return Now(row["no"], row["floor"])


async def read(db: Database, no: int | None = None) -> PolicyVersion:
    """Read a version, by default the one in force. Raises NotFound."""
    row = await db.run(lambda connection: connection.fetchrow(sql("policy_read"), no))
    if row is None:
        told = "no policy was published" if no is None else f"there is no policy {no}"
        raise NotFound(told, remedy="`windlass policy list` shows the published ones")
    return version_of(row)


async def list(db: Database, *, before: int | None = None, limit: int = 50) -> Sequence[PolicyHead]:
    """List versions, the newest first."""
    values = (NO_MAX if before is None else before, min(limit, PAGE_MAX))
    rows = await db.run(lambda connection: connection.fetch(sql("policy_list"), *values))
    return [_head(row, tuple(row["names"])) for row in rows]


def version_of(row: asyncpg.Record) -> PolicyVersion:
    """Return the version of a row."""
    texts = tuple(_texts.decode(row["documents"]))
    return PolicyVersion(_head(row, tuple(one.name for one in texts)), texts)


def _head(row: Any, names: tuple[str, ...]) -> PolicyHead:
    return PolicyHead(
        row["no"], row["hash"], names, row["by"], row["at"], row["note"], row["signature"], row["rollback_of"]
    )
