"""Work that others do: providers, budgets, and telling jobs what they wait for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB

PANEL = "Work done elsewhere"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "send", panel=PANEL, has_json=True)(send)
    group = typer.Typer(help="Providers: who has their places, who waits, what was forgotten.", no_args_is_help=True)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "show", panel=PANEL, has_json=True)(show)
    command(group, "sweep", panel=PANEL, has_json=True, is_local=True)(sweep)
    app.add_typer(group, name="providers", rich_help_panel=PANEL)
    money = typer.Typer(help="Budgets: how much a job, a recipe or a caller may spend.", no_args_is_help=True)
    command(money, "list", panel=PANEL, has_json=True)(budgets)
    command(money, "set", panel=PANEL, has_json=True)(set_budget)
    command(money, "remove", panel=PANEL, has_json=True)(remove_budget)
    app.add_typer(money, name="budgets", rich_help_panel=PANEL)


async def send(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The event that a step waits for.")],
    body: Annotated[str, typer.Option(metavar="JSON", help="What the step gets; @file reads one.")] = "{}",
    id: Annotated[str | None, typer.Option(metavar="ID", help="Yours; the same one again changes nothing.")] = None,
) -> None:
    """Send a job an event that one of its steps waits for, or will."""
    from windlass.cli.arguments import parse_json
    from windlass.cli.session import desk

    value = parse_json("--body", body)
    async with desk(at) as ask:
        job_id = await ask.find(job)
        status = await ask.send_event(job_id, name, value, id)
    if at.as_json:
        at.screen.document({"id": job_id, "event": name, "status": status})
        return
    words = {"delivered": "delivered", "kept": "kept until a step waits for it", "already": "was sent before"}
    at.screen.line(f"{job_id} {name}: {words.get(status, status)}")


async def listing(at: Ambient) -> None:
    """Every provider: its places, its line, and whether it answers."""
    from windlass.cli.session import desk

    async with desk(at) as ask:
        found = await ask.providers()
    if at.as_json:
        at.screen.document(found)
        return
    at.screen.table(
        ("provider", "held", "waiting", "rate", "breaker", "next", "error"),
        [
            (
                one["name"],
                f"{one['held']}/{one['concurrency']}",
                str(one["waiting"]),
                f"{one['rate']:g}/s",
                one["breaker"],
                "" if one["first"] is None else f"{one['first']['step']} of {one['first']['job_id']}",
                one["error"] or "",
            )
            for one in found
        ],
    )
    if not found:
        at.screen.note("no providers. Set WINDLASS_PROVIDERS to a providers.yaml, and start a worker")


async def show(
    at: Ambient, name: Annotated[str, typer.Argument(metavar="PROVIDER", help="As in providers.yaml.")]
) -> None:
    """One provider: who has its places, and why it is asked for nothing, if it is."""
    from windlass.cli.session import desk
    from windlass.core.errors import NotFound

    async with desk(at) as ask:
        found = [one for one in await ask.providers() if one["name"] == name]
    if not found:
        raise NotFound(f"there is no provider {name}", remedy="`windlass providers list` shows them")
    one: dict[str, Any] = found[0]
    if at.as_json:
        at.screen.document(one)
        return
    known = {
        "provider": one["name"],
        "places": f"{one['held']} of {one['concurrency']} held",
        "waiting": one["waiting"],
        "rate": f"{one['rate']:g} requests per second",
        "breaker": one["breaker"] + (f" after {one['failures']} failures" if one["failures"] else ""),
        "error": one["error"],
        "paused": one["paused_until"] and f"until {one['paused_until']}: it said that it is busy",
        "next": one["first"] and f"{one['first']['step']} of job {one['first']['job_id']}",
    }
    for word, value in known.items():
        if value is not None:
            at.screen.line(f"{word:<10} {value}")
    at.screen.table(
        ("holder", "step", "attempt", "since"),
        [(one["job_id"], one["step"], str(one["attempt"]), one["since"] or "") for one in one["holders"]],
    )


async def sweep(
    at: Ambient, name: Annotated[str, typer.Argument(metavar="PROVIDER", help="As in providers.yaml.")]
) -> None:
    """Compare our open work with the provider's own list: what we forgot, and what it forgot. Changes nothing."""
    from windlass.cli.session import opened
    from windlass.providers.sweep import sweep as compare

    async with opened(at) as windlass:
        found = await compare(windlass.db, windlass.providers[name])
    strays = [(whose, one) for whose in ("forgotten_by_us", "forgotten_by_them") for one in getattr(found, whose)]
    if at.as_json:
        at.screen.document(
            {"provider": name, "remarks": list(found.remarks)}
            | {whose: [_stray(one) for kind, one in strays if kind == whose] for whose in dict(strays)}
        )
        return
    rows = [
        (
            whose.replace("_", " "),
            told["external_id"] or "",
            told["key"] or "",
            told["status"] or "",
            told["since"] or "",
            told["note"],
        )
        for whose, told in ((whose, _stray(one)) for whose, one in strays)
    ]
    at.screen.table(("what", "external id", "key", "status", "since", "note"), rows)
    for remark in found.remarks:
        at.screen.note(remark)
    if not strays:
        at.screen.note("nothing was forgotten")


def _stray(one: Any) -> dict[str, Any]:
    from windlass.cli.wire import moment

    return {
        "external_id": one.external_id,
        "key": None if one.key is None else str(one.key),
        "status": None if one.status is None else str(one.status),
        "since": moment(one.since),
        "note": one.note or "",
    }


async def budgets(at: Ambient) -> None:
    """Every budget: how much may be spent, was spent, and is reserved by attempts under way."""
    from windlass.cli.session import desk

    async with desk(at) as ask:
        found = await ask.budgets()
    if at.as_json:
        at.screen.document(found)
        return
    columns = ("scope", "name", "most", "spent", "reserved", "left")
    at.screen.table(columns, [tuple(str(one[column]) for column in columns) for one in found])
    if not found:
        at.screen.note("no budgets. Set one: windlass budgets set caller ada 25.00")


Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="job, recipe or caller.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A job, a recipe's name or a caller's.")]


async def set_budget(
    at: Ambient, scope: Scope, name: Name, most: Annotated[str, typer.Argument(metavar="AMOUNT", help="Such as 25.00.")]
) -> None:
    """Say how much may be spent in all. Steps that wait for money go on at once if it is enough."""
    from windlass.cli.arguments import parse_money
    from windlass.cli.session import desk

    amount = parse_money("AMOUNT", most)
    async with desk(at) as ask:
        found = await ask.set_budget(scope, await _name(ask, scope, name), amount)
    if at.as_json:
        at.screen.document(found)
        return
    at.screen.line(f"{scope} {found['name']}: {found['most']}, of which {found['left']} is left")


async def remove_budget(at: Ambient, scope: Scope, name: Name) -> None:
    """Lift a limit."""
    from windlass.cli.session import desk

    async with desk(at) as ask:
        name = await _name(ask, scope, name)
        await ask.remove_budget(scope, name)
    if at.as_json:
        at.screen.document({"scope": scope, "name": name, "removed": True})
        return
    at.screen.line(f"{scope} {name}: no budget")


async def _name(ask: Any, scope: str, name: str) -> str:
    """A job may be named as everywhere else."""
    from windlass.core.errors import BadInput

    if scope not in ("job", "recipe", "caller"):
        raise BadInput(f"there is no budget of a {scope!r}", remedy="One of: job, recipe, caller")
    return str(await ask.find(name)) if scope == "job" else name
