"""The key commands: create, list and revoke."""

from __future__ import annotations

from typing import Annotated, Any

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
    caller: Annotated[str, typer.Option(metavar="NAME", help="The caller that uses the key and owns its jobs.")],
    name: Annotated[str | None, typer.Option(help="A name for the key. Default: the caller's name.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="jobs:read, jobs:write, audit:read, approvals:decide, policy:read, policy:write, priority:high or "
            "admin; repeatable. Default: the first two."
        ),
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="A role of the caller, by which approvals may name it; repeatable.")
    ] = None,
    tier: Annotated[str | None, typer.Option(help="The tier of limits.")] = None,
    kind: Annotated[str, typer.Option("--type", help="user or service.")] = "user",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="The key's lifetime: 90d. Default: unlimited.")
    ] = None,
) -> None:
    """Create a key. The key is printed once, alone on standard output, and never stored."""
    from windlass.cli.arguments import parse_seconds
    from windlass.cli.session import client

    expires_in = parse_seconds("--expires", expires)
    given = {"tier": tier, "scopes": scope or None, "roles": role or None, "expires_in": expires_in}
    wish: dict[str, Any] = {"caller": caller, "name": name or caller, "caller_type": kind}
    wish |= {option: value for option, value in given.items() if value is not None}
    async with client(at) as ask:
        kept = await ask.call("POST", "/keys", wish, is_safe=False)
    if at.as_json:
        at.screen.document(kept)
        return
    at.screen.line(kept["key"])
    at.screen.note(f"key {kept['id']} of {kept['caller']}, with {', '.join(kept['scopes'])}. It is not shown again")


async def listing(
    at: Ambient, caller: Annotated[str | None, typer.Option(metavar="NAME", help="Only keys of this caller.")] = None
) -> None:
    """List the keys by their public ids. The text of a key is not stored."""
    from windlass.cli.session import document

    if (told := await document(at, "/keys", [] if caller is None else [("caller", caller)])) is None:
        return
    found = told["items"]
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
    at: Ambient, key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's public id, as in `keys list`.")]
) -> None:
    """Revoke a key at once, on every server. Its open streams are closed."""
    from windlass.cli.session import client
    from windlass.core.errors import BadInput

    if len(key_id) > 40:
        # A pasted key is already in the shell's history; it must not reach a log as well.
        raise BadInput("this is a whole key, not a key's id", remedy="Give its 12 letters after wl_")
    async with client(at) as ask:
        await ask.revoke_key(key_id)
    if at.as_json:
        at.screen.document({"id": key_id, "revoked": True})
        return
    at.screen.line(f"{key_id} revoked")
