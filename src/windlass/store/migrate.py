"""Schema migrations: forward-only files, applied in order, each in one transaction.

Several processes may start at once. A transaction-level advisory lock lets one of them apply the files; the others wait
and then find nothing to do.

An extension has its own files. They are applied after ours, into the extension's schema, and recorded as
`name/0001_file`.

Releases of two versions share a database during an upgrade. The schema states the oldest release that may run on it
(`windlass.installation.oldest_schema`, the number of that release's newest migration). A release on a newer schema
runs if its own newest migration is at least that number, and is refused otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import asyncpg

from windlass.core.errors import BadSetting
from windlass.store.database import Database

SERVER_VERSION_MIN = 15
MIGRATION_MAX_S = 24 * 3600.0
_LOCK_KEY = 0x77696E646C617373  # "windlass" as a number

_FILE = re.compile(r"\d{4}_[a-z0-9_]+")
_COMMENT = re.compile(r"--[^\n]*")
# `windlass.clock()` is a function that an extension may use.
_OURS = re.compile(r"\bwindlass\.(?!clock\b)", re.IGNORECASE)

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
class SchemaState:
    """Compares the schema with this release: migrations that the schema lacks, and migrations unknown here."""

    missing: list[str]
    unknown: list[str]


@dataclass(frozen=True, slots=True)
class Folder:
    """The migrations of an extension, in order: their schema, and the name and text of each file."""

    name: str
    schema: str
    files: list[tuple[str, str]]

    def __post_init__(self) -> None:
        for file, text in self.files:
            if _FILE.fullmatch(file) is None:
                raise BadSetting(f"the extension {self.name}: {file}.sql must be called like 0001_first.sql")
            if _OURS.search(_COMMENT.sub("", text)):
                raise BadSetting(
                    f"the extension {self.name}: {file}.sql names a table of Windlass, which changes with its releases",
                    remedy=f"Keep to the schema {self.schema}, and store the ids of jobs",
                )

    def full(self, file: str) -> str:
        """Return the name of a file in the ledger."""
        return f"{self.name}/{file}"

    def missing(self, applied: set[str]) -> list[str]:
        """Return the ledger names of the files that were not applied."""
        return [self.full(file) for file, _ in self.files if self.full(file) not in applied]


def known() -> list[tuple[str, str]]:
    """Return every migration of this release, in order, as name and text."""
    folder = files("windlass.store").joinpath("migrations")
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    return [(entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")) for entry in entries]


async def migrate(db: Database, folders: Sequence[Folder] = ()) -> list[str]:
    """Bring the schema up to this release and these extensions; return the names that this call applied."""

    async def operation(connection: asyncpg.Connection) -> list[str]:
        _check_server(connection)
        async with connection.transaction():
            # A migration may take long while another process waits for it.
            await connection.execute("SET LOCAL lock_timeout = 0")
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK_KEY, timeout=MIGRATION_MAX_S)
            await connection.execute(_LEDGER)
            applied = {row["name"] for row in await connection.fetch("SELECT name FROM windlass.migrations")}
            await _check_not_too_new(connection, applied)
            fresh = [(name, text) for name, text in known() if name not in applied]
            for name, text in fresh:
                await connection.execute(text, timeout=MIGRATION_MAX_S)
                await connection.execute("INSERT INTO windlass.migrations (name) VALUES ($1)", name)
            added = [name for folder in folders for name in await _apply(connection, folder, applied)]
        return [name for name, _ in fresh] + added

    return await db.run(operation)


async def _apply(connection: asyncpg.Connection, folder: Folder, applied: set[str]) -> list[str]:
    """Apply the missing files of an extension, inside the caller's transaction."""
    names = folder.missing(applied)
    if not names:
        return []
    # An unqualified name in a file then refers to the extension's schema, never to ours.
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {folder.schema}")
    await connection.execute("SELECT set_config('search_path', $1, true)", f"{folder.schema}, public")
    for file, text in folder.files:
        if folder.full(file) in names:
            await connection.execute(text, timeout=MIGRATION_MAX_S)
            await connection.execute("INSERT INTO windlass.migrations (name) VALUES ($1)", folder.full(file))
    return names


async def schema_state(db: Database, folders: Sequence[Folder] = ()) -> SchemaState:
    """Compare the schema with this release and these extensions. Raises BadSetting if the schema is too new."""
    async with db.connection() as connection:
        if await connection.fetchval("SELECT to_regclass('windlass.migrations')") is None:
            return SchemaState(
                [name for name, _ in known()] + [name for one in folders for name in one.missing(set())], []
            )
        applied = {row["name"] for row in await connection.fetch("SELECT name FROM windlass.migrations")}
        unknown = await _check_not_too_new(connection, applied)
    missing = [name for name, _ in known() if name not in applied]
    return SchemaState(missing + [name for one in folders for name in one.missing(applied)], unknown)


async def missing(db: Database, folders: Sequence[Folder] = ()) -> list[str]:
    """Return the migrations of this release and these extensions that the database lacks."""
    return (await schema_state(db, folders)).missing


async def check(db: Database, folders: Sequence[Folder] = ()) -> None:
    """Raise BadSetting if the schema is behind or too new."""
    names = await missing(db, folders)
    if names:
        raise BadSetting(
            f"the database's schema is behind this release; missing: {', '.join(names)}",
            remedy="Run `windlass db migrate`",
        )


async def _check_not_too_new(connection: asyncpg.Connection, applied: set[str]) -> list[str]:
    """Return the applied migrations that this release does not know. Raises BadSetting if it may not run with them."""
    names = [name for name, _ in known()]
    # Extensions number their files independently, and a process without the extension does not need them.
    unknown = sorted(name for name in applied.difference(names) if "/" not in name)
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
    """Return the number of a migration: 9 for `0009_compatibility`."""
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
