"""The commands that run processes: `up` for everything in one, `worker`, `serve`, `run` and `demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.submit import PANEL, Inputs
from windlass.cli.exits import Exit

TARGETS = "module, module:app, file.py or file.yaml."
Queues = Annotated[list[str] | None, typer.Option("--queue", "-q", help="A queue to serve; repeatable.")]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", "-c", min=1, help="The number of steps that run at once.")
]

Drain = Annotated[
    str | None, typer.Option("--drain", metavar="TIME", help="The time for running handlers after a stop (30s).")
]
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen", metavar="HOST:PORT", help="The address that the API listens on; port 0 takes a free port."
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "up", panel=PANEL, is_local=True)(up)
    command(app, "demo", panel=PANEL, is_local=True)(demo)
    command(app, "run", panel=PANEL, has_json=True, is_local=True)(run)
    command(app, "worker", panel=PANEL, is_local=True)(worker)
    group = typer.Typer(help="Single processes: only the API, or only the engine's loops.", no_args_is_help=True)
    command(group, "api", panel=PANEL, is_local=True)(api)
    command(group, "engine", panel=PANEL, is_local=True)(engine)
    app.add_typer(group, name="serve", rich_help_panel=PANEL)


def up(
    at: Ambient,
    app: Annotated[
        list[str] | None, typer.Argument(metavar="[APP]...", help=TARGETS + " Default: the examples.")
    ] = None,
    queue: Queues = None,
    concurrency: Concurrency = None,
    listen: Listen = None,
    drain: Drain = None,
    is_demo: Annotated[bool, typer.Option("--demo", help="Like `windlass demo`.")] = False,
    no_demo: Annotated[bool, typer.Option("--no-demo", help="Start without the demo job and its worker.")] = False,
    no_policy: Annotated[
        bool, typer.Option("--no-policy", help="Do not publish the starter policy, which allows every job.")
    ] = False,
) -> Exit:
    """Start PostgreSQL, the engine, a worker and the API in this process. Ctrl-C stops them; the data stays."""
    from windlass.cli import serving

    _drain(at, drain)
    with_demo = False if no_demo else None
    if is_demo:
        return serving.start(at, serving.demo(at))
    main = serving.up(at, app, queue, concurrency, listen, with_demo=with_demo, with_policy=not no_policy)
    return serving.start(at, main)


def demo(at: Ambient) -> Exit:
    """Run an example recipe to its end, show its graph, and stop."""
    from windlass.cli import serving

    return serving.start(at, serving.demo(at))


def run(
    at: Ambient,
    target: Annotated[str, typer.Argument(metavar="TARGET[:RECIPE]", help="file.py:recipe, module:recipe, file.yaml.")],
    inputs: Inputs = None,
    app: Annotated[
        list[str] | None, typer.Option("--app", help="The module or file with the handlers of a file.yaml.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same key gives the same job.")] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new job, even if an earlier run was interrupted.")
    ] = False,
) -> Exit:
    """Run one recipe to its end in this process, without a server. After an interruption, run it again to continue."""
    from windlass.cli import serving

    return serving.start(at, serving.run(at, target, app or [], inputs or [], key=key, is_new=new))


def worker(
    at: Ambient,
    app: Annotated[list[str], typer.Argument(metavar="APP...", help=TARGETS)],
    queue: Queues = None,
    concurrency: Concurrency = None,
    drain: Drain = None,
    no_loops: Annotated[
        bool, typer.Option("--no-loops", help="Run only the worker; other processes run the engine's loops.")
    ] = False,
) -> Exit:
    """Run the steps of an app until a signal stops it. SIGTERM or Ctrl-C drains; a second signal ends it at once."""
    from windlass.cli import serving

    _drain(at, drain)
    return serving.start(at, serving.worker(at, app, queue, concurrency, with_loops=not no_loops))


def _drain(at: Ambient, drain: str | None) -> None:
    """Replace the setting by the value of the flag, if the user passed it."""
    if drain is not None:
        from dataclasses import replace

        from windlass.cli.arguments import parse_seconds

        at.settings = replace(at.settings, drain_s=parse_seconds("--drain", drain) or 0.0)


def engine(at: Ambient) -> Exit:
    """Run the engine's loops alone: timers, leases, deadlines, retention."""
    from windlass.cli import serving

    return serving.start(at, serving.worker(at, None, None, None, with_loops=True))


def api(at: Ambient, listen: Listen = None) -> Exit:
    """Run the API alone. Any number may run on one database. SIGTERM drains: running requests finish."""
    from windlass.cli import serving

    return serving.start(at, serving.serve_api(at, listen))


def greet(at: Ambient) -> int:
    """Print the state of the installation and the next commands, for `windlass` without a command."""
    from windlass.cli import serving
    from windlass.cli.command import perform

    return perform(at, lambda: serving.greet(at))
