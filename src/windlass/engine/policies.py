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
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import asyncpg
import msgspec

from windlass.core.errors import BadPolicy, NotFound, Unavailable
from windlass.core.verdict import NO_POLICY, NO_RULE, Decision, Verdict, denied
from windlass.engine.kernels import KernelGate
from windlass.engine.shadows import Shadows
from windlass.policy.judge import Judgement, judge
from windlass.policy.question import Question
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
# Calls a pure function. A process whose loop must not wait for a compiler calls it in a thread.
Aside = Callable[[Callable[[], Any]], Awaitable[Any]]


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
    # The kernel that is asked about every new job; no text: none.
    kernel: str = ""


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
    # Where the verdicts of shadow rules are noted.
    shadows: Shadows | None = field(default=None, compare=False)
    # The kernel outside of the processes that is asked about every new job.
    kernel: str = ""

    def judge(self, question: Question) -> Judgement:
        """Judge a question, and note what shadow rules would have decided. A policy that cannot be used denies."""
        if self.problem is not None:
            return Judgement(denied(NO_POLICY, self.fault or self.problem))
        if self.policy is None:
            # The installation has a kernel and no policy, so the kernel alone decides.
            return Judgement(Verdict(Decision.ALLOW, NO_RULE, "no policy was published"))
        judgement = judge(self.policy, question)
        if judgement.would and self.shadows is not None:
            self.shadows.note(self.no, question, judgement.would)
        return judgement

    @property
    def is_gated(self) -> bool:
        """Whether jobs are judged at all."""
        return self.no > 0 or self.is_required or bool(self.kernel)

    @property
    def fault(self) -> str | None:
        """Why this process denies every job, in words that everybody may see; or None."""
        if self.error is not None:
            return f"version {self.no} cannot be used, so every job is denied"
        return (
            "no policy was published, and policy_required is set" if self.is_required and self.policy is None else None
        )

    @property
    def problem(self) -> str | None:
        """Why this process denies every job, with the error; or None."""
        return self.fault if self.error is None else f"{self.fault}: {self.error}"


async def here(function: Callable[[], Any]) -> Any:
    """Call a function on this loop."""
    return function()


async def loaded(texts: Sequence[PolicyText], aside: Aside) -> LoadedPolicy:
    """Read and compile documents. Raises BadPolicy."""
    found: LoadedPolicy = await aside(partial(load_policy, texts))
    return found


class Policies:
    """The current policy of a process, read again after a bell and every READ_EVERY_S seconds.

    `check` verifies the signature of each version. `on_load` hears of every version that was loaded: its number, and
    whether it can be used.
    """

    def __init__(
        self,
        clock_s: Callable[[], float],
        *,
        check: SignatureCheck | None = None,
        is_required: bool = False,
        aside: Aside = here,
        on_load: Callable[[int, bool], None] | None = None,
    ) -> None:
        self.check = check
        self.aside = aside
        self.on_load = on_load
        self.shadows = Shadows()
        # The kernel that this process can ask; None if its settings name none.
        self.kernel: KernelGate | None = None
        self._clock_s = clock_s
        self._is_required = is_required
        self._known: Current | None = None
        self._fresh_until_s = 0.0
        # Counts the bells: a bell during a read may be about a newer version than the one that was read.
        self._bells = 0
        # Reads are numbered in the order in which they begin. Only a compilation is waited for by other callers.
        self._begun = 0
        self._applied = 0
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
        return await self._read(db)

    async def _read(self, db: Database) -> Current:
        self._begun = ticket = self._begun + 1
        bells = self._bells
        now = await read_now(db)
        known = self._known
        if known is not None and (known.no, known.error) == (now.no, None):
            found = replace(known, floor=now.floor, kernel=now.kernel)
        elif now.no == 0:
            found = Current(is_required=self._is_required, kernel=now.kernel)
        else:
            found = await self._compile_once(db, now)
        # Of reads at the same time, the one that began last knows best.
        if ticket > self._applied:
            self._known, self._applied = found, ticket
            if bells == self._bells:
                self._fresh_until_s = self._clock_s() + READ_EVERY_S
        return found

    async def _compile_once(self, db: Database, now: Now) -> Current:
        """Compile the version, unless a caller that was first has compiled it meanwhile."""
        async with self._lock:
            known = self._known
            if known is not None and (known.no, known.error) == (now.no, None):
                return replace(known, floor=now.floor, kernel=now.kernel)
            found = await self._compiled(db, now)
            if self.on_load is not None:
                self.on_load(now.no, found.error is None)
            if known is None or known.no < now.no:
                self._known = found
            return found

    async def _compiled(self, db: Database, now: Now) -> Current:
        try:
            version = await read(db, now.no)
            if self.check is not None:
                self.check(version.head.hash, version.head.signature)
            found = await loaded(version.texts, self.aside)
            if self.check is not None and found.hash != version.head.hash:
                # The signature is about the hash, so the hash must be about the texts.
                raise BadPolicy("its texts are not those of the hash that was signed")
        except Unavailable:
            raise
        except Exception as error:
            # Whatever is wrong with the version, this process must deny, and say why.
            _log.exception("policy %d cannot be used, so every job is denied", now.no)
            reason = str(error) if isinstance(error, BadPolicy) else type(error).__name__
            return Current(now.no, now.floor, None, reason, self._is_required, kernel=now.kernel)
        return Current(now.no, now.floor, found.policy, None, self._is_required, self.shadows, now.kernel)


def is_changed(error: BaseException) -> bool:
    """Return whether a commit was refused because its verdicts were made by a version that is no longer in force."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == CHANGED


async def read_now(db: Database) -> Now:
    """Read which version is in force."""
    row = await db.run(lambda connection: connection.fetchrow(sql("policy_now")))
    return Now(row["no"], row["floor"], row["kernel"] or "")


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
