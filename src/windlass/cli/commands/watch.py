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
    from windlass.cli.session import find_job, opened
    from windlass.cli.wire import event_json

    async with opened(at) as windlass:
        job_id = await find_job(windlass, job)
        handle = windlass.job(job_id)
        try:
            if at.as_json:
                async for event in handle.events():
                    at.screen.record(event_json(job_id, event))
                return exit_for_job(await handle.status())
            return exit_for_job(await follow(windlass.db, job_id, at.screen.out, hint="Ctrl-C leaves; the job goes on"))
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
    from windlass.cli.session import find_job, opened
    from windlass.cli.snapshot import take
    from windlass.core.errors import BadInput, NotFound
    from windlass.engine import recipes

    async with opened(at) as windlass:
        try:
            plan = await recipes.latest(windlass.db, target)
            boxes = boxes_of(plan)
        except NotFound as unknown:
            try:
                snapshot = await take(windlass.db, await find_job(windlass, target))
            except (NotFound, BadInput):
                raise NotFound(
                    f"there is no recipe and no job {target!r}",
                    remedy="See `windlass recipes list` and `windlass jobs`",
                ) from unknown
            plan, boxes = snapshot.plan, snapshot.boxes
    match Format.JSON if at.as_json else form:
        case Format.TREE:
            at.screen.line(picture(boxes))
        case Format.MERMAID:
            at.screen.line(diagram.mermaid(boxes))
        case Format.DOT:
            at.screen.line(diagram.dot(boxes, plan.recipe))
        case Format.JSON:
            at.screen.document(diagram.as_json(boxes, plan.recipe))
