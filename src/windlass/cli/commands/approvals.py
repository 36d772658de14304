"""The approval commands: list what waits for people, show what exactly will run, approve or reject it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command, group_of

PANEL = "Act"
Approval = Annotated[str, typer.Argument(metavar="APPROVAL", help="The id of an approval, or its last letters.")]
Reason = Annotated[str, typer.Option(help="A reason, for the requester and the record.")]
Note = Annotated[str, typer.Option(help="A note for the other people who decide.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = group_of("Approvals: what waits for people, and their votes.", listing)
    command(group, "list", panel=PANEL, has_json=True)(listing)
    command(group, "show", panel=PANEL, has_json=True)(show)
    command(group, "approve", panel=PANEL, has_json=True)(approve)
    command(group, "reject", panel=PANEL, has_json=True)(reject)
    app.add_typer(group, name="approvals", rich_help_panel=PANEL)


async def listing(
    at: Ambient,
    state: Annotated[
        list[str] | None, typer.Option(help="PENDING, USED, REJECTED, EXPIRED …; repeatable. Default: PENDING.")
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only those that you requested.")] = False,
    decidable: Annotated[bool, typer.Option("--decidable", help="Only those that you may decide now.")] = False,
) -> None:
    """List the approvals that you requested or may decide."""
    from windlass.cli.session import document

    chosen = [("state", one.upper()) for one in state or ["PENDING"]]
    chosen += [("mine", "true")] if mine else []
    chosen += [("decidable", "true")] if decidable else []
    if (told := await document(at, "/approvals", chosen)) is None:
        return
    found = told["items"]
    at.screen.table(
        ("id", "state", "recipe", "asks", "requester", "votes", "left", "you"),
        [
            (
                one["id"],
                one["state"],
                one["recipe"],
                one["question"] or one["rule"] or "",
                one["requester"],
                f"{_given(one)}/{one['need']}",
                _left(one["left_s"]),
                "may decide" if one["may_decide"] else "",
            )
            for one in found
        ],
    )
    if not found:
        at.screen.note("no approvals: nothing waits for people")


async def show(at: Ambient, approval: Approval) -> None:
    """Show what exactly will run, who may decide, and the votes so far."""
    from windlass.cli.session import client

    async with client(at) as ask:
        told = await ask.call("GET", f"/approvals/{await _id(ask, approval)}")
    if at.as_json:
        at.screen.document(told)
        return
    for line in _lines(told):
        at.screen.line(line)


async def approve(at: Ambient, approval: Approval, reason: Reason = "", note: Note = "") -> None:
    """Approve. Once enough people have approved, it runs, once."""
    await _decide(at, approval, "approve", reason, note)


async def reject(at: Ambient, approval: Approval, reason: Reason = "", note: Note = "") -> None:
    """Reject. One rejection ends the approval."""
    await _decide(at, approval, "reject", reason, note)


async def _decide(at: Ambient, text: str, action: str, reason: str, note: str) -> None:
    from windlass.cli.session import client

    async with client(at) as ask:
        path = f"/approvals/{await _id(ask, text)}/{action}"
        # The client does not send this again after a lost answer: the second answer would be a refusal.
        told = await ask.call("POST", path, {"reason": reason, "note": note}, is_safe=False)
    if at.as_json:
        at.screen.document(told)
        return
    if told["state"] == "PENDING":
        at.screen.line(f"counted: {_given(told)} of {told['need']} have approved")
    else:
        at.screen.line(f"{told['id']} is {told['state']}")


async def _id(ask: Any, text: str) -> str:
    """Return the id that the text names: a whole id, or the end of the id of an open approval."""
    from windlass.core.errors import BadInput, NotFound

    if len(text) in (32, 36):
        return text
    items = (await ask.call("GET", "/approvals", query=[("state", "PENDING"), ("limit", "200")]))["items"]
    fits = [str(one["id"]) for one in items if str(one["id"]).endswith(text.lower())]
    if len(fits) > 1:
        raise BadInput(f"more than one approval ends with {text!r}", remedy="Give more of the id")
    if not fits:
        raise NotFound(f"no open approval ends with {text!r}", remedy="`windlass approvals` lists them")
    return fits[0]


def _given(one: dict[str, Any]) -> int:
    return sum(vote["choice"] == "approve" for vote in one["votes"])


def _left(seconds: float) -> str:
    if seconds <= 0:
        return ""
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= unit:
            return f"{int(seconds // unit)}{name}"
    return f"{int(seconds)}s"


def _lines(one: dict[str, Any]) -> list[str]:
    import json

    who = " and ".join(_people(group) for group in one["who"])
    step = f", step {one['step']}" if one["step"] else ""
    asks = one["question"] or f"the rule {one['rule']}: {one['reason']}"
    lines = [
        f"{one['id']}  {one['state']}",
        f"asks       {asks}",
        f"runs       {one['recipe']} (plan {one['plan'][:12]}){step}",
        f"job        {one['job_id']}  {one['job_status']}",
        f"requester  {one['requester']}",
        f"inputs     {json.dumps(one['inputs'])[:2000]}",
        *([f"shows      {json.dumps(one['show'])[:2000]}"] if one["show"] else []),
        *([f"labels     {json.dumps(one['labels'])}"] if one["labels"] else []),
        f"needs      {one['need']} of {who}",
        f"expires    {one['expires_at']}  {_left(one['left_s'])}",
        f"subject    {one['subject']}",
    ]
    for vote in one["votes"]:
        lines.append(f"vote       {vote['caller']} {vote['choice']}s {vote['reason']}".rstrip())
    if one["state"] == "PENDING":
        lines.append("you        may decide" if one["may_decide"] else f"you        may not decide: {one['why_not']}")
    return lines


def _people(group: dict[str, Any]) -> str:
    names = [*(f"role {role}" for role in group["roles"]), *group["callers"]]
    return " or ".join(names) if names else "everybody with the scope approvals:decide"
