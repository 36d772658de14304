"""Keys: make one, list them, revoke one."""

from __future__ import annotations

from typing import Annotated

import typer

from windlass.cli.command import Ambient, command

PANEL = "Set up"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Keys for the API: make one, list them, revoke one.", no_args_is_help=True)
    command(group, "create", panel=PANEL, has_json=True)(create)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "revoke", panel=PANEL, has_json=True)(revoke)
    app.add_typer(group, name="keys", rich_help_panel=PANEL)


async def create(
    at: Ambient,
    caller: Annotated[str, typer.Option(metavar="NAME", help="Who will use it: the owner of the jobs it makes.")],
    name: Annotated[str | None, typer.Option(help="What it is for; else the caller's name.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="jobs:read, jobs:write, audit:read, priority:high, admin; may be repeated. Else the first two."
        ),
    ] = None,
    tier: Annotated[str | None, typer.Option(help="Which of the configured limits it has.")] = None,
    kind: Annotated[str, typer.Option("--type", help="user or service.")] = "user",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it is good: 90d. Else for good.")
    ] = None,
) -> None:
    """Make a key. It is printed once, alone on standard output, and kept nowhere."""
    from windlass.cli.arguments import parse_seconds
    from windlass.cli.desk import KeyWish
    from windlass.cli.session import desk

    wish = KeyWish(caller, name or caller, kind, tier, scope or (), parse_seconds("--expires", expires))
    async with desk(at) as ask:
        text, kept = await ask.create_key(wish)
    if at.as_json:
        at.screen.document(kept | {"key": text})
        return
    at.screen.line(text)
    at.screen.note(f"key {kept['id']} of {kept['caller']}, with {', '.join(kept['scopes'])}. It is not shown again")


async def listing(
    at: Ambient, caller: Annotated[str | None, typer.Option(metavar="NAME", help="Only this caller's.")] = None
) -> None:
    """The keys that there are, by their public ids; the keys themselves are known to nobody."""
    from windlass.cli.session import desk

    async with desk(at) as ask:
        found = await ask.keys(caller)
    if at.as_json:
        at.screen.document(found)
        return
    at.screen.table(
        ("id", "caller", "name", "scopes", "created", "last used", "good"),
        [
            (
                key["id"],
                key["caller"],
                key["name"],
                ",".join(key["scopes"]),
                key["created_at"],
                key["last_used_at"] or "",
                "yes" if key["is_live"] else "revoked" if key["revoked_at"] else "expired",
            )
            for key in found
        ],
    )
    if not found:
        at.screen.note("no keys. Make one: windlass keys create --caller NAME")


async def revoke(
    at: Ambient, key_id: Annotated[str, typer.Argument(metavar="ID", help="Its public id; `keys list` has it.")]
) -> None:
    """End a key's life at once, on every server. Streams that it opened are closed."""
    from windlass.cli.session import desk
    from windlass.core.errors import BadInput

    if len(key_id) > 40:
        # Somebody who pastes a whole key here has it in their shell's history; it must not reach a log as well.
        raise BadInput("that is a whole key, not a key's id", remedy="Give its 12 letters after wl_")
    async with desk(at) as ask:
        await ask.revoke_key(key_id)
    if at.as_json:
        at.screen.document({"id": key_id, "revoked": True})
        return
    at.screen.line(f"{key_id} revoked")
