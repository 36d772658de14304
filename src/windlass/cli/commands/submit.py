"""Submitting a job, and waiting for it if asked to."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit, exit_for_job

PANEL = "Run"
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="K=V", help="k=v, k=@file, or @file.json; JSON if it parses, else text."),
]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "submit", panel=PANEL, has_json=True)(submit)


async def submit(
    at: Ambient,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A registered recipe's name.")],
    inputs: Inputs = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key gives the same job.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Labels to find it by.")] = None,
    priority: Annotated[int, typer.Option(help="Higher goes first, -100 to 100.")] = 0,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="TIMEOUT if not done by then: 10m.")] = None,
    ttl: Annotated[str | None, typer.Option(metavar="TIME", help="EXPIRED if not done by then (24h).")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end and print the result.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="The same, with a live graph.")] = False,
    within: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="How long --wait waits.")] = None,
) -> Exit:
    """Submit a job. Prints its id."""
    import asyncio

    from windlass.cli.arguments import fitting_inputs, parse_labels, parse_seconds
    from windlass.cli.session import opened

    async with opened(at) as windlass:
        plan = await _plan(windlass, recipe)
        job = await windlass.submit(
            plan,
            inputs=fitting_inputs(inputs or [], plan),
            key=key,
            labels=parse_labels(label or []) or None,
            priority=priority,
            deadline=parse_seconds("--deadline", deadline),
            ttl=parse_seconds("--ttl", ttl),
        )
        if not (wait or follow):
            if at.as_json:
                at.screen.document({"id": job.id, "is_new": job.is_new})
            else:
                at.screen.line(str(job.id))
                at.screen.note(f"watch it: windlass watch {job.id}" if job.is_new else "the key is known: the same job")
            return Exit.DONE
        at.screen.note(f"job {job.id}")
        try:
            return await _finish(at, windlass, job, is_live=follow, timeout_s=parse_seconds("--timeout", within))
        except asyncio.CancelledError:
            at.screen.note(f"detached; the job goes on. Come back: windlass watch {job.id}")
            raise


async def _plan(windlass: Any, recipe: str) -> Any:
    """The newest plan of a recipe; a slip in the name is answered with the names that there are."""
    import difflib

    from windlass.core.errors import NotFound
    from windlass.engine import recipes

    try:
        return await recipes.latest(windlass.db, recipe)
    except NotFound as error:
        known = [one.name for one in await recipes.listing(windlass.db)]
        close = difflib.get_close_matches(recipe, known, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        error.remedy = f"{hint}Known recipes: {', '.join(known)}" if known else "None is registered: start a worker"
        raise


async def _finish(at: Ambient, windlass: Any, job: Any, *, is_live: bool, timeout_s: float | None) -> Exit:
    """Wait for the end, print the result or the failure, and say how it ended by the exit code."""
    from windlass.app.job import failure_of
    from windlass.cli.live import follow
    from windlass.cli.wire import error_json
    from windlass.core.states import JobState

    if is_live and not at.as_json:
        state = await follow(windlass.db, job.id, at.screen.err, hint="Ctrl-C leaves; the job goes on")
    else:
        state = await job.wait(timeout_s)
    code = exit_for_job(state)
    output = await job.result() if state is JobState.COMPLETED else None
    failure = None if state is JobState.COMPLETED else await failure_of(windlass.db, await job.view())
    if at.as_json:
        told = error_json(failure)
        at.screen.document({"id": job.id, "is_new": job.is_new, "state": state, "output": output, "error": told})
    elif failure is None:
        at.screen.document(output)
    else:
        at.screen.error(failure.message, failure.remedy, int(code))
    return code
