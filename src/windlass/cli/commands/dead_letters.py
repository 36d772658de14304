"""The dead letter commands: list failed jobs by kind of failure, run them again, or discard them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command, group_of

PANEL = "Act"
Kind = Annotated[str, typer.Argument(metavar="FINGERPRINT", help="The fingerprint of a kind, or its first letters.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count the jobs.")]
Expect = Annotated[int | None, typer.Option(metavar="N", min=0, help="Do nothing unless exactly this many jobs match.")]
Reason = Annotated[str, typer.Option(help="A reason, stored with the action.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = group_of("Failed jobs that were neither run again nor discarded, by kind of failure.", listing)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "redrive", panel=PANEL, has_json=True)(redrive)
    command(group, "discard", panel=PANEL, has_json=True)(discard)
    app.add_typer(group, name="dead-letters", rich_help_panel=PANEL)


async def listing(at: Ambient) -> None:
    """List every kind of failure, the most recent first."""
    from windlass.cli.screen import one_line
    from windlass.cli.session import document

    if (listed := await document(at, "/dead-letters")) is None:
        return
    found = listed["items"]
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
        bool, typer.Option("--from-start", help="Start at the first step, not at the failed step.")
    ] = False,
    dry_run: DryRun = False,
    expect: Expect = None,
    reason: Reason = "",
) -> None:
    """Run the jobs of a kind again as new jobs, 500 at a time. Repeating the command runs no job twice."""
    start = "first" if from_start else "failed"
    await _deal(at, fingerprint, "redrive", dry_run, expect, reason, start=start)


async def discard(
    at: Ambient, fingerprint: Kind, dry_run: DryRun = False, expect: Expect = None, reason: Reason = ""
) -> None:
    """Discard the jobs of a kind: they stay failed and are no longer dead letters."""
    await _deal(at, fingerprint, "discard", dry_run, expect, reason)


def _named(found: list[dict[str, Any]], text: str) -> str:
    """Return the fingerprint that begins with the text."""
    from windlass.core.errors import BadInput

    fits = [one["fingerprint"] for one in found if one["fingerprint"].startswith(text.strip().lower())]
    if not text.strip() or len(fits) > 1:
        raise BadInput(f"more than one kind's fingerprint begins with {text!r}", remedy="Give more of the fingerprint")
    # The server refuses an unknown fingerprint.
    return fits[0] if fits else text.strip()


async def _deal(
    at: Ambient, text: str, action: str, dry_run: bool, expect: int | None, reason: str, **more: str
) -> None:
    from urllib.parse import quote

    from windlass.cli.session import client

    wish = {"dry_run": dry_run, "reason": reason, **more, **({} if expect is None else {"expect": expect})}
    async with client(at) as ask:
        fingerprint = _named((await ask.call("GET", "/dead-letters"))["items"], text)
        path = f"/dead-letters/{quote(fingerprint, safe='')}/{action}"
        # The client does not send this again after a lost answer: the second answer would list no jobs.
        answer = await ask.call("POST", path, wish, is_safe=False)
    if at.as_json:
        at.screen.document(answer)
        return
    count = (
        f"{'at least ' if answer['is_more'] else ''}{answer['matched']:,} job{'' if answer['matched'] == 1 else 's'}"
    )
    if answer["dry_run"]:
        at.screen.line(f"{count} would be {'run again' if action == 'redrive' else 'discarded'}")
        return
    for one in answer["done"]:
        made = f" as {one['new_job_id']}" if one["new_job_id"] else ""
        at.screen.line(f"{one['job_id']} {'run again' if action == 'redrive' else 'discarded'}{made}")
    for one in answer["refused"]:
        at.screen.line(f"{one['job_id']} was left: {one['code']}")
    left = answer["matched"] - len(answer["done"]) - len(answer["refused"])
    if left > 0:
        at.screen.note(f"{left:,} more are left; repeat the command")
