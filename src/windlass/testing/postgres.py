"""A throwaway PostgreSQL for this process: started at the first use, gone when the process ends."""

from __future__ import annotations

import atexit
import os
from functools import cache
from itertools import count
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from windlass.app.embedded.server import EmbeddedPostgres
from windlass.store.database import Database
from windlass.store.migrate import migrate

_names = count(1)
# The migrated database that new databases are copied from: none, then one.
_templates: list[str] = []

# Referring tables before the tables that they refer to.
TABLES = (
    "provider_jobs", "provider_events", "providers", "slots", "slot_changes", "costs", "budgets", "signals", "waits",
    "votes", "approvals", "webhooks", "audit", "audit_notes", "tickets", "console_sessions", "console_tokens", "limits",
    "keys", "caller_aliases", "callers", "tallies", "minutes", "redriven", "undos", "undo_attempts", "undo_moved",
    "undo_kept", "cursors", "engines", "inbox", "events", "steps", "jobs", "workers", "capabilities", "recipes",
    "plans", "verdicts", "policies", "kernels", "policy_shadows", "policy_examples",
    "velocity", "places",
)  # fmt: skip
# Deleting a few rows takes a thirtieth of the time of truncating, but leaves dead rows for vacuum.
_TRUNCATE_OVER_BYTES = 4 * 1024 * 1024


@cache
def server_dsn() -> str:
    """Return the DSN of the server's default database. The server syncs nothing to disk: keep no lasting data there."""
    server = EmbeddedPostgres(durable=False)
    dsn = server.start()
    atexit.register(server.stop)
    return dsn


async def fresh_database(dsn: str | None = None, *, migrated: bool = True) -> str:
    """Create an empty database on the server of `dsn`, else on this process's server; return its DSN."""
    if not migrated:
        return await _created(dsn or server_dsn(), "template1")
    if dsn is not None:
        return await _migrated(dsn)
    # A copy takes a quarter of the time of the migrations. A foreign server gets no template, so none is left there.
    if not _templates:
        _templates.append(await _migrated(server_dsn()))
    return await _created(server_dsn(), urlsplit(_templates[0]).path.removeprefix("/"))


async def _created(server: str, template: str) -> str:
    name = f"windlass_{os.getpid()}_{next(_names)}"
    admin = await asyncpg.connect(server)
    try:
        await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    finally:
        await admin.close()
    return urlunsplit(urlsplit(server)._replace(path="/" + quote(name)))


async def _migrated(server: str) -> str:
    fresh = await _created(server, "template1")
    db = await Database.open(fresh, max_size=1)
    try:
        await migrate(db)
    finally:
        await db.close()
    return fresh


async def empty(connection: asyncpg.Connection) -> None:
    """Remove every row of Windlass's tables."""
    tables = ", ".join(f"windlass.{table}" for table in TABLES)
    if await connection.fetchval("SELECT pg_total_relation_size('windlass.events')") > _TRUNCATE_OVER_BYTES:
        await connection.execute(f"TRUNCATE {tables}")
    else:
        await connection.execute("; ".join(f"DELETE FROM windlass.{table}" for table in TABLES))
    await connection.execute(
        "UPDATE windlass.installation SET is_served = false, epoch = 1, system_id = NULL, secret_check = NULL, "
        "timeline = NULL, looked_at = '9999-01-01', back_at = NULL; "
        "UPDATE windlass.policy_now SET no = 0, floor = 0, kernel = NULL, swept = 0"
    )
