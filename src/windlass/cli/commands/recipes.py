"""The recipe commands: list, show, register and roll back."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command, group_of

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = group_of("Recipes: list, show, register the recipes of an app or file.", listing)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "show", panel=PANEL, has_json=True)(show)
    command(group, "register", panel=PANEL, has_json=True, is_local=True)(register)
    command(group, "rollback", panel=PANEL, has_json=True, is_local=True)(rollback)
    app.add_typer(group, name="recipes", rich_help_panel=PANEL)


async def listing(at: Ambient) -> None:
    """List every recipe with its newest version."""
    from windlass.cli.marks import when
    from windlass.cli.session import document
    from windlass.recipe.description import first_line

    if (told := await document(at, "/recipes")) is None:
        return
    found = told["items"]
    at.screen.table(
        ("recipe", "version", "registered", "plan", "description"),
        [
            (
                one["name"],
                str(one["version"]),
                when(one["created_at"]),
                one["plan"],
                first_line(one["description"]),
            )
            for one in found
        ],
    )
    if not found:
        at.screen.note("no recipes. Register some: windlass recipes register APP, or start a worker")


async def show(
    at: Ambient,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Its name.")],
    version: Annotated[int | None, typer.Option(help="Show this version. Default: the newest.")] = None,
) -> None:
    """Show a recipe's description, inputs and graph."""
    from urllib.parse import quote

    import msgspec

    from windlass.cli.picture import boxes_of_recipe
    from windlass.cli.screen import one_line, picture
    from windlass.cli.session import document

    query = [] if version is None else [("version", str(version))]
    if (found := await document(at, f"/recipes/{quote(recipe, safe='')}", query)) is None:
        return
    at.screen.line(f"{found['name']}  {found['plan']}")
    for line in found["description"].splitlines():
        at.screen.line(one_line(line))
    required = found["inputs_schema"].get("required", [])
    for name, schema in found["inputs_schema"].get("properties", {}).items():
        kind = schema.get("type", "any")
        default = "" if "default" not in schema else f" = {msgspec.json.encode(schema['default']).decode()}"
        at.screen.line(f"input {name}: {kind}{default}{' (required)' if name in required else ''}")
    at.screen.line(picture(boxes_of_recipe(found["nodes"])))


async def register(
    at: Ambient,
    target: Annotated[list[str], typer.Argument(metavar="APP...", help="module, module:app, file.py or file.yaml.")],
    newest: Annotated[bool, typer.Option("--newest", help="Make older registered plans the newest again.")] = False,
) -> None:
    """Register every recipe of an app or file. A new plan becomes the newest version; a known plan keeps its number."""
    from windlass.cli.session import opened
    from windlass.recipe.app import load

    app = load(*target)
    async with opened(at) as windlass:
        versions = await windlass.register(*app.recipes.values(), newest=newest)
    if at.as_json:
        at.screen.document({"registered": versions})
        return
    for name, version in versions.items():
        at.screen.line(f"{name} version {version}")


async def rollback(
    at: Ambient,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Its name.")],
    version: Annotated[
        int | None,
        typer.Argument(metavar="[VERSION]", help="The version to make the newest. Default: the version before."),
    ] = None,
) -> None:
    """Put an earlier version of a recipe in force: new jobs use it, under a new number. Open jobs keep their plans."""
    from windlass.cli.session import opened
    from windlass.engine import recipes

    async with opened(at) as windlass:
        wanted, found = await recipes.rollback(windlass.db, recipe, version)
    if at.as_json:
        at.screen.document({"recipe": recipe, "version": found.version, "rolled_back_to": wanted})
        return
    at.screen.line(f"{recipe} version {found.version}, the plan of version {wanted}")
