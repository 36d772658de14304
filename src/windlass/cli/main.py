"""The command line: registers every command by name. The modules of `commands/` implement the commands.

`windlass --help` must stay quick, so the modules imported here import neither rich nor the engine. A command imports
them when it runs.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from windlass.cli.command import Ambient, Database, Debug, Home, Server
from windlass.cli.commands import (
    approvals,
    audit,
    console,
    control,
    database,
    dead_letters,
    doctor,
    extensions,
    jobs,
    keys,
    logs,
    policy,
    providers,
    recipes,
    serve,
    submit,
    watch,
    webhooks,
)
from windlass.cli.exits import table
from windlass.cli.extending import ExtendedGroup
from windlass.cli.shutdown import leave

app = typer.Typer(
    name="windlass",
    cls=ExtendedGroup,
    help="Durable graphs of steps on PostgreSQL.",
    epilog=table(),
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    rich_markup_mode="rich",
)

# The order of registration is the order of the help.
serve.add_to(app)
submit.add_to(app)
jobs.add_to(app)
watch.add_to(app)
logs.add_to(app)
control.add_to(app)
dead_letters.add_to(app)
approvals.add_to(app)
webhooks.add_to(app)
providers.add_to(app)
keys.add_to(app)
audit.add_to(app)
recipes.add_to(app)
policy.add_to(app)
database.add_to(app)
doctor.add_to(app)
extensions.add_to(app)
console.add_to(app)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    database_url: Database = None,
    home: Home = None,
    server: Server = None,
    debug: Debug = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Durable graphs of steps on PostgreSQL: a recipe becomes a finished job, even if processes die."""
    ctx.obj = Ambient(database=database_url, home=home, server=server, debug=debug)
    if version:
        database.print_version()
        raise typer.Exit(0)
    if ctx.invoked_subcommand is None:
        raise typer.Exit(serve.greet(ctx.obj))


def main() -> None:
    """The console script."""
    # A shell's `>&-` leaves the process without a stream; output to it is discarded.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        app(prog_name="windlass")
    except SystemExit as ending:
        leave(ending.code if isinstance(ending.code, int) else int(ending.code is not None))
        raise


if __name__ == "__main__":
    main()
