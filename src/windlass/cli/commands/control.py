"""Acting on jobs: cancel, retry, rerun, pause, resume, delete."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB

PANEL = "Act"
Jobs = Annotated[list[str], typer.Argument(metavar="JOB...", help=JOB + " Several may be given; - reads them.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    for function in (cancel, retry, rerun, pause, resume, delete):
        command(app, function.__name__, panel=PANEL, has_json=True)(function)


async def cancel(at: Ambient, job: Jobs, reason: Annotated[str, typer.Option(help="Kept with the job.")] = "") -> None:
    """End jobs: open steps are cancelled, running ones are told to stop."""
    await _each(at, job, "cancel", "cancelled", reason)


async def retry(at: Ambient, job: Jobs) -> None:
    """Run failed jobs again from where they failed, keeping what succeeded. Makes new jobs."""
    await _each(at, job, "retry", "retried")


async def rerun(at: Ambient, job: Jobs) -> None:
    """Run finished jobs again from the start, with the same inputs. Makes new jobs."""
    await _each(at, job, "rerun", "run again")


async def pause(at: Ambient, job: Jobs) -> None:
    """Start no further steps of these jobs; running ones finish."""
    await _each(at, job, "pause", "paused")


async def resume(at: Ambient, job: Jobs) -> None:
    """Go on with paused jobs."""
    await _each(at, job, "resume", "resumed")


async def delete(at: Ambient, job: Jobs) -> None:
    """Hide finished jobs from listings; retention removes them later."""
    await _each(at, job, "delete", "deleted")


async def _each(at: Ambient, names: list[str], action: str, done: str, reason: str = "") -> None:
    """Find all jobs first, so that a slip in one name leaves everything as it was; then act on each in turn."""
    import sys

    from windlass.cli.session import desk

    wanted = [name for given in names for name in (sys.stdin.read().split() if given == "-" else [given])]
    async with desk(at) as ask:
        found = [await ask.find(name) for name in wanted]
        for job_id in dict.fromkeys(found):
            answer = await ask.control(action, job_id, reason)
            made = answer if isinstance(answer, UUID) else None
            if at.as_json:
                at.screen.record({"id": job_id, "action": done, "new_job": made, "changed": answer is not False})
                continue
            was = "was not changed: it is so already" if answer is False else done
            at.screen.line(f"{job_id} {was}" + (f" as {made}" if made else ""))
