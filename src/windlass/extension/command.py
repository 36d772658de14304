"""What the commands of an extension are made of: typer's own functions, and `run` for what needs the installation.

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
        """The context of `windlass` itself."""
        ...


def run(ctx: _Context, name: str, act: Callable[[Parts], Awaitable[Any]]) -> None:
    """Open the installation that `--database`, `--home` and the settings name, act on it, and end with an exit code.

    An error of Windlass is told as every command tells it: what is wrong, and what to do.
    """
    ctx.find_root().obj.run_extension(name, act)
