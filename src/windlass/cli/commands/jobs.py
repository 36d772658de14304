"""The commands that read jobs: the list, one job, its events, its result, and why it waits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit, exit_for_job

PANEL = "Look"
REASONS_SHOWN = 5
JOB = "A job's id, its first letters, or @last."


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "jobs", panel=PANEL, has_json=True)(jobs)
    command(app, "show", panel=PANEL, has_json=True)(show)
    command(app, "events", panel=PANEL, has_json=True)(events)
    command(app, "result", panel=PANEL, has_json=True)(result)
    command(app, "why", panel=PANEL, has_json=True)(why)
    command(app, "decisions", panel=PANEL, has_json=True)(decisions)
    command(app, "get", panel=PANEL)(get)


async def jobs(
    at: Ambient,
    status: Annotated[str | None, typer.Option(help="Only jobs of this status, e.g. FAILED.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Only jobs of this recipe.")] = None,
    label: Annotated[str | None, typer.Option(metavar="K=V", help="Only jobs with this label.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number of jobs.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Continue a list: `next` of the last page.")
    ] = None,
) -> None:
    """List jobs, the newest first."""
    from windlass.cli import marks
    from windlass.cli.arguments import parse_labels
    from windlass.cli.find import everybody
    from windlass.cli.session import client
    from windlass.client.flows import filter_query
    from windlass.core.errors import BadSetting
    from windlass.core.states import JobState

    if status is not None and status.upper() not in JobState.__members__:
        raise BadSetting(f"--status {status!r} is not a status", remedy=f"One of: {', '.join(JobState)}")
    labels = parse_labels([label]) if label else None
    query = filter_query(status=status and status.upper(), recipe=recipe, labels=labels)
    async with client(at) as ask:
        found, following = await _listed(ask, [*await everybody(ask), *query], limit, cursor)
    if at.as_json:
        at.screen.document({"items": found, "next": following})
        return
    at.screen.table(
        ("job_id", "status", "recipe", "steps", "created", "took"),
        [
            (
                job["job_id"],
                job["status"] + (" (paused)" if job["is_paused"] else ""),
                job["recipe"],
                f"{job['steps_total'] - job['steps_open']}/{job['steps_total']}",
                marks.when(job["created_at"]),
                marks.took(job["created_at"], job["finished_at"]),
            )
            for job in found
        ],
        states=("status",),
    )
    if not found:
        at.screen.note("no jobs match. Submit one: windlass submit RECIPE --input k=v")
    if following:
        at.screen.note(f"there may be more: windlass jobs --cursor {following}")


async def _listed(
    ask: Any, query: list[tuple[str, str]], limit: int, cursor: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the documents of at most `limit` jobs, and the cursor of the next page."""
    from windlass.client.flows import PAGE

    found: list[dict[str, Any]] = []
    while True:
        size = ("limit", str(min(PAGE, limit - len(found))))
        page = await ask.call("GET", "/jobs", query=[*query, size, *([("cursor", cursor)] if cursor else [])])
        found += page["items"]
        cursor = page["next"]
        if cursor is None or len(found) >= limit:
            return found, cursor


async def show(at: Ambient, job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)]) -> None:
    """Show one job: its status, graph and error. With --json, the job's document."""
    from windlass.cli.find import find
    from windlass.cli.screen import many_lines, one_line, picture
    from windlass.cli.session import client
    from windlass.cli.watching import snapshot

    async with client(at) as ask:
        job_id = await find(ask, job)
        if at.as_json:
            at.screen.document(await ask.call("GET", f"/jobs/{job_id}"))
            return
        handle = ask.job(job_id)
        found, given = await snapshot(ask, job_id), await handle.input()
        costs = await ask.call("GET", f"/jobs/{job_id}/costs")
        reasons = [] if found.is_over else await handle.why()
    screen = at.screen
    screen.line(found.headline())
    screen.line(picture(found.boxes))
    for name, value in found.facts(given):
        screen.line(f"{name:<10} {value}")
    if frames := found.frames():
        screen.line(many_lines(frames.rstrip()))
    for name, value in _spent(costs):
        screen.line(f"{name:<10} {value}")
    for reason in [one for one in reasons if one.status in ("HELD", "PARKED")][:REASONS_SHOWN]:
        screen.line(f"{'waits':<10} {one_line(f'{reason.step}: {reason.because}')}")


async def events(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until the job has ended.")] = False,
) -> None:
    """List the events of a job in order. With --json, one document per line."""
    from windlass.cli.find import find
    from windlass.cli.marks import instant
    from windlass.cli.screen import one_line
    from windlass.cli.session import client
    from windlass.cli.watching import events as told

    async with client(at) as ask:
        job_id = await find(ask, job)
        async for event, name in told(ask, job_id, follow=follow):
            if at.as_json:
                at.screen.record(event)
                continue
            at_time = instant(event["at"])
            shown = "" if at_time is None else at_time.astimezone().strftime("%H:%M:%S.%f")[:-3]
            payload = one_line(_short(event["payload"]))
            at.screen.line("\t".join((str(event["seq"]), shown, event["type"], name, event["source"], payload)))


async def result(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    within: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="The maximum wait: 30s, 2m.")] = None,
    step: Annotated[
        str | None, typer.Option(metavar="NAME", help="The output of one step: render, or render[2].")
    ] = None,
) -> Exit:
    """Print the output of a job as JSON; with --step, the output of one step."""
    from windlass.cli.arguments import parse_seconds
    from windlass.cli.find import find
    from windlass.cli.session import client
    from windlass.cli.watching import step_output
    from windlass.client.views import failure_of
    from windlass.core.errors import WrongState
    from windlass.core.states import JobState
    from windlass.pure.job_failed import fault_frames

    limit_s = parse_seconds("--timeout", within)
    async with client(at) as ask:
        job_id = await find(ask, job)
        if wait:
            await ask.job(job_id).wait(limit_s)
        if step is not None:
            at.screen.document(await step_output(ask, job_id, step))
            return Exit.DONE
        view = await ask.job(job_id).view()
        if not view.is_finished:
            raise WrongState(
                f"job {job_id} is {view.status} and has no result yet", remedy="Add --wait, or `windlass watch`"
            )
        code = exit_for_job(view.status)
        if view.status is JobState.COMPLETED:
            at.screen.document(await ask.call("GET", f"/jobs/{job_id}/output"))
        else:
            failure = failure_of(view)
            at.screen.error(failure.message, failure.remedy, int(code), fault_frames(failure.fault))
    return code


async def why(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="One step. Default: all waiting steps.")] = None,
) -> None:
    """Explain what a job or a step waits for. For a failed step, show the exception and where it was raised."""
    from windlass.cli.find import find
    from windlass.cli.screen import many_lines
    from windlass.cli.session import client
    from windlass.pure.job_failed import fault_frames

    async with client(at) as ask:
        query = [] if step is None else [("step", step)]
        document = await ask.call("GET", f"/jobs/{await find(ask, job)}/why", query=query)
    if at.as_json:
        at.screen.document(document)
        return
    reasons = document["items"]
    if not reasons:
        at.screen.note("nothing waits: every step is done")
    at.screen.table(
        ("step", "status", "because"),
        [(one["step"] or "(job)", one["status"], one["because"]) for one in reasons],
        states=("status",),
    )
    failed = next((one for one in reasons if fault_frames(one["detail"].get("error") or {})), None)
    if failed is not None:
        at.screen.note(f"{failed['step']}:\n{many_lines(fault_frames(failed['detail']['error']).rstrip())}")


async def get(
    at: Ambient,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A path of the API, e.g. /jobs/@last/steps.")],
    query: Annotated[list[str] | None, typer.Option("--query", "-q", metavar="K=V", help="Repeatable.")] = None,
) -> None:
    """Print the API's document at a path. The path may name a job as any command does, such as @last."""
    from windlass.cli.arguments import parse_pairs
    from windlass.cli.find import find
    from windlass.cli.session import client

    pairs = parse_pairs("--query", query or [])
    parts = path.strip("/").split("/")
    async with client(at) as ask:
        if parts[0] == "jobs" and len(parts) > 1:
            parts[1] = str(await find(ask, parts[1]))
        at.screen.document(await ask.call("GET", "/" + "/".join(parts), query=pairs))


def _spent(costs: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a job's cost, if it has any, and its budget, if it has one."""
    tokens = costs["tokens_in"] + costs["tokens_out"]
    parts = [
        costs["total"],
        f"{tokens:,} tokens" if tokens else "",
        f"{costs['seconds']:g} s" if costs["seconds"] else "",
    ]
    told = [("cost", ", ".join(part for part in parts if part))] if costs["items"] else []
    if costs["budget"] is not None:
        budget = costs["budget"]
        told.append(("budget", f"{budget['most']}, {budget['left']} left, {budget['reserved']} reserved"))
    return told


def _short(payload: Any) -> str:
    import msgspec

    text = "" if payload is None else msgspec.json.encode(payload).decode()
    return text if len(text) <= 200 else text[:200] + "…"


async def decisions(at: Ambient, job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)]) -> None:
    """Show what the policy decided about a job: its rule, and every verdict that is not a plain yes."""
    from windlass.cli.find import find
    from windlass.cli.session import client

    async with client(at) as ask:
        document = await ask.call("GET", f"/jobs/{await find(ask, job)}/decisions")
    if at.as_json:
        at.screen.document(document)
        return
    if document["policy"] is not None:
        at.screen.note(f"goes on by rule {document['rule']} of policy {document['policy']}")
    elif not document["items"]:
        at.screen.note("the job was never judged: no policy was in force")
    at.screen.table(
        ("seq", "at", "edge", "step", "decision", "rule", "policy", "reason"),
        [
            (one["seq"], one["at"], one["edge"], "(job)" if one["no"] is None else one["no"], one["decision"],
             one["rule"], one["policy"], one["reason"])
            for one in document["items"]
        ],
    )  # fmt: skip
