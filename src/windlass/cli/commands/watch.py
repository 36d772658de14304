"""The commands that draw graphs: a job's graph while it runs, and any graph for other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB, PANEL
from windlass.cli.exits import Exit, exit_for_job


class Format(StrEnum):
    """The output formats of `graph`."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "watch", panel=PANEL, has_json=True)(watch)
    command(app, "graph", panel=PANEL, has_json=True)(graph)


async def watch(at: Ambient, job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)] = "@last") -> Exit:
    """Show a job's graph, live until it ends. Ctrl-C leaves the job running. With --json, one event per line."""
    import asyncio

    from windlass.cli.find import find
    from windlass.cli.live import follow
    from windlass.cli.session import client
    from windlass.cli.watching import events

    async with client(at) as ask:
        job_id = await find(ask, job)
        try:
            if at.as_json:
                async for event, _ in events(ask, job_id, follow=True):
                    at.screen.record(event)
                return exit_for_job(await ask.job(job_id).status())
            return exit_for_job(await follow(ask, job_id, at.screen.out, hint="Ctrl-C leaves; the job goes on"))
        except asyncio.CancelledError:
            at.screen.note(f"detached; the job goes on. Come back: windlass watch {job_id}")
            raise


async def graph(
    at: Ambient,
    target: Annotated[str, typer.Argument(metavar="RECIPE|JOB", help="A recipe's name, or a job.")],
    form: Annotated[Format, typer.Option("--format", help="The output format.")] = Format.TREE,
) -> None:
    """Print the graph of a recipe or a job."""
    from datetime import UTC, datetime

    from windlass.cli import diagram
    from windlass.cli.find import find
    from windlass.cli.picture import boxes_of_job, boxes_of_recipe
    from windlass.cli.screen import picture
    from windlass.cli.session import client
    from windlass.core.errors import BadInput, NotFound

    async with client(at) as ask:
        try:
            document, name = await ask.recipe(target), target
            boxes = boxes_of_recipe(document["nodes"])
        except NotFound as unknown:
            try:
                handle = ask.job(await find(ask, target))
                document, name = await handle.graph(), (await handle.view()).recipe
            except (NotFound, BadInput):
                raise NotFound(
                    f"there is no recipe and no job {target!r}",
                    remedy="See `windlass recipes list` and `windlass jobs`",
                ) from unknown
            boxes = boxes_of_job(document["nodes"], datetime.now(UTC))
    match Format.JSON if at.as_json else form:
        case Format.TREE:
            at.screen.line(picture(boxes))
        case Format.MERMAID:
            at.screen.line(diagram.mermaid(boxes))
        case Format.DOT:
            at.screen.line(diagram.dot(boxes, name))
        case Format.JSON:
            at.screen.document(document)
