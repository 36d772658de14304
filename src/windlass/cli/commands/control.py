"""The commands that act on jobs: cancel, undo, retry, rerun, pause, resume, delete."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB

PANEL = "Act"
Jobs = Annotated[
    list[str], typer.Argument(metavar="JOB...", help=JOB + " Repeatable; - reads ids from standard input.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would run again.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for function in (cancel, undo, retry, rerun, pause, resume, delete):
        command(app, function.__name__, panel=PANEL, has_json=True)(function)


async def cancel(
    at: Ambient,
    job: Jobs,
    reason: Annotated[str, typer.Option(help="A reason, stored with the job.")] = "",
    with_undo: Annotated[
        bool, typer.Option("--undo/--no-undo", help="Undo the effects of finished steps, or keep them.")
    ] = True,
) -> None:
    """Cancel jobs: their open steps are cancelled, and running steps are asked to stop. Effects are undone."""
    await _each(at, job, "cancel", "cancelled", {"reason": reason, "undo": with_undo})


async def undo(
    at: Ambient,
    job: Jobs,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what is undone, in order.")] = False,
) -> None:
    """Undo finished jobs: run the undo of every effect that stands, or allow an undo that waits for a person."""
    from windlass.cli.session import client

    async with client(at) as ask:
        for job_id in await _found(ask, job):
            document = await ask.call("GET" if plan else "POST", f"/jobs/{job_id}/undo")
            if at.as_json:
                at.screen.record(document)
            elif plan:
                _show_undo(at, job_id, document)
            else:
                word = "is undone by" if document["is_new"] else "is being undone already by"
                at.screen.line(f"{job_id} {word} {document['undo_job_id']}")


async def retry(at: Ambient, job: Jobs, dry_run: DryRun = False) -> None:
    """Run failed jobs again from the failed steps, as new jobs. Successful steps are kept."""
    await _again(at, job, "retry", "retried", dry_run=dry_run)


async def rerun(
    at: Ambient,
    job: Jobs,
    from_step: Annotated[
        str | None,
        typer.Option("--from", metavar="STEP", help="Run this step (render, or render[3]) and its dependents again."),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="K=V", help="An input to change: k=v, k=@file or @file.json. Repeatable."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Run finished jobs again as new jobs, from the start or from a step; other finished steps are kept."""
    await _again(at, job, "rerun", "run again", from_step, given, dry_run=dry_run)


async def pause(at: Ambient, job: Jobs) -> None:
    """Pause jobs: no further steps start, and running steps finish."""
    await _each(at, job, "pause", "paused")


async def resume(at: Ambient, job: Jobs) -> None:
    """Resume paused jobs."""
    await _each(at, job, "resume", "resumed")


async def delete(at: Ambient, job: Jobs) -> None:
    """Hide finished jobs from listings; retention removes them later."""
    from windlass.cli.session import client

    async with client(at) as ask:
        for job_id in await _found(ask, job):
            await ask.job(job_id).delete()
            if at.as_json:
                at.screen.record({"job_id": job_id, "deleted": True})
            else:
                at.screen.line(f"{job_id} deleted")


async def _found(ask: Any, names: list[str]) -> list[UUID]:
    """Find all jobs before the command acts, so that an error in one name leaves every job unchanged."""
    import sys

    from windlass.cli.find import find

    wanted = [name for given in names for name in (sys.stdin.read().split() if given == "-" else [given])]
    return list(dict.fromkeys([await find(ask, name) for name in wanted]))


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
    from windlass.cli.arguments import edited_inputs
    from windlass.cli.session import client
    from windlass.client.again import Rerun, again

    async with client(at) as ask:
        for job_id in await _found(ask, names):
            inputs = edited_inputs(given, await ask.job(job_id).input()) if given else None
            wish = Rerun(action, from_step, inputs)
            document = await ask.run(again(ask.sources, job_id, wish, dry_run=dry_run))
            if at.as_json:
                at.screen.record(document)
            elif dry_run:
                _show(at, job_id, document)
            else:
                at.screen.line(f"{job_id} {done} as {document['job_id']}")


def _show_undo(at: Ambient, job_id: UUID, told: dict[str, Any]) -> None:
    at.screen.line(f"{job_id} effects: {told['effects']}, order: {told['undo_order']}")
    for place, step in enumerate(told["steps"], 1):
        at.screen.line(f"  {place:>3}  {step['step']:<24} {step['run']:<24} {step['status'] or 'would run'}")
    if told["final"]:
        at.screen.line(f"  final: {', '.join(told['final'])}")
    if not told["steps"]:
        at.screen.line("  nothing to undo")


def _show(at: Ambient, job_id: UUID, told: dict[str, Any]) -> None:
    at.screen.line(f"{job_id} would be run again")
    kept = told["kept_children"]
    again = [f"{step} (keeping {kept[step]} children)" if step in kept else step for step in told["run_again"]]
    at.screen.line(f"  run again  {', '.join(again)}")
    at.screen.line(f"  kept       {', '.join(told['kept']) or 'nothing'}")
    if told["stale"]:
        changed = ", ".join(told["inputs_changed"])
        at.screen.line(f"  stale      {', '.join(told['stale'])}: kept, though they were made before {changed} changed")


async def _each(at: Ambient, names: list[str], action: str, done: str, body: dict[str, Any] | None = None) -> None:
    """Request the action for each job in turn, and print the result."""
    from windlass.cli.session import client

    async with client(at) as ask:
        for job_id in await _found(ask, names):
            document = await ask.call("POST", f"/jobs/{job_id}/{action}", body)
            if at.as_json:
                at.screen.record(document)
                continue
            at.screen.line(f"{job_id} {done if document['changed'] else 'was not changed: it is so already'}")
