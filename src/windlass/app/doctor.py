"""The checks of `windlass doctor`: whether the database can do its work, and what the installation promises.

Each check has a status: `ok`; `warn` for a setup that works and may surprise; `fail` for a fault that stops Windlass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from windlass.engine import installation
from windlass.engine.policies import Policies
from windlass.pure.promise import MEANING, Durability, Promise, promise_of
from windlass.store.database import Database
from windlass.store.migrate import SERVER_VERSION_MIN, Folder, missing
from windlass.store.statements import sql
from windlass.views import gauge, workers

Status = Literal["ok", "warn", "fail"]

# Leases, timers and deadlines use only the database's clock, so a difference is a sign, not a danger.
CLOCK_MAX_S = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """One check, its finding, and the remedy if it is not well."""

    name: str
    status: Status
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks, and the promise of this installation. The promise is None if the database could not be asked."""

    checks: list[Check]
    promise: Promise | None = None

    @property
    def is_well(self) -> bool:
        """Tell whether no check failed."""
        return all(check.status != "fail" for check in self.checks)


async def examine(
    db: Database, *, now_s: float, folders: Sequence[Folder] = (), policies: Policies | None = None
) -> Diagnosis:
    """Run all checks, with a test write. `now_s` is the time of this machine, in seconds since 1970."""
    checks = [Check("database", "ok", "answers"), await _version(db)]
    names = await missing(db, folders)
    if names:
        found = f"missing: {', '.join(names)}"
        return Diagnosis([*checks, Check("migrations", "fail", found, "Run `windlass db migrate`")])
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("doctor_settings"))
    writes = await _writes(db)
    keys = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "standbys")
    promise, why = promise_of(Durability(**{key: row[key] for key in keys}))
    checks += [
        Check("migrations", "ok", "up to date"),
        writes,
        Check("promise", "warn" if promise is Promise.TAIL else "ok", f"{promise}: {MEANING[promise]} ({why})"),
        _standbys(row["synchronous_standby_names"], row["standbys"]),
        await _timeline(db, is_standby=row["is_standby"], is_writable=writes.status == "ok"),
        Check("size", "ok", f"{row['bytes'] / 1e6:,.0f} MB"),
        _clock(row["now_s"] - now_s),
        await _engines(db),
        await _workers(db),
        *([] if policies is None else [await _policy(db, policies)]),
    ]
    return Diagnosis(checks, promise)


async def _version(db: Database) -> Check:
    async with db.connection() as connection:
        major = connection.get_server_version().major
    if major < SERVER_VERSION_MIN:
        return Check("version", "fail", f"PostgreSQL {major}", f"Windlass needs {SERVER_VERSION_MIN} or later")
    return Check("version", "ok", f"PostgreSQL {major}")


async def _writes(db: Database) -> Check:
    outage = await db.check_writes(is_tested=True)
    return (
        Check("writes", "ok", "accepted") if outage is None else Check("writes", "fail", outage.reason, outage.remedy)
    )


def _standbys(names: str, count: int) -> Check:
    if names and not count:
        remedy = "Start the standby: until then every commit waits"
        return Check("standbys", "fail", f"synchronous_standby_names is {names!r}, and none is connected", remedy)
    return Check("standbys", "ok", f"{count} connected{', synchronous: ' + names if names else ''}")


async def _timeline(db: Database, *, is_standby: bool, is_writable: bool) -> Check:
    if is_standby:
        remedy = "Name the primary in the database URL, or all hosts: postgresql://host1,host2/name"
        return Check("timeline", "fail", "this server is a standby", remedy)
    if is_writable:
        await installation.look(db)
    async with db.connection() as connection:
        row = await connection.fetchrow(sql("doctor_timeline"))
    if row["timeline"] is None:
        remedy = "After a failover run `windlass db restored`"
        return Check("timeline", "warn", f"the server does not report it; epoch {row['epoch']}", remedy)
    return Check("timeline", "ok", f"{row['timeline']}, epoch {row['epoch']}")


def _clock(ahead_s: float) -> Check:
    found = f"the database is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine"
    return Check("clock", "ok" if abs(ahead_s) <= CLOCK_MAX_S else "warn", found)


async def _engines(db: Database) -> Check:
    count = await gauge.engines(db)
    if count:
        return Check("engines", "ok", f"{count} running")
    return Check("engines", "warn", "none: no timers, retries or deadlines", "Start `windlass up` or `serve engine`")


async def _policy(db: Database, policies: Policies) -> Check:
    current = await policies.current(db)
    if current.problem is not None:
        return Check("policy", "fail", current.problem, "Publish a policy, or roll back: `windlass policy list`")
    if not current.is_gated:
        return Check("policy", "ok", "none: every job may run")
    return Check("policy", "ok", f"version {current.no}, {current.policy.hash[:12] if current.policy else ''}")


async def _workers(db: Database) -> Check:
    live = [worker for worker in await workers.listing(db) if worker.lost_at is None]
    if live:
        return Check("workers", "ok", f"{len(live)} running, {sum(worker.running for worker in live)} attempts in hand")
    return Check("workers", "warn", "none: no step runs", "Start `windlass up` or `windlass worker APP`")
