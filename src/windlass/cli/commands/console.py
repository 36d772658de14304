"""The console commands: show where it is, print a link into it, and build it if the package came without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit

PANEL = "Set up"
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="DIR", help="The folder of the console's sources, if not this installation's."),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="The web console: show where its files are, build them.", no_args_is_help=True)
    command(group, "status", panel=PANEL, has_json=True, is_local=True)(status)
    command(group, "link", panel=PANEL, is_local=True)(link)
    command(group, "build", panel=PANEL, is_local=True)(build)
    app.add_typer(group, name="console", rich_help_panel=PANEL)


def status(at: Ambient) -> None:
    """Show which console a server of this installation serves."""
    from windlass.api.console_files import find_console

    found = find_console()
    if at.as_json:
        at.screen.document({"console": "lite" if found is None else "full", "folder": found and str(found)})
    elif found is None:
        at.screen.line("the lite page: no built console was found; `windlass console build` makes one")
    else:
        at.screen.line(f"the console in {found}")


async def link(at: Ambient) -> None:
    """Print a link that opens the console of this machine's server, signed in. It works once, within ten minutes."""
    from windlass.app.console_link import console_token
    from windlass.app.first_key import SERVER_FILE
    from windlass.cli.session import opened
    from windlass.core.errors import BadSetting

    try:
        server = (at.settings.home / SERVER_FILE).read_text(encoding="utf-8").strip()
    except OSError:
        raise BadSetting(
            f"no server of {at.settings.home} is running", remedy="Start one with `windlass up`, or name its --home"
        ) from None
    async with opened(at) as windlass:
        token = await console_token(windlass)
    at.screen.line(f"{server}/console/" + ("" if token is None else f"?token={token}"))


def build(at: Ambient, source: From = None) -> Exit:
    """Build the console with Node 20.19 or newer. A running server shows it from then on."""
    import shutil
    import tempfile

    from windlass.api.console_files import cache_folder, checkout_folder, packaged_sources
    from windlass.app.console_build import NODE_PACKAGE, NotBuilt
    from windlass.app.console_build import build as make
    from windlass.core.errors import BadSetting

    checkout = checkout_folder()
    in_place = None if source is not None or checkout is None else checkout / "web"
    web = source or in_place or packaged_sources()
    if web is None or not (web / "package-lock.json").is_file():
        raise BadSetting(
            "the console's sources are not here" if web is None else f"{web} does not hold the console's sources",
            remedy="Name the folder `web` of Windlass's sources with --from",
        )
    try:
        if in_place is not None and checkout is not None:
            made = checkout / "build" / "console"
            make(in_place, made, at.screen.note)
        else:
            made = cache_folder()
            made.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="windlass-console-") as room:
                # npm writes beside the sources, and this user may lack permission to write there.
                shutil.copytree(web, Path(room, "web"), ignore=shutil.ignore_patterns("node_modules"))
                make(Path(room, "web"), made, at.screen.note)
    except NotBuilt as why:
        raise BadSetting(
            f"the console was not built: {why}",
            remedy=f"Install Node 20.19 or newer, or `pip install '{NODE_PACKAGE}'` beside Windlass, and try again",
        ) from why
    at.screen.line(f"the console is in {made}")
    return Exit.DONE
