"""`windlass webhooks`: shows the delivery of a job's webhook, and sends it again."""

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
    redeliver: Annotated[bool, typer.Option("--redeliver", help="Send the webhook (again) now.")] = False,
) -> None:
    """Show the delivery of a job's webhook."""
    from windlass.cli.find import find
    from windlass.cli.session import client

    async with client(at) as ask:
        path = f"/jobs/{await find(ask, job)}/webhook"
        found = await (ask.call("POST", f"{path}/redeliver") if redeliver else ask.call("GET", path))
    if at.as_json:
        at.screen.document(found)
        return
    for name, value in found.items():
        if value is not None:
            at.screen.line(f"{name:<12} {value}")
