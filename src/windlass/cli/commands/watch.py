"""Pictures: a job's graph while it runs, and any graph for other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB, PANEL
from windlass.cli.exits import Exit, exit_for_job


class Format(StrEnum):
    """What `graph` can write."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "watch", panel=PANEL, has_json=True)(watch)
    command(app, "graph", panel=PANEL, has_json=True)(graph)


async def watch(at: Ambient, job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)] = "@last") -> Exit:
    """A job's graph, live until it ends. Ctrl-C leaves; the job goes on. With --json, its events, one a line."""
    import asyncio

    from windlass.cli.live import follow
    from windlass.cli.session import desk
    from windlass.cli.wire import event_json

    async with desk(at) as ask:
        job_id = await ask.find(job)
        try:
            if at.as_json:
                async for event, _ in ask.events(job_id, follow=True):
                    at.screen.record(event_json(job_id, event))
                return exit_for_job(await ask.state(job_id))
            return exit_for_job(await follow(ask, job_id, at.screen.out, hint="Ctrl-C leaves; the job goes on"))
        except asyncio.CancelledError:
            at.screen.note(f"detached; the job goes on. Come back: windlass watch {job_id}")
            raise


async def graph(
    at: Ambient,
    target: Annotated[str, typer.Argument(metavar="RECIPE|JOB", help="A recipe's name, or a job.")],
    form: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.TREE,
) -> None:
    """The graph of a recipe or of a job."""
    from windlass.cli import diagram
    from windlass.cli.graph import boxes_of
    from windlass.cli.screen import picture
    from windlass.cli.session import desk
    from windlass.core.errors import BadInput, NotFound

    async with desk(at) as ask:
        try:
            boxes, name = boxes_of(await ask.recipe(target)), target
        except NotFound as unknown:
            try:
                snapshot = await ask.snapshot(await ask.find(target))
            except (NotFound, BadInput):
                raise NotFound(
                    f"there is no recipe and no job {target!r}",
                    remedy="See `windlass recipes list` and `windlass jobs`",
                ) from unknown
            boxes, name = snapshot.boxes, snapshot.job.recipe
    match Format.JSON if at.as_json else form:
        case Format.TREE:
            at.screen.line(picture(boxes))
        case Format.MERMAID:
            at.screen.line(diagram.mermaid(boxes))
        case Format.DOT:
            at.screen.line(diagram.dot(boxes, name))
        case Format.JSON:
            at.screen.document(diagram.as_json(boxes, name))
