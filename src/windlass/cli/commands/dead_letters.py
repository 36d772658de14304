"""Failed jobs that nobody has dealt with: look at them by kind, run them again, or leave them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command, perform

PANEL = "Act"
Kind = Annotated[str, typer.Argument(metavar="FINGERPRINT", help="Of a kind, or its first letters.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")]
Expect = Annotated[int | None, typer.Option(metavar="N", min=0, help="Do nothing if there are not so many.")]
Reason = Annotated[str, typer.Option(help="Kept with what was done.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Failed jobs that nobody has dealt with, by kind of failure.", no_args_is_help=False)
    group.callback(invoke_without_command=True)(default)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "redrive", panel=PANEL, has_json=True)(redrive)
    command(group, "discard", panel=PANEL, has_json=True)(discard)
    app.add_typer(group, name="dead-letters", rich_help_panel=PANEL)


def default(ctx: typer.Context) -> None:
    """Failed jobs that nobody has dealt with, by kind of failure."""
    if ctx.invoked_subcommand is None:
        at = ctx.find_root().obj or Ambient()
        raise typer.Exit(perform(at, lambda: listing(at)))


async def listing(at: Ambient) -> None:
    """Every kind of failure, the one that happened last first."""
    from windlass.cli.screen import one_line
    from windlass.cli.session import desk

    async with desk(at) as ask:
        found = await ask.dead_letters()
    if at.as_json:
        at.screen.document(found)
        return
    at.screen.table(
        ("fingerprint", "jobs", "recipe", "step", "code", "last", "message"),
        [
            (
                one["fingerprint"],
                str(one["count"]),
                one["recipe"],
                one["step"] or "",
                one["code"],
                one["last_at"],
                one_line(one["message"])[:200],
            )
            for one in found
        ],
    )
    if not found:
        at.screen.note("no dead letters: every failed job was run again, discarded or deleted")
        return
    at.screen.note(f"run them again: windlass dead-letters redrive {found[0]['fingerprint']}")


async def redrive(
    at: Ambient,
    fingerprint: Kind,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="From their first step; else where they failed.")
    ] = False,
    dry_run: DryRun = False,
    expect: Expect = None,
    reason: Reason = "",
) -> None:
    """Run the jobs of a kind again, as new jobs; 500 at a time. No job is run twice by this."""
    start = "first" if from_start else "failed"
    await _deal(at, fingerprint, "redrive", start=start, dry_run=dry_run, expect=expect, reason=reason)


async def discard(
    at: Ambient, fingerprint: Kind, dry_run: DryRun = False, expect: Expect = None, reason: Reason = ""
) -> None:
    """Leave the jobs of a kind as they are: they stay failed, and are no dead letters any more."""
    await _deal(at, fingerprint, "discard", start="failed", dry_run=dry_run, expect=expect, reason=reason)


async def _deal(at: Ambient, text: str, action: str, **how: Any) -> None:
    from windlass.cli.redriving import named
    from windlass.cli.session import desk

    async with desk(at) as ask:
        told = await ask.deal(named(await ask.dead_letters(), text), action, **how)
    if at.as_json:
        at.screen.document(told)
        return
    count = f"{'at least ' if told['is_more'] else ''}{told['matched']:,} job{'' if told['matched'] == 1 else 's'}"
    if told["dry_run"]:
        at.screen.line(f"{count} would be {'run again' if action == 'redrive' else 'discarded'}")
        return
    for one in told["done"]:
        made = f" as {one['new_job_id']}" if one["new_job_id"] else ""
        at.screen.line(f"{one['job_id']} {'run again' if action == 'redrive' else 'discarded'}{made}")
    for one in told["refused"]:
        at.screen.line(f"{one['job_id']} was left: {one['code']}")
    left = told["matched"] - len(told["done"]) - len(told["refused"])
    if left > 0:
        at.screen.note(f"{left:,} more are left; ask again")
