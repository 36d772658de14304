"""The schema and how it comes about: forward-only files, applied in order, each in one transaction.

Several processes may start at once: an advisory lock of the transaction's own lets one of them apply the files while
the others wait, and then find nothing left to do.
"""

from __future__ import annotations

from importlib.resources import files

import asyncpg

from windlass.core.errors import BadSetting
from windlass.store.database import Database

SERVER_VERSION_MIN = 15
MIGRATION_MAX_S = 24 * 3600.0
_LOCK_KEY = 0x77696E646C617373  # "windlass" as a number

_LEDGER = """
CREATE SCHEMA IF NOT EXISTS windlass;
CREATE TABLE IF NOT EXISTS windlass.migrations (
    name text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


def known() -> list[tuple[str, str]]:
    """Every migration of this release, in order: its name and its text."""
    folder = files("windlass.store").joinpath("migrations")
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    return [(entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")) for entry in entries]


async def migrate(db: Database) -> list[str]:
    """Bring the schema up to this release; returns the names applied by this call."""

    async def operation(connection: asyncpg.Connection) -> list[str]:
        _check_server(connection)
        async with connection.transaction():
            # A migration may take long, and another process may be waiting for it.
            await connection.execute("SET LOCAL lock_timeout = 0")
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK_KEY, timeout=MIGRATION_MAX_S)
            await connection.execute(_LEDGER)
            applied = {row["name"] for row in await connection.fetch("SELECT name FROM windlass.migrations")}
            _check_not_newer(applied)
            fresh = [(name, text) for name, text in known() if name not in applied]
            for name, text in fresh:
                await connection.execute(text, timeout=MIGRATION_MAX_S)
                await connection.execute("INSERT INTO windlass.migrations (name) VALUES ($1)", name)
        return [name for name, _ in fresh]

    return await db.run(operation)


async def missing(db: Database) -> list[str]:
    """The migrations of this release that the database does not have yet."""
    async with db.connection() as connection:
        if await connection.fetchval("SELECT to_regclass('windlass.migrations')") is None:
            return [name for name, _ in known()]
        applied = {row["name"] for row in await connection.fetch("SELECT name FROM windlass.migrations")}
    _check_not_newer(applied)
    return [name for name, _ in known() if name not in applied]


async def check(db: Database) -> None:
    """Refuse a database whose schema is behind."""
    names = await missing(db)
    if names:
        raise BadSetting(
            f"the database's schema is behind this release; missing: {', '.join(names)}",
            remedy="Run `windlass db migrate`",
        )


def _check_not_newer(applied: set[str]) -> None:
    unknown = sorted(applied - {name for name, _ in known()})
    if unknown:
        raise BadSetting(
            f"the database's schema is newer than this release; unknown here: {', '.join(unknown)}",
            remedy="Upgrade windlass on this machine",
        )


def _check_server(connection: asyncpg.Connection) -> None:
    version = connection.get_server_version()
    if version.major < SERVER_VERSION_MIN:
        raise BadSetting(
            f"this is PostgreSQL {version.major}; Windlass needs {SERVER_VERSION_MIN} or later",
            remedy="Upgrade the server, or let `windlass up` start one",
        )
