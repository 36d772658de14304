"""Finds the commands of extensions, when Windlass has no command of a name or when the help lists all commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import typer
from typer.core import TyperGroup

from windlass.core.errors import WindlassError

PANEL = "Extensions"


class ExtendedGroup(TyperGroup):
    """The group `windlass`: the built-in commands first, then the commands of each extension under its name.

    A built-in command is found without reading the entry points, because that visits every installed package.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        from windlass.extension.installed import names

        own = super().list_commands(ctx)
        return [*own, *sorted(names() - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        from windlass.extension.installed import names

        return _command(cmd_name) if cmd_name in names() else None


def _command(name: str) -> Any:
    """Return an extension's commands, or None. The command of a broken extension reports the error when it is run."""
    from windlass.app.extending import load
    from windlass.app.settings import load as load_settings

    try:
        one = next((one for one in load(load_settings()) if one.name == name), None)
        if one is None or one.extension.commands is None:
            return None
        commands = one.attribute(one.extension.commands)
        if not isinstance(commands, typer.Typer):
            raise one.broken(f"{one.extension.commands} is a {type(commands).__name__}, and must be a typer.Typer")
    except WindlassError as error:
        return _broken(name, error)
    found: Any = typer.main.get_group(commands)
    found.name, found.rich_help_panel = name, PANEL
    found.short_help = found.help or one.extension.about
    return found


def _broken(name: str, error: WindlassError) -> Any:
    from windlass.cli.command import Ambient, perform

    app = typer.Typer(rich_markup_mode=None)

    @app.command(name, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def tell(ctx: typer.Context) -> None:
        """Cannot be loaded: run it to see why."""

        def act() -> None:
            raise error

        raise typer.Exit(perform(ctx.find_root().obj or Ambient(), act))

    found: Any = typer.main.get_command(app)
    found.rich_help_panel = PANEL
    return found


async def with_parts(at: Any, name: str, act: Callable[[Any], Awaitable[Any]]) -> Any:
    """Call `act` with the parts of an extension, on the installation that the command line names."""
    from windlass.app.extended import extended
    from windlass.app.extending import folders, load
    from windlass.cli.session import opened
    from windlass.store.migrate import check

    found = load(at.settings)
    async with opened(at) as windlass:
        await check(windlass.db, folders(found))
        with extended(windlass, found) as parts:
            return await act(parts[name])
