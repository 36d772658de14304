"""`windlass notes`."""

import typer

from windlass.extension import Parts
from windlass.extension.command import run

app = typer.Typer(help="Notes that callers keep.", no_args_is_help=True)


@app.command()
def add(ctx: typer.Context, caller: str, text: str) -> None:
    """Keep a note for a caller."""
    run(ctx, "notes", lambda parts: _add(parts, caller, text))


@app.command("list")
def list_(ctx: typer.Context, caller: str) -> None:
    """A caller's notes."""
    run(ctx, "notes", lambda parts: _list(parts, caller))


async def _add(parts: Parts, caller: str, text: str) -> None:
    [row] = await parts.fetch("note_add", caller, text)
    parts.count("notes_written_total", how="command")
    typer.echo(row["id"])


async def _list(parts: Parts, caller: str) -> None:
    for row in await parts.fetch("note_all", caller):
        typer.echo(f"{row['id']} {row['text']}")
