"""`windlass submit`: submits a job, and waits for it on request."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit

PANEL = "Run"
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="K=V", help="k=v, k=@file or @file.json. A value that is not JSON is text."),
]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "submit", panel=PANEL, has_json=True)(submit)


async def submit(
    at: Ambient,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="The name of a registered recipe.")],
    inputs: Inputs = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key gives the same job.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="K=V", help="A label of the job; repeatable.")] = None,
    priority: Annotated[int, typer.Option(help="Higher runs first, -100 to 100.")] = 0,
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help="The job ends as TIMEOUT after this time: 10m.")
    ] = None,
    ttl: Annotated[
        str | None, typer.Option(metavar="TIME", help="The job ends as EXPIRED after this time (24h).")
    ] = None,
    budget: Annotated[str | None, typer.Option(metavar="AMOUNT", help="The budget of the job: 5.00.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended, and print its result.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Like --wait, with a live graph.")] = False,
    within: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="The maximum time of --wait.")] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL that is notified when the job has ended.")
    ] = None,
    webhook_secret_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file with whsec_…, the secret that signs the webhook.")
    ] = None,
) -> Exit:
    """Submit a job and print its id."""
    import asyncio

    from windlass.cli.arguments import parse_labels, parse_money, parse_seconds, parse_webhook, typed_inputs
    from windlass.cli.session import client

    told_to = parse_webhook(webhook, webhook_secret_file)
    async with client(at) as ask:
        schema = (await _recipe(ask, recipe))["inputs_schema"]
        order = {
            "labels": parse_labels(label or []),
            "priority": priority,
            "deadline": parse_seconds("--deadline", deadline),
            "ttl": parse_seconds("--ttl", ttl),
            "webhook": told_to,
            "budget": None if budget is None else parse_money("--budget", budget),
        }
        document = await _submitted(ask, schema, recipe, order, typed_inputs(inputs or [], schema), key)
        job_id, is_new = UUID(document["job_id"]), document["is_new"]
        if not (wait or follow):
            if at.as_json:
                at.screen.document(document)
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


async def _recipe(ask: Any, recipe: str) -> Any:
    """Return the newest version of a recipe. For an unknown name, the error lists the known names."""
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


async def _submitted(
    ask: Any, schema: dict[str, Any], recipe: str, order: dict[str, Any], given: dict[str, Any], key: str | None
) -> Any:
    """Submit the job and return its document. If its inputs are refused, the error lists the inputs of the recipe."""
    from windlass.client.flows import submit
    from windlass.core.errors import BadInput

    try:
        return await ask.run(submit(ask.sources, recipe, order, given, key))
    except BadInput as error:
        known = ", ".join(f"{name}=…" for name in schema.get("properties", {})) or "none"
        error.remedy = error.remedy or f"The inputs of {recipe}: {known}"
        raise


async def _finish(at: Ambient, ask: Any, job_id: UUID, *, is_new: bool, is_live: bool, timeout_s: float | None) -> Exit:
    """Wait for the end, print the result or the failure, and return the exit code for it."""
    from windlass.cli.concluding import conclude
    from windlass.cli.live import follow

    if is_live and not at.as_json:
        await follow(ask, job_id, at.screen.err, hint="Ctrl-C leaves; the job goes on")
    else:
        await ask.job(job_id).wait(timeout_s)
    return await conclude(at, ask, job_id, is_new=is_new)
