"""Submitting a job, and waiting for it if asked to."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

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
    budget: Annotated[str | None, typer.Option(metavar="AMOUNT", help="How much it may spend: 5.00.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end and print the result.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="The same, with a live graph.")] = False,
    within: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="How long --wait waits.")] = None,
    webhook: Annotated[str | None, typer.Option(metavar="URL", help="Where to tell how it ended.")] = None,
    webhook_secret_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Holds whsec_…, which signs what is told.")
    ] = None,
) -> Exit:
    """Submit a job. Prints its id."""
    import asyncio

    from windlass.cli.arguments import fitting_inputs, parse_labels, parse_money, parse_seconds, parse_webhook
    from windlass.cli.desk import Order
    from windlass.cli.session import desk

    told_to = parse_webhook(webhook, webhook_secret_file)
    async with desk(at) as ask:
        plan = await _plan(ask, recipe)
        order = Order(
            plan,
            fitting_inputs(inputs or [], plan),
            key=key,
            labels=parse_labels(label or []) or None,
            priority=priority,
            deadline_s=parse_seconds("--deadline", deadline),
            ttl_s=parse_seconds("--ttl", ttl),
            webhook=told_to,
            budget=None if budget is None else parse_money("--budget", budget),
        )
        job_id, is_new = await ask.submit(order)
        if not (wait or follow):
            if at.as_json:
                at.screen.document({"id": job_id, "is_new": is_new})
            else:
                at.screen.line(str(job_id))
                at.screen.note(f"watch it: windlass watch {job_id}" if is_new else "the key is known: the same job")
            return Exit.DONE
        at.screen.note(f"job {job_id}")
        try:
            timeout_s = parse_seconds("--timeout", within)
            return await _finish(at, ask, job_id, is_new=is_new, is_live=follow, timeout_s=timeout_s)
        except asyncio.CancelledError:
            at.screen.note(f"detached; the job goes on. Come back: windlass watch {job_id}")
            raise


async def _plan(ask: Any, recipe: str) -> Any:
    """The newest plan of a recipe; a slip in the name is answered with the names that there are."""
    import difflib

    from windlass.core.errors import NotFound

    try:
        return await ask.recipe(recipe)
    except NotFound as error:
        known = [one.name for one in await ask.recipes()]
        close = difflib.get_close_matches(recipe, known, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        error.remedy = f"{hint}Known recipes: {', '.join(known)}" if known else "None is registered: start a worker"
        raise


async def _finish(at: Ambient, ask: Any, job_id: UUID, *, is_new: bool, is_live: bool, timeout_s: float | None) -> Exit:
    """Wait for the end, print the result or the failure, and say how it ended by the exit code."""
    from windlass.cli.live import follow
    from windlass.cli.wire import error_json
    from windlass.core.states import JobState
    from windlass.pure.job_failed import fault_frames

    if is_live and not at.as_json:
        state = await follow(ask, job_id, at.screen.err, hint="Ctrl-C leaves; the job goes on")
    else:
        state = await ask.wait(job_id, timeout_s)
    code = exit_for_job(state)
    output = await ask.result(job_id) if state is JobState.COMPLETED else None
    failure = None if state is JobState.COMPLETED else await ask.failure(job_id)
    if at.as_json:
        told = error_json(failure)
        at.screen.document({"id": job_id, "is_new": is_new, "state": state, "output": output, "error": told})
    elif failure is None:
        at.screen.document(output)
    else:
        at.screen.error(failure.message, failure.remedy, int(code), fault_frames(failure.fault))
    return code
