"""The policy commands about an installation: publish, roll back, list, show and simulate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command

Note = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it is kept with the version.")]
NewOnly = Annotated[bool, typer.Option("--new-only", help="Do not judge jobs again that were submitted before.")]
Version = Annotated[int | None, typer.Option(metavar="NO", help="Ask this version. Default: the one in force.")]


def add_to(group: typer.Typer, panel: str) -> None:
    """Register the commands in the group `policy`."""
    command(group, "publish", panel=panel, has_json=True)(publish)
    command(group, "rollback", panel=panel, has_json=True)(rollback)
    command(group, "list", panel=panel, has_json=True)(listing)
    command(group, "show", panel=panel, has_json=True)(show)
    command(group, "simulate", panel=panel, has_json=True)(simulate)
    command(group, "replay", panel=panel, has_json=True)(replay)
    command(group, "shadow", panel=panel, has_json=True)(shadow)


async def publish(
    at: Ambient,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Policies; each replaces the document that has its name."),
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the document. Default: the file's, without its end.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Remove all other documents.")] = False,
    new_only: NewOnly = False,
    note: Note = None,
    untested: Annotated[
        str | None, typer.Option(metavar="REASON", help="Publish although tests fail or are missing.")
    ] = None,
    signature: Annotated[
        str | None, typer.Option(metavar="TEXT", help="An Ed25519 signature of the hash, in base64.")
    ] = None,
    expected: Annotated[
        int | None, typer.Option("--expect", metavar="NO", help="Publish only if this version is in force now.")
    ] = None,
) -> None:
    """Run the tests of policies, and put them in force. Afterwards no job starts that they deny, on any process."""
    from windlass.cli.commands.policy import text_of
    from windlass.cli.session import client
    from windlass.core.errors import BadSetting

    if name is not None and len(files) > 1:
        raise BadSetting("--name goes with one file", remedy="Publish the files one by one")
    documents = {name or document_name(file): text_of(file) for file in files}
    if len(documents) != len(files):
        raise BadSetting("two files have the same name", remedy="Publish one of them with --name")
    given = {"note": note, "untested": untested, "signature": signature, "expected": expected}
    wish = {
        "documents": [{"name": each, "text": text} for each, text in documents.items()],
        "only": only,
        "new_only": new_only,
        **{option: value for option, value in given.items() if value is not None},
    }
    async with client(at) as ask:
        found = await ask.call("POST", "/policy/publish", wish, is_safe=expected is None)
    _show_published(at, found)


async def rollback(
    at: Ambient,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version to publish again.")],
    new_only: NewOnly = False,
    note: Note = None,
) -> None:
    """Publish the content of an earlier version again, under a new number. Its tests are not run."""
    from windlass.cli.session import client

    wish = {"version": version, "new_only": new_only, **({} if note is None else {"note": note})}
    async with client(at) as ask:
        found = await ask.call("POST", "/policy/rollback", wish)
    _show_published(at, found)


async def listing(
    at: Ambient, limit: Annotated[int, typer.Option(min=1, max=200, help="How many versions.")] = 20
) -> None:
    """List the published versions, the newest first. The first one is in force."""
    from windlass.cli.marks import when
    from windlass.cli.session import document

    if (told := await document(at, "/policy/snapshots", [("limit", str(limit))])) is None:
        return
    rows = [
        (
            str(one["version"]),
            ",".join(one["documents"]),
            when(one["published_at"]),
            one["published_by"],
            one["hash"][:12],
            _told(one),
        )
        for one in told["items"]
    ]
    at.screen.table(("version", "documents", "published", "by", "hash", "note"), rows)
    if not rows:
        at.screen.note("no policy was published, so every job may run. Begin: windlass policy example strict")


async def show(
    at: Ambient,
    version: Annotated[int | None, typer.Argument(metavar="[VERSION]", help="Default: the one in force.")] = None,
    document: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the text of this document, and nothing else.")
    ] = None,
) -> None:
    """Show the policy in force or a version: who published it, and its documents."""
    from windlass.cli.marks import when
    from windlass.cli.session import client
    from windlass.core.errors import NotFound

    async with client(at) as ask:
        state = await ask.call("GET", "/policy")
        no = version or state["version"]
        found = await ask.call("GET", f"/policy/snapshots/{no}") if no else None
    if found is None:
        raise NotFound("no policy was published", remedy="Publish one: windlass policy publish FILE")
    texts = {one["name"]: one["text"] for one in found["texts"]}
    if document is not None:
        if document not in texts:
            raise NotFound(f"version {no} has no document {document[:100]!r}: {', '.join(texts)}")
        at.screen.line(texts[document].rstrip())
        return
    if at.as_json:
        at.screen.document(found)
        return
    is_in_force = no == state["version"]
    at.screen.line(f"version    {no}{', in force' if is_in_force else ''}")
    at.screen.line(f"hash       {found['hash']}")
    at.screen.line(f"published  {when(found['published_at'])} by {found['published_by']}")
    if told := _told(found):
        at.screen.line(f"note       {told}")
    for name, text in texts.items():
        at.screen.line(f"\n# {name}")
        at.screen.line(text.rstrip())
    if is_in_force and state["problem"]:
        at.screen.note(f"every job is denied: {state['problem']}")


async def simulate(
    at: Ambient,
    request: Annotated[str, typer.Argument(metavar="REQUEST.json", help="The request; - reads standard input.")],
    version: Version = None,
) -> None:
    """Show the verdict that a request would get now from the installation's policy. Nothing is recorded."""
    from windlass.cli.commands.policy import request_of, show_verdict, show_would
    from windlass.cli.session import client

    async with client(at) as ask:
        told = await ask.simulate_policy(request_of(request), version)
    if at.as_json:
        at.screen.document(told)
        return
    show_would(at, told)
    show_verdict(at, told)


async def replay(
    at: Ambient,
    policy: Annotated[str, typer.Argument(metavar="FILE|VERSION", help="A policy, or the number of a version.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the document. Default: the file's, without its end.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Judge without the other documents in force.")] = False,
    days: Annotated[float, typer.Option(min=0.001, max=7, help="Jobs of the last days.")] = 7,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many jobs, the newest.")] = 1000,
) -> None:
    """Judge past jobs again by another policy, and compare: first the jobs that were refused and would pass."""
    from windlass.cli.commands.policy import text_of
    from windlass.cli.session import client

    wish: dict[str, Any] = {"days": days, "limit": limit, "only": only}
    if policy.isascii() and policy.isdigit():
        wish["version"] = int(policy)
    else:
        wish["documents"] = [{"name": name or document_name(policy), "text": text_of(policy)}]
    async with client(at) as ask:
        told = await ask.call("POST", "/policy/replay", wish)
    if at.as_json:
        at.screen.document(told)
        return
    rows = [
        (cell["before"], cell["after"], str(cell["count"]), "looser" if cell["is_looser"] else "")
        for cell in told["matrix"]
    ]
    at.screen.table(("before", "after", "jobs", ""), rows)
    columns = ("job", "recipe", "before", "after", "rule", "reason")
    changed = [
        (one["job_id"], one["recipe"], one["before"], one["after"], one["rule_id"], one["reason"])
        for one in told["changed"]
    ]
    if changed:
        at.screen.table(columns, changed)
    gone = f"; the rows of {told['unknown']} more are gone" if told["unknown"] else ""
    at.screen.note(f"{told['jobs']} jobs of the last {days:g} days{gone}. Velocity limits count as not exceeded")


async def shadow(
    at: Ambient,
    minutes: Annotated[int, typer.Option(min=1, max=1440, help="Counts of the last minutes.")] = 60,
) -> None:
    """Show what shadow rules would have decided: how often, and the newest examples."""
    from windlass.cli.session import document

    if (told := await document(at, "/policy/shadow", [("minutes", str(minutes))])) is None:
        return
    sums: dict[tuple[str, str, str], int] = {}
    for one in told["minutes"]:
        key = (str(one["version"]), one["rule_id"], one["decision"])
        sums[key] = sums.get(key, 0) + one["count"]
    at.screen.table(("version", "rule", "would", "requests"), [(*key, str(count)) for key, count in sums.items()])
    columns = ("at", "rule", "would", "edge", "topic", "tenant", "caller", "job")
    rows = [
        (
            one["at"],
            one["rule_id"],
            one["decision"],
            one["edge"],
            one["topic"],
            one["tenant"] or "",
            one["caller"] or "",
            one["job_id"] or "",
        )
        for one in told["examples"]
    ]
    if rows:
        at.screen.table(columns, rows)
    else:
        at.screen.note("no shadow rule would have decided. A rule with `mode: shadow` is only counted")


def document_name(file: str) -> str:
    """Return the name of a document from its file: `policies/main.yaml` is main."""
    from pathlib import Path

    return "main" if file == "-" else Path(file).stem


def _show_published(at: Ambient, found: dict[str, Any]) -> None:
    if at.as_json:
        at.screen.document(found)
        return
    if not found["is_new"]:
        at.screen.line(f"version {found['version']} is in force already and means the same")
        return
    at.screen.line(f"version {found['version']} is in force: {', '.join(found['documents'])}")
    if found["floor"] == found["version"]:
        at.screen.note("jobs that have not ended are judged again before their next step starts")


def _told(version: dict[str, Any]) -> str:
    back = "" if version["rollback_of"] is None else f"rolled back to {version['rollback_of']}"
    return ": ".join(filter(None, (back, version["note"] or "")))
