"""Shared behaviour of all commands: common options, execution and error reporting.

A command is an ordinary function whose first argument is an `Ambient`. `command` adds the shared options and runs the
function; a coroutine function runs on a new event loop. The return value or the exception becomes an exit code.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, get_type_hints

import typer

from windlass.app.settings import Settings, load
from windlass.cli.exits import Exit, exit_for_error
from windlass.core.errors import BadRecipe, BadSetting, WindlassError

Database = Annotated[
    str | None, typer.Option("--database", metavar="URL", help="Use this PostgreSQL.", rich_help_panel="Shared options")
]
Home = Annotated[
    str | None,
    typer.Option("--home", metavar="DIR", help="Folder of the embedded server.", rich_help_panel="Shared options"),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", help="Use this server instead of a database.", rich_help_panel="Shared options"
    ),
]
# Commands that work only on this machine accept the option but hide it, so that their refusal can say why.
HiddenServer = Annotated[str | None, typer.Option("--server", hidden=True)]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.", rich_help_panel="Shared options")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel="Shared options")]


@dataclass
class Ambient:
    """The environment of a command: shared options, settings and the screen."""

    database: str | None = None
    home: str | None = None
    server: str | None = None
    debug: bool = False
    as_json: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The settings, with the shared options of this command applied."""
        return load({"database_url": self.database, "home": self.home, "server": self.server})

    @cached_property
    def screen(self) -> Any:
        """The two output streams; rich is imported on first use, so that `--help` stays quick."""
        from windlass.cli.screen import Screen

        return Screen()

    def run_extension(self, name: str, act: Callable[[Any], Any]) -> None:
        """Run `act`, a command of an extension, with the extension's parts, and exit with its code."""
        from windlass.cli.extending import with_parts

        raise typer.Exit(perform(self, lambda: with_parts(self, name, act)))


_SHARED = {"database": Database, "home": Home, "server": Server, "debug": Debug}
# Packages that only the server and the client need, with the extra that installs each.
_EXTRAS = {
    "cryptography": "service",
    "fastapi": "service",
    "httpcore": "service",
    "httptools": "service",
    "httpx": "client",
    "prometheus_client": "service",
    "uvicorn": "service",
}


def command(
    app: typer.Typer, name: str, *, panel: str, has_json: bool = False, is_local: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Add a function to an app as a command. A local command works on this machine and refuses `--server`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        hints = get_type_hints(function, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name])
            for parameter in list(inspect.signature(function).parameters.values())[1:]
        ]
        shared = _SHARED | ({"as_json": Json} if has_json else {}) | ({"server": HiddenServer} if is_local else {})
        extra = [
            inspect.Parameter(
                key,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if key in ("database", "home", "server") else False,
                annotation=annotation,
            )
            for key, annotation in shared.items()
        ]
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]

        def run(ctx: typer.Context, **values: Any) -> None:
            outer: Ambient = ctx.find_root().obj or Ambient()
            given = {key: values.pop(key) for key in shared}
            at = Ambient(**{key: value or getattr(outer, key) for key, value in given.items()})

            def act() -> Any:
                if is_local and at.server is not None:
                    raise _not_remote(ctx.command_path)
                return function(at, **_texts(values))

            raise typer.Exit(perform(at, act))

        run.__signature__ = inspect.Signature([context, *keyword, *extra])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (context, *keyword, *extra)}
        run.__doc__ = function.__doc__
        run.__name__ = function.__name__
        app.command(name, rich_help_panel=panel)(run)
        return function

    return decorate


def group_of(about: str, default: Callable[[Ambient], Any]) -> typer.Typer:
    """Return a group of commands that runs `default` when the user names no command."""
    group = typer.Typer(help=about, no_args_is_help=False)

    def run(ctx: typer.Context) -> None:
        if ctx.invoked_subcommand is None:
            at = ctx.find_root().obj or Ambient()
            raise typer.Exit(perform(at, lambda: default(at)))

    group.callback(invoke_without_command=True, help=about)(run)
    return group


def _not_remote(name: str) -> BadSetting:
    return BadSetting(
        f"`{name}` works on this machine and cannot use --server",
        remedy="Leave --server out; only commands about jobs and the API take it",
    )


def _texts(values: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments unchanged, or raise BadSetting for text that the locale's encoding could not decode."""
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.isascii() and text.encode(errors="replace").decode() != text:
                raise BadSetting(
                    f"{name}: {text!a} is not text in this locale's encoding",
                    remedy="Use a UTF-8 locale such as LC_ALL=C.UTF-8, or pass the text in a file",
                )
    return values


def perform(at: Ambient, act: Callable[[], Any]) -> int:
    """Run a command's body and return the exit code."""
    try:
        found = act()
        if inspect.iscoroutine(found):
            found = asyncio.run(found)
        sys.stdout.flush()
    except WindlassError as error:
        said = "; ".join([error.message, *getattr(error, "__notes__", [])])
        return _tell(at, said, error.remedy, exit_for_error(error), _frames(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`| head`). Python would raise again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except OSError as error:
        return _tell(at, f"the system refused: {error}", "Check the disk, the folder and its permissions", Exit.BROKEN)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
            remedy = f"pip install 'windlass[{extra}]'"
            return _tell(at, f"this needs {error.name}, which is not installed", remedy, Exit.USAGE)
        from windlass.store.outage import outage_of

        if (outage := outage_of(error)) is not None:
            return _tell(at, outage.reason, outage.remedy, Exit.UNREACHABLE)
        remedy = "This is a bug in Windlass: please report it with the output of --debug"
        return _tell(at, f"{type(error).__name__}: {error}", remedy, Exit.BROKEN)
    return int(found) if found is not None else Exit.DONE


def _frames(error: WindlassError) -> str:
    """Return the frames of the recipe author's code that caused a refusal, or no text."""
    from windlass.recipe.user_code import frames_text

    is_authors = isinstance(error, BadRecipe | BadSetting) and not isinstance(error.__cause__, WindlassError | OSError)
    return frames_text(error.__cause__) if is_authors else ""


def _tell(at: Ambient, message: str, remedy: str | None, code: Exit, frames: str = "") -> int:
    if at.debug:
        traceback.print_exc()
    at.screen.error(message, remedy, int(code), "" if at.debug else frames)
    return code
