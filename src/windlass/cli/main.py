"""The command line: every command by name, and nothing else. What they do is in `commands/`.

`windlass --help` must stay quick, so the modules imported here import neither rich nor the engine; a command does
that when it runs.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from windlass.cli.command import Ambient, Database, Debug, Home, Server
from windlass.cli.commands import (
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
    providers,
    recipes,
    serve,
    submit,
    watch,
    webhooks,
)
from windlass.cli.ending import leave
from windlass.cli.exits import table
from windlass.cli.extending import ExtendedGroup

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
webhooks.add_to(app)
providers.add_to(app)
keys.add_to(app)
audit.add_to(app)
recipes.add_to(app)
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
    """Durable graphs of steps on PostgreSQL: a recipe becomes a finished job, whatever dies."""
    ctx.obj = Ambient(database=database_url, home=home, server=server, debug=debug)
    if version:
        database.print_version()
        raise typer.Exit(0)
    if ctx.invoked_subcommand is None:
        raise typer.Exit(serve.greet(ctx.obj))


def main() -> None:
    """The console script."""
    # A shell's `>&-` leaves no stream at all; what is said there is for nobody.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        app(prog_name="windlass")
    except SystemExit as ending:
        leave(ending.code if isinstance(ending.code, int) else int(ending.code is not None))
        raise


if __name__ == "__main__":
    main()
