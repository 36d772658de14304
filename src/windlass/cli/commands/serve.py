"""Processes: everything in one (`up`), a worker, the engine alone, one recipe to its end, the demo."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.submit import PANEL, Inputs
from windlass.cli.exits import Exit

TARGETS = "module, module:app, file.py or file.yaml."
Queues = Annotated[list[str] | None, typer.Option("--queue", "-q", help="A queue to serve; may be repeated.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", "-c", min=1, help="How many steps at once.")]

Drain = Annotated[
    str | None, typer.Option("--drain", metavar="TIME", help="How long handlers may go on when it is stopped (30s).")
]
Listen = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Where the API listens; port 0 takes a free one.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "up", panel=PANEL, is_local=True)(up)
    command(app, "demo", panel=PANEL, is_local=True)(demo)
    command(app, "run", panel=PANEL, has_json=True, is_local=True)(run)
    command(app, "worker", panel=PANEL, is_local=True)(worker)
    group = typer.Typer(help="Processes for others: the API alone, the engine's loops alone.", no_args_is_help=True)
    command(group, "api", panel=PANEL, is_local=True)(api)
    command(group, "engine", panel=PANEL, is_local=True)(engine)
    app.add_typer(group, name="serve", rich_help_panel=PANEL)


def up(
    at: Ambient,
    app: Annotated[list[str] | None, typer.Argument(metavar="[APP]...", help=TARGETS + " Else the examples.")] = None,
    queue: Queues = None,
    concurrency: Concurrency = None,
    listen: Listen = None,
    drain: Drain = None,
    is_demo: Annotated[bool, typer.Option("--demo", help="The same as `windlass demo`.")] = False,
    no_demo: Annotated[bool, typer.Option("--no-demo", help="Begin without the demo job and its worker.")] = False,
) -> Exit:
    """Start PostgreSQL, the engine, a worker and the API, here and now. Ctrl-C stops them; the data stays."""
    from windlass.cli import serving

    _drain(at, drain)
    with_demo = False if no_demo else None
    main = serving.demo(at) if is_demo else serving.up(at, app, queue, concurrency, listen, with_demo=with_demo)
    return serving.start(at, main)


def demo(at: Ambient) -> Exit:
    """Run an example recipe to its end, with its graph, and stop."""
    from windlass.cli import serving

    return serving.start(at, serving.demo(at))


def run(
    at: Ambient,
    target: Annotated[str, typer.Argument(metavar="TARGET[:RECIPE]", help="file.py:recipe, module:recipe, file.yaml.")],
    inputs: Inputs = None,
    app: Annotated[list[str] | None, typer.Option("--app", help="Where a file.yaml finds its handlers.")] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key gives the same job.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Start afresh, also if an earlier run was cut short.")] = False,
) -> Exit:
    """Run one recipe to its end in this process. Needs no server. If it is cut short, running it again goes on."""
    from windlass.cli import serving

    return serving.start(at, serving.run(at, target, app or [], inputs or [], key=key, is_new=new))


def worker(
    at: Ambient,
    app: Annotated[list[str], typer.Argument(metavar="APP...", help=TARGETS)],
    queue: Queues = None,
    concurrency: Concurrency = None,
    drain: Drain = None,
    no_loops: Annotated[bool, typer.Option("--no-loops", help="Leave timers and leases to other processes.")] = False,
) -> Exit:
    """Run the steps of an app until told to stop. SIGTERM or Ctrl-C drains; once more ends at once."""
    from windlass.cli import serving

    _drain(at, drain)
    return serving.start(at, serving.worker(at, app, queue, concurrency, with_loops=not no_loops))


def _drain(at: Ambient, drain: str | None) -> None:
    """Let the flag win over the setting."""
    if drain is not None:
        from dataclasses import replace

        from windlass.cli.arguments import parse_seconds

        at.settings = replace(at.settings, drain_s=parse_seconds("--drain", drain) or 0.0)


def engine(at: Ambient) -> Exit:
    """Run the engine's loops alone: timers, leases, deadlines, retention."""
    from windlass.cli import serving

    return serving.start(at, serving.worker(at, None, None, None, with_loops=True))


def api(at: Ambient, listen: Listen = None) -> Exit:
    """Run the API alone. Any number may run on one database. SIGTERM drains: requests under way are finished."""
    from windlass.cli import serving

    return serving.start(at, serving.serve_api(at, listen))


def greet(at: Ambient) -> int:
    """What `windlass` alone says: how things stand, and what to do next."""
    from windlass.cli import serving
    from windlass.cli.command import perform

    return perform(at, lambda: serving.greet(at))
