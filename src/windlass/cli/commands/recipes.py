"""Recipes: what is registered, one of them, and registering more."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command, perform

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Recipes: list them, show one, register those of an app or file.", no_args_is_help=False)
    group.callback(invoke_without_command=True)(default)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "show", panel=PANEL, has_json=True)(show)
    command(group, "register", panel=PANEL, has_json=True, is_local=True)(register)
    command(group, "rollback", panel=PANEL, has_json=True, is_local=True)(rollback)
    app.add_typer(group, name="recipes", rich_help_panel=PANEL)


def default(ctx: typer.Context) -> None:
    """Recipes: list them, show one, register those of an app or file."""
    if ctx.invoked_subcommand is None:
        at = ctx.find_root().obj or Ambient()
        raise typer.Exit(perform(at, lambda: listing(at)))


async def listing(at: Ambient) -> None:
    """Every recipe with its newest version."""
    from windlass.cli.session import desk
    from windlass.cli.wire import recipe_json
    from windlass.recipe.description import first_line

    async with desk(at) as ask:
        found = await ask.recipes()
    if at.as_json:
        at.screen.document([recipe_json(one) for one in found])
        return
    at.screen.table(
        ("recipe", "version", "registered", "plan", "description"),
        [
            (
                one.name,
                str(one.version),
                one.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                one.plan_hash,
                first_line(one.description),
            )
            for one in found
        ],
    )
    if not found:
        at.screen.note("no recipes. Register some: windlass recipes register APP, or start a worker")


async def show(
    at: Ambient,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Its name.")],
    version: Annotated[int | None, typer.Option(help="Not the newest, but this version.")] = None,
) -> None:
    """A recipe's description, inputs and graph. With --json, its description and whole plan."""
    import msgspec

    from windlass.cli.graph import boxes_of
    from windlass.cli.screen import one_line, picture
    from windlass.cli.session import desk

    async with desk(at) as ask:
        found = await ask.described(recipe, version)
    plan = found.plan
    if at.as_json:
        at.screen.document({**msgspec.json.decode(plan.canonical), "description": found.description})
        return
    at.screen.line(f"{plan.recipe}  {plan.hash}")
    for line in found.description.splitlines():
        at.screen.line(one_line(line))
    required = plan.inputs_schema.get("required", [])
    for name, schema in plan.inputs_schema.get("properties", {}).items():
        kind = schema.get("type", "any")
        default = "" if "default" not in schema else f" = {msgspec.json.encode(schema['default']).decode()}"
        at.screen.line(f"input {name}: {kind}{default}{' (required)' if name in required else ''}")
    at.screen.line(picture(boxes_of(plan)))


async def register(
    at: Ambient,
    target: Annotated[list[str], typer.Argument(metavar="APP...", help="module, module:app, file.py or file.yaml.")],
    newest: Annotated[bool, typer.Option("--newest", help="Put plans in force that were registered before.")] = False,
) -> None:
    """Register every recipe of an app or file. A new plan becomes the newest version, a known one keeps its version."""
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
        int | None, typer.Argument(metavar="[VERSION]", help="The version to put in force; else the one before.")
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
