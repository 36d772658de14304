"""The commands about the database and the workers: migrations, status, URL, worker list, version."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit
from windlass.pure.service import OK

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    db = typer.Typer(help="The database: update its schema, show its state.", no_args_is_help=True)
    command(db, "migrate", panel=PANEL, has_json=True, is_local=True)(migrate)
    command(db, "status", panel=PANEL, has_json=True, is_local=True)(status)
    command(db, "labels", panel=PANEL, has_json=True, is_local=True)(labels)
    command(db, "url", panel=PANEL, is_local=True)(url)
    command(db, "restored", panel=PANEL, has_json=True, is_local=True)(restored)
    app.add_typer(db, name="db", rich_help_panel=PANEL)
    command(app, "workers", panel=PANEL, has_json=True)(workers)
    command(app, "version", panel=PANEL)(version)


def print_version() -> None:
    """Print the version of the installed package to standard output."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        found = installed("windlass")
    except PackageNotFoundError:
        found = "unknown: not installed as a package"
    sys.stdout.write(f"windlass {found}\n")


def version(at: Ambient) -> None:
    """Print the version."""
    print_version()


async def migrate(at: Ambient) -> None:
    """Bring the schema up to this release. Safe to run from several places at once."""
    from windlass.app.schema import prepare
    from windlass.cli.session import find_dsn
    from windlass.store.database import Database

    db = await Database.open(find_dsn(at), max_size=2)
    try:
        done = await prepare(db, at.settings)
    finally:
        await db.close()
    if at.as_json:
        at.screen.document({"applied": done.applied, "indexed": done.indexed})
        return
    for name in done.applied:
        at.screen.line(f"applied {name}")
    for name in done.indexed:
        at.screen.line(f"indexed label {name}")
    if not done.applied and not done.indexed:
        at.screen.line("the schema is up to date")


async def status(at: Ambient) -> Exit:
    """Show where the database is and whether its schema is current. Exits with 2 when it is behind."""
    from windlass.app import extending
    from windlass.app.settings import masked
    from windlass.cli.session import find_dsn
    from windlass.engine import policies
    from windlass.store import migrate as migrations
    from windlass.store.database import Database

    dsn = find_dsn(at)
    db = await Database.open(dsn, max_size=2)
    try:
        schema = await migrations.schema_state(db, extending.folders(extending.load(at.settings)))
        async with db.connection() as connection:
            server = connection.get_server_version()
        policy = None if schema.missing else (await policies.read_now(db)).no
    finally:
        await db.close()
    if at.as_json:
        at.screen.document(
            {
                "url": masked(dsn),
                "server": str(server.major),
                "missing": schema.missing,
                "unknown": schema.unknown,
                "policy": policy,
                "is_embedded": not at.settings.database_url,
            }
        )
    else:
        at.screen.line(f"database   {masked(dsn)}{'' if at.settings.database_url else '  (embedded)'}")
        at.screen.line(f"server     PostgreSQL {server.major}")
        at.screen.line(f"schema     {_words(schema.missing, schema.unknown)}")
        if policy is not None:
            at.screen.line(f"policy     {f'version {policy}' if policy else 'none: every job may run'}")
        if schema.missing:
            at.screen.note("bring it up to date: windlass db migrate")
    return Exit.USAGE if schema.missing else Exit.DONE


async def labels(
    at: Ambient,
    drop: Annotated[str | None, typer.Option(metavar="LABEL", help="Remove this label's indexes.")] = None,
) -> None:
    """List the labels that have an index. `indexed_labels` declares them, and `db migrate` makes the indexes."""
    from windlass.cli.session import opened
    from windlass.core.errors import NotFound
    from windlass.store import labels as indexes

    async with opened(at) as windlass:
        if drop is not None and not await indexes.drop(windlass.db, drop):
            raise NotFound(f"no index of a label {drop[:80]!r}", remedy="`windlass db labels` lists them")
        found = await indexes.listed(windlass.db)
    missing = sorted(set(at.settings.indexed_labels) - found.keys())
    rows = {name: "ready" if is_ready else "not complete" for name, is_ready in found.items()}
    rows |= dict.fromkeys(missing, "declared, no index")
    if at.as_json:
        at.screen.document({"items": [{"label": name, "status": status} for name, status in sorted(rows.items())]})
        return
    at.screen.table(("label", "index"), sorted(rows.items()))
    if any(status != "ready" for status in rows.values()):
        at.screen.note("create missing indexes: windlass db migrate")


def _words(missing: list[str], unknown: list[str]) -> str:
    if missing:
        return "behind: " + ", ".join(missing)
    if unknown:
        return f"newer than this release, compatible: {', '.join(unknown)}"
    return "up to date"


def url(at: Ambient) -> None:
    """Print the database's URL, including the password, for psql and other tools."""
    from windlass.cli.session import find_dsn

    sys.stdout.write(find_dsn(at) + "\n")


async def restored(at: Ambient) -> None:
    """Mark this database as restored from a dump: streams and followers start anew. Run it before the servers."""
    from windlass.cli.session import opened
    from windlass.engine import installation

    async with opened(at) as windlass:
        found = await installation.restored(windlass.db)
    if at.as_json:
        at.screen.document({"epoch": found.epoch})
        return
    at.screen.line(f"epoch {found.epoch}: followers of streams are told to start again")


async def workers(
    at: Ambient,
    everyone: Annotated[bool, typer.Option("--all", help="Also show workers lost in the last day.")] = False,
) -> None:
    """List the worker processes and the queues they serve. With --json, lost workers too."""
    from windlass.cli.session import document

    if (told := await document(at, "/workers")) is None:
        return
    known = told["items"]
    found = [worker for worker in known if everyone or worker["lost_at"] is None]
    at.screen.table(
        ("id", "host", "pid", "running", "concurrency", "queues", "services", "seen", "lost"),
        [
            (
                worker["id"],
                worker["host"],
                str(worker["pid"]),
                str(worker["running"]),
                str(worker["concurrency"]),
                ",".join(worker["queues"]),
                _services(worker),
                worker["seen_at"],
                worker["lost_at"] or "",
            )
            for worker in found
        ],
    )
    if not found:
        lost = f" ({len(known)} lost in the last day: windlass workers --all)" if known else ""
        at.screen.note(f"no workers{lost}. Start one: windlass worker APP")


def _services(worker: Mapping[str, Any]) -> str:
    """Return how many services of a worker's process are healthy, or the faults of the others."""
    if worker["lost_at"] is not None:
        return "lost"
    states: Mapping[str, str] | None = worker.get("services")
    if states is None:
        return "not reported yet"
    wrong = [f"{name} {state}" for name, state in sorted(states.items()) if state != OK]
    return "; ".join(wrong) or f"{len(states)} {OK}"
