"""`windlass doctor`: checks whether the installation works, and which guarantees it gives."""

from __future__ import annotations

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit

PANEL = "Set up"
MARKS = {"ok": "ok", "warn": "!", "fail": "FAIL"}

# A check's name, status, finding and remedy.
Row = tuple[str, str, str, str]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "doctor", panel=PANEL, has_json=True, is_local=True)(doctor)


async def doctor(at: Ambient) -> Exit:
    """Check the database, durability, clock, engines and workers. Exits with 2 if a check fails, 3 if unreachable."""
    import time

    from windlass.app import extending
    from windlass.app.doctor import examine
    from windlass.app.judging import policies_of
    from windlass.cli.session import find_dsn
    from windlass.store.database import Database

    extensions = extending.load(at.settings)
    db = await Database.open(find_dsn(at), max_size=2)
    try:
        folders, policies = extending.folders(extensions), policies_of(at.settings)
        found = await examine(db, now_s=time.time(), folders=folders, policies=policies)
    finally:
        await db.close()
    rows: list[Row] = [(one.name, one.status, one.found, one.remedy) for one in found.checks] + _disk(at)
    told = ", ".join(f"{one.name} ({one.distribution} {one.version})" for one in extensions)
    rows.append(("extensions", "ok", told or "none", ""))
    is_well = all(status != "fail" for _, status, _, _ in rows)
    if at.as_json:
        names = ("name", "status", "found", "remedy")
        checks = [dict(zip(names, row, strict=True)) for row in rows]
        at.screen.document({"is_well": is_well, "promise": found.promise, "checks": checks})
    else:
        at.screen.table(("check", "", "found"), [(name, MARKS[status], text) for name, status, text, _ in rows])
        for name, _, _, remedy in rows:
            if remedy:
                at.screen.note(f"{name}: {remedy}")
    return Exit.DONE if is_well else Exit.USAGE


def _disk(at: Ambient) -> list[Row]:
    """Check the free disk space of the embedded server. PostgreSQL does not report the disk of another server."""
    import shutil

    from windlass.app.embedded.server import START_FREE_MIN_MB

    if at.settings.database_url:
        return []
    free_mb = shutil.disk_usage(at.settings.database_path).free // (1024 * 1024)
    found = f"{free_mb:,} MB free in {at.settings.database_path}"
    if free_mb < START_FREE_MIN_MB:
        return [("disk", "fail", found, "Free some space")]
    return [("disk", "ok", found, "")]
