"""The audit: what was done by whom, and whether anybody changed the record of it."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command, perform
from windlass.cli.exits import Exit

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="The audit: list its records, verify its chain.", no_args_is_help=False)
    group.callback(invoke_without_command=True)(default)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "verify", panel=PANEL, has_json=True)(verify)
    app.add_typer(group, name="audit", rich_help_panel=PANEL)


def default(ctx: typer.Context) -> None:
    """The audit: list its records, verify its chain."""
    if ctx.invoked_subcommand is None:
        at = ctx.find_root().obj or Ambient()
        raise typer.Exit(perform(at, lambda: listing(at)))


async def listing(
    at: Ambient,
    event: Annotated[str | None, typer.Option(help="Only these, e.g. key_created.")] = None,
    caller: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this caller did.")] = None,
    job: Annotated[str | None, typer.Option(metavar="JOB", help="Only what concerns this job.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="From then on: 2026-01-31T12:00:00Z.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 100,
) -> None:
    """What was done by whom, the oldest first."""
    from windlass.cli.arguments import parse_instant
    from windlass.cli.desk import AuditWish
    from windlass.cli.screen import one_line
    from windlass.cli.session import desk

    begin = parse_instant("--since", since)
    async with desk(at) as ask:
        job_id = None if job is None else await ask.find(job)
        found = await ask.audit(AuditWish(event, caller, job_id, begin, limit))
    if at.as_json:
        at.screen.document(found)
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
    head: Annotated[str | None, typer.Option(metavar="HEX", help="A hash noted earlier; it must be in there.")] = None,
) -> Exit:
    """Whether every record is as it was written and none is missing. Exits with 1 at the first that is not."""
    from windlass.cli.session import desk
    from windlass.core.errors import BadSetting

    if head is not None and (len(head) != 64 or set(head.lower()) - set("0123456789abcdef")):
        raise BadSetting("--head is 64 hexadecimal digits", remedy="Take it from an earlier `windlass audit verify`")
    async with desk(at) as ask:
        found = await ask.verify_audit(head)
    if at.as_json:
        at.screen.document(found)
    elif found["is_whole"]:
        at.screen.line(f"{found['records']} records, all as they were written")
        at.screen.line(f"head {found['head']}")
        at.screen.note("note the head elsewhere: it shows later that nobody wrote the chain anew")
    else:
        at.screen.line(f"record {found['broken_at']} is not as it was written: {found['because']}")
    return Exit.DONE if found["is_whole"] else Exit.BROKEN
