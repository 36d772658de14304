"""The audit commands: list the records, and verify that they are unchanged."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command, group_of
from windlass.cli.exits import Exit

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = group_of("The audit: list its records, verify its chain.", listing)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "verify", panel=PANEL, has_json=True)(verify)
    app.add_typer(group, name="audit", rich_help_panel=PANEL)


async def listing(
    at: Ambient,
    event: Annotated[str | None, typer.Option(help="Only records of this event, e.g. key_created.")] = None,
    caller: Annotated[str | None, typer.Option(metavar="NAME", help="Only records about this caller.")] = None,
    job: Annotated[str | None, typer.Option(metavar="JOB", help="Only records about this job.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only records from this time on: 2026-01-31T12:00:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number of records.")] = 100,
) -> None:
    """List the records of the audit, the oldest first."""
    from windlass.cli.arguments import parse_instant
    from windlass.cli.find import find
    from windlass.cli.screen import one_line
    from windlass.cli.session import client

    wanted = {"event": event, "caller": caller, "since": parse_instant("--since", since)}
    async with client(at) as ask:
        query = [(name, value) for name, value in wanted.items() if value is not None]
        query += [] if job is None else [("job_id", str(await find(ask, job)))]
        found = [record async for record in ask.items("/audit", query, most=limit)]
    if at.as_json:
        at.screen.document({"items": found, "next": found[-1]["no"] if len(found) == limit else None})
        return
    import msgspec

    at.screen.table(
        ("no", "at", "event", "caller", "job", "payload"),
        [
            (
                str(one["no"]),
                one["at"],
                one["event"],
                one["caller"] or "",
                one["job_id"] or "",
                one_line(msgspec.json.encode(one["payload"]).decode()),
            )
            for one in found
        ],
    )
    if not found:
        at.screen.note("no records. They are written once a server has been started for this database")


async def verify(
    at: Ambient,
    head: Annotated[
        str | None, typer.Option(metavar="HEX", help="A hash that you noted earlier; the chain must contain it.")
    ] = None,
) -> Exit:
    """Verify that every record is unchanged and none is missing. Exits with 1 at the first flaw."""
    from windlass.cli.session import client
    from windlass.core.errors import BadSetting

    if head is not None and (len(head) != 64 or set(head.lower()) - set("0123456789abcdef")):
        raise BadSetting("--head is 64 hexadecimal digits", remedy="Take it from an earlier `windlass audit verify`")
    async with client(at) as ask:
        found = await ask.verify_audit(head)
    if at.as_json:
        at.screen.document(found)
    elif found["is_good"]:
        at.screen.line(f"{found['checked']} records, all unchanged")
        at.screen.line(f"head {found['head'] or 'none'}")
        at.screen.note("note the head elsewhere: it can later prove that the chain was not rewritten")
    else:
        at.screen.line(f"record {found['flaw_no']} was changed: {found['flaw']}")
    return Exit.DONE if found["is_good"] else Exit.BROKEN
