"""Schema migrations: forward-only files, applied in order, each in one transaction.

Several processes may start at once: an advisory lock of the transaction's own lets one of them apply the files while
the others wait, and then find nothing left to do.

Releases of two versions share a database during an upgrade. The schema states the oldest release that may run on it
(`windlass.installation.oldest_schema`, the number of that release's newest migration). A release on a newer schema
runs if its own newest migration is at least that number, and is refused otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import asyncpg

from windlass.core.errors import BadSetting
from windlass.store.database import Database

SERVER_VERSION_MIN = 15
MIGRATION_MAX_S = 24 * 3600.0
_LOCK_KEY = 0x77696E646C617373  # "windlass" as a number

# The migration that introduced `oldest_schema`.
_RULE = "0009_compatibility"

_LEDGER = """
CREATE SCHEMA IF NOT EXISTS windlass;
CREATE TABLE IF NOT EXISTS windlass.migrations (
    name text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the schema and this release compare: migrations that the schema lacks, and migrations unknown here."""

    missing: list[str]
    unknown: list[str]


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
            await _check_not_too_new(connection, applied)
            fresh = [(name, text) for name, text in known() if name not in applied]
            for name, text in fresh:
                await connection.execute(text, timeout=MIGRATION_MAX_S)
                await connection.execute("INSERT INTO windlass.migrations (name) VALUES ($1)", name)
        return [name for name, _ in fresh]

    return await db.run(operation)


async def standing(db: Database) -> Standing:
    """Compare the schema with this release. Raises BadSetting if the schema is too new for it."""
    async with db.connection() as connection:
        if await connection.fetchval("SELECT to_regclass('windlass.migrations')") is None:
            return Standing([name for name, _ in known()], [])
        applied = {row["name"] for row in await connection.fetch("SELECT name FROM windlass.migrations")}
        unknown = await _check_not_too_new(connection, applied)
    return Standing([name for name, _ in known() if name not in applied], unknown)


async def missing(db: Database) -> list[str]:
    """The migrations of this release that the database does not have yet."""
    return (await standing(db)).missing


async def check(db: Database) -> None:
    """Refuse a database whose schema is behind, or too new."""
    names = await missing(db)
    if names:
        raise BadSetting(
            f"the database's schema is behind this release; missing: {', '.join(names)}",
            remedy="Run `windlass db migrate`",
        )


async def _check_not_too_new(connection: asyncpg.Connection, applied: set[str]) -> list[str]:
    """Return the applied migrations that this release does not know; refuse if it may not run with them."""
    names = [name for name, _ in known()]
    unknown = sorted(applied.difference(names))
    if unknown and _RULE in applied:
        row = await connection.fetchrow("SELECT oldest_schema, oldest_release FROM windlass.installation")
        if number(names[-1]) < row["oldest_schema"]:
            release = row["oldest_release"]
            raise BadSetting(
                f"the database's schema ({unknown[-1]}) needs windlass {release} or later; "
                f"this is windlass {_release()}, which knows the schema up to {names[-1]}",
                remedy="Upgrade windlass on this machine; the schema does not go back",
            )
    return unknown


def number(name: str) -> int:
    """The number of a migration: 9 of `0009_compatibility`."""
    return int(name.partition("_")[0])


def _release() -> str:
    try:
        return version("windlass")
    except PackageNotFoundError:
        return "unknown"


def _check_server(connection: asyncpg.Connection) -> None:
    version = connection.get_server_version()
    if version.major < SERVER_VERSION_MIN:
        raise BadSetting(
            f"this is PostgreSQL {version.major}; Windlass needs {SERVER_VERSION_MIN} or later",
            remedy="Upgrade the server, or let `windlass up` start one",
        )
