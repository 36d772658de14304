"""The commands about external work: providers, budgets, and events for jobs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB

PANEL = "External work"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "send", panel=PANEL, has_json=True)(send)
    group = typer.Typer(help="Providers: steps that hold or wait for places, and forgotten work.", no_args_is_help=True)
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
    body: Annotated[str, typer.Option(metavar="JSON", help="The event's body, as JSON; @file reads a file.")] = "{}",
    id: Annotated[str | None, typer.Option(metavar="ID", help="The event's id; a repeated id changes nothing.")] = None,
) -> None:
    """Send an event to a job. It resumes a step that waits for it, now or later."""
    from uuid import uuid4

    from windlass.cli.arguments import parse_json
    from windlass.cli.find import find
    from windlass.cli.session import client

    wish = {"name": name, "body": parse_json("--body", body), "id": id or str(uuid4())}
    async with client(at) as ask:
        job_id = await find(ask, job)
        taken = await ask.call("POST", f"/jobs/{job_id}/events", wish)
    if at.as_json:
        at.screen.document(taken)
        return
    words = {"delivered": "delivered", "kept": "kept until a step waits for it", "already": "was sent before"}
    at.screen.line(f"{job_id} {name}: {words.get(taken['status'], taken['status'])}")


async def listing(at: Ambient) -> None:
    """List every provider: its slots, its waiting steps, and whether it answers."""
    from windlass.cli.session import document

    if (listed := await document(at, "/providers")) is None:
        return
    found = listed["items"]
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
    """Show one provider: the steps that hold its slots, and why it gets no requests, if so."""
    from urllib.parse import quote

    from windlass.cli.session import document

    if (one := await document(at, f"/providers/{quote(name, safe='')}")) is None:
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
    """Compare our open work with the provider's list, and report work that either side lacks. Changes nothing."""
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
            work["external_id"] or "",
            work["key"] or "",
            work["status"] or "",
            work["since"] or "",
            work["note"],
        )
        for whose, work in ((whose, _stray(one)) for whose, one in strays)
    ]
    at.screen.table(("what", "external id", "key", "status", "since", "note"), rows)
    for remark in found.remarks:
        at.screen.note(remark)
    if not strays:
        at.screen.note("nothing was forgotten")


def _stray(one: Any) -> dict[str, Any]:
    from windlass.documents.values import rfc3339

    return {
        "external_id": one.external_id,
        "key": None if one.key is None else str(one.key),
        "status": None if one.status is None else str(one.status),
        "since": None if one.since is None else rfc3339(one.since),
        "note": one.note or "",
    }


async def budgets(at: Ambient) -> None:
    """List every budget: its limit, the amount spent, and the amount reserved by running attempts."""
    from windlass.cli.session import document

    if (listed := await document(at, "/budgets")) is None:
        return
    found = listed["items"]
    columns = ("scope", "name", "most", "spent", "reserved", "left")
    at.screen.table(columns, [tuple(str(one[column]) for column in columns) for one in found])
    if not found:
        at.screen.note("no budgets. Set one: windlass budgets set caller ada 25.00")


Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="job, recipe or caller.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A job's id, or the name of a recipe or caller.")]


async def set_budget(
    at: Ambient,
    scope: Scope,
    name: Name,
    most: Annotated[str, typer.Argument(metavar="AMOUNT", help="An amount, such as 25.00.")],
) -> None:
    """Set a budget's limit. Steps that wait for money continue at once if it suffices."""
    from windlass.cli.arguments import parse_money
    from windlass.cli.session import client

    amount = parse_money("AMOUNT", most)
    async with client(at) as ask:
        found = await ask.call("PUT", _budget(scope, await _name(ask, scope, name)), {"most": str(amount)})
    if at.as_json:
        at.screen.document(found)
        return
    at.screen.line(f"{scope} {found['name']}: {found['most']}, of which {found['left']} is left")


async def remove_budget(at: Ambient, scope: Scope, name: Name) -> None:
    """Remove a budget."""
    from windlass.cli.session import client

    async with client(at) as ask:
        name = await _name(ask, scope, name)
        await ask.remove_budget(scope, name)
    if at.as_json:
        at.screen.document({"scope": scope, "name": name, "removed": True})
        return
    at.screen.line(f"{scope} {name}: no budget")


async def _name(ask: Any, scope: str, name: str) -> str:
    """Return the name of a budget; a job may be named by a prefix of its id or `@last`, as in other commands."""
    from windlass.cli.find import find
    from windlass.core.errors import BadInput

    if scope not in ("job", "recipe", "caller"):
        raise BadInput(f"there is no budget of a {scope!r}", remedy="One of: job, recipe, caller")
    return str(await find(ask, name)) if scope == "job" else name


def _budget(scope: str, name: str) -> str:
    from urllib.parse import quote

    return f"/budgets/{scope}/{quote(name, safe='')}"
