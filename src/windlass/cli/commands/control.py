"""Acting on jobs: cancel, retry, rerun, pause, resume, delete."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB

PANEL = "Act"
Jobs = Annotated[list[str], typer.Argument(metavar="JOB...", help=JOB + " Several may be given; - reads them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would run again.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for function in (cancel, retry, rerun, pause, resume, delete):
        command(app, function.__name__, panel=PANEL, has_json=True)(function)


async def cancel(at: Ambient, job: Jobs, reason: Annotated[str, typer.Option(help="Kept with the job.")] = "") -> None:
    """End jobs: open steps are cancelled, running ones are told to stop."""
    await _each(at, job, "cancel", "cancelled", reason)


async def retry(at: Ambient, job: Jobs, dry_run: DryRun = False) -> None:
    """Run failed jobs again from where they failed, keeping what succeeded. Makes new jobs."""
    await _again(at, job, "retry", "retried", dry_run=dry_run)


async def rerun(
    at: Ambient,
    job: Jobs,
    from_step: Annotated[
        str | None,
        typer.Option("--from", metavar="STEP", help="Only this step, as render or render[3], and what needs it."),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="K=V", help="An input to change: k=v, k=@file or @file.json. Repeatable."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Run finished jobs again, from the start or from a step; other finished steps are kept. Makes new jobs."""
    await _again(at, job, "rerun", "run again", from_step, given, dry_run=dry_run)


async def pause(at: Ambient, job: Jobs) -> None:
    """Start no further steps of these jobs; running ones finish."""
    await _each(at, job, "pause", "paused")


async def resume(at: Ambient, job: Jobs) -> None:
    """Go on with paused jobs."""
    await _each(at, job, "resume", "resumed")


async def delete(at: Ambient, job: Jobs) -> None:
    """Hide finished jobs from listings; retention removes them later."""
    await _each(at, job, "delete", "deleted")


async def _found(ask: Any, names: list[str]) -> list[UUID]:
    """Find all jobs first, so that a slip in one name leaves everything as it was."""
    import sys

    wanted = [name for given in names for name in (sys.stdin.read().split() if given == "-" else [given])]
    return list(dict.fromkeys([await ask.find(name) for name in wanted]))


async def _again(
    at: Ambient,
    names: list[str],
    action: str,
    done: str,
    from_step: str | None = None,
    given: list[str] | None = None,
    *,
    dry_run: bool,
) -> None:
    from windlass.cli.redriving import Again, Edit
    from windlass.cli.session import desk

    wish = Again(action, from_step, Edit.of(given) if given else None)
    async with desk(at) as ask:
        for job_id in await _found(ask, names):
            if dry_run:
                _show(at, job_id, await ask.preview(job_id, wish))
                continue
            made = await ask.run_again(job_id, wish)
            if at.as_json:
                at.screen.record({"id": job_id, "action": done, "new_job": made, "changed": True})
            else:
                at.screen.line(f"{job_id} {done} as {made}")


def _show(at: Ambient, job_id: UUID, told: dict[str, Any]) -> None:
    if at.as_json:
        at.screen.record({"id": job_id, **told})
        return
    at.screen.line(f"{job_id} would be run again")
    kept = told["kept_children"]
    again = [f"{step} (keeping {kept[step]} children)" if step in kept else step for step in told["run_again"]]
    at.screen.line(f"  run again  {', '.join(again)}")
    at.screen.line(f"  kept       {', '.join(told['kept']) or 'nothing'}")
    if told["stale"]:
        changed = ", ".join(told["inputs_changed"])
        at.screen.line(f"  stale      {', '.join(told['stale'])}: kept, though they were made before {changed} changed")


async def _each(at: Ambient, names: list[str], action: str, done: str, reason: str = "") -> None:
    """Act on each in turn."""
    from windlass.cli.session import desk

    async with desk(at) as ask:
        for job_id in await _found(ask, names):
            answer = await ask.control(action, job_id, reason)
            if at.as_json:
                at.screen.record({"id": job_id, "action": done, "new_job": None, "changed": answer is not False})
                continue
            was = "was not changed: it is so already" if answer is False else done
            at.screen.line(f"{job_id} {was}")
