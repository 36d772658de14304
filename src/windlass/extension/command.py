"""Building blocks for the commands of an extension: typer's own functions, and `run` for access to the installation.

app = typer.Typer(help="Notes.")

@app.command()
def add(ctx: typer.Context, text: str) -> None:
    run(ctx, "notes", lambda parts: parts.execute("note_add", text))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from windlass.extension.facade import Parts


class _Context(Protocol):
    def find_root(self) -> Any:
        """Return the context of `windlass` itself."""
        ...


def run(ctx: _Context, name: str, act: Callable[[Parts], Awaitable[Any]]) -> None:
    """Open the configured installation, act on it, and end with an exit code.

    `--database`, `--home` and the settings name the installation. An error of Windlass is reported as in every command:
    the problem, and what to do.
    """
    ctx.find_root().obj.run_extension(name, act)
