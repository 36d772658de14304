"""Webhooks: how far the word of a job's end has come, and sending it again."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB

PANEL = "Look"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "webhooks", panel=PANEL, has_json=True)(webhooks)


async def webhooks(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    redeliver: Annotated[bool, typer.Option("--redeliver", help="Send it (again), now.")] = False,
) -> None:
    """How far the word of a job's end has come."""
    from windlass.cli.session import desk

    async with desk(at) as ask:
        found = await ask.webhook(await ask.find(job), redeliver=redeliver)
    if at.as_json:
        at.screen.document(found)
        return
    for name, value in found.items():
        if value is not None:
            at.screen.line(f"{name:<12} {value}")
