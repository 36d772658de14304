"""What every command has in common: the options it shares, how it is run, and how it fails.

A command is an ordinary function whose first argument is an `Ambient`. `command` adds the shared options to it, runs
it (a coroutine function on a loop of its own), and turns what it returns or raises into an exit code.
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
    str | None, typer.Option("--database", metavar="URL", help="PostgreSQL to use.", rich_help_panel="Shared options")
]
Home = Annotated[
    str | None,
    typer.Option("--home", metavar="DIR", help="Folder of the embedded server.", rich_help_panel="Shared options"),
]
Server = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="Ask this server, not a database.", rich_help_panel="Shared options"),
]
# Of commands that work on this machine: taken, so that the refusal can say why, and not offered.
HiddenServer = Annotated[str | None, typer.Option("--server", hidden=True)]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.", rich_help_panel="Shared options")]
Json = Annotated[bool, typer.Option("--json", help="JSON for programs.", rich_help_panel="Shared options")]


@dataclass
class Ambient:
    """What surrounds a command: shared options, settings and the screen."""

    database: str | None = None
    home: str | None = None
    server: str | None = None
    debug: bool = False
    as_json: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The settings that hold for this command."""
        return load({"database_url": self.database, "home": self.home, "server": self.server})

    @cached_property
    def screen(self) -> Any:
        """The two output streams; rich is imported on first use, so that `--help` stays quick."""
        from windlass.cli.screen import Screen

        return Screen()

    def run_extension(self, name: str, act: Callable[[Any], Any]) -> None:
        """Do what a command of an extension does, and end with its exit code."""
        from windlass.cli.extending import with_parts

        raise typer.Exit(perform(self, lambda: with_parts(self, name, act)))


_SHARED = {"database": Database, "home": Home, "server": Server, "debug": Debug}
# What the server and its client are made of; the rest of Windlass runs without.
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
    """Add a function to an app as a command; see the module's docstring. A local one has no use for a server."""

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


def _not_remote(name: str) -> BadSetting:
    return BadSetting(
        f"`{name}` works on this machine and cannot use --server",
        remedy="Leave --server out; the commands that look at jobs and act on them take it",
    )


def _texts(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they are, if all of their text is text: what the locale could not decode is refused."""
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.isascii() and text.encode(errors="replace").decode() != text:
                raise BadSetting(
                    f"{name}: {text!a} is not text in this locale's encoding",
                    remedy="Use a UTF-8 locale such as LC_ALL=C.UTF-8, or pass the text in a file",
                )
    return values


def perform(at: Ambient, act: Callable[[], Any]) -> int:
    """Run a command's body; the answer is the exit code."""
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
        # The reader has seen enough (`| head`). Python would complain again when it closes the stream.
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
        remedy = "This is a fault of Windlass: please report it, with what --debug shows"
        return _tell(at, f"{type(error).__name__}: {error}", remedy, Exit.BROKEN)
    return int(found) if found is not None else Exit.DONE


def _frames(error: WindlassError) -> str:
    """Where an author's own code raised the exception that is reported as a refusal."""
    from windlass.recipe.user_code import frames_text

    is_authors = isinstance(error, BadRecipe | BadSetting) and not isinstance(error.__cause__, WindlassError | OSError)
    return frames_text(error.__cause__) if is_authors else ""


def _tell(at: Ambient, message: str, remedy: str | None, code: Exit, frames: str = "") -> int:
    if at.debug:
        traceback.print_exc()
    at.screen.error(message, remedy, int(code), "" if at.debug else frames)
    return code
