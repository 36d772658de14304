"""Reading: jobs, one job, its events, its result, and what it waits for."""

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


async def jobs(
    at: Ambient,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state, e.g. FAILED.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Only jobs of this recipe.")] = None,
    label: Annotated[str | None, typer.Option(metavar="K=V", help="Only jobs with this label.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 50,
    before: Annotated[str | None, typer.Option(metavar="JOB", help="Go on after this job.")] = None,
) -> None:
    """List jobs, the newest first."""
    from windlass.cli import marks
    from windlass.cli.arguments import parse_labels
    from windlass.cli.session import desk
    from windlass.cli.wire import job_json, seconds_between
    from windlass.core.errors import BadSetting
    from windlass.core.states import JobState

    if state is not None and state.upper() not in JobState.__members__:
        raise BadSetting(f"--state {state!r} is not a state", remedy=f"One of: {', '.join(JobState)}")
    wanted = parse_labels([label]) if label else None
    async with desk(at) as ask:
        found = await ask.jobs(
            state=JobState(state.upper()) if state else None,
            recipe=recipe,
            labels=wanted,
            limit=limit,
            before=await ask.find(before) if before else None,
        )
    following = str(found[-1].id) if len(found) == limit else None
    if at.as_json:
        at.screen.document({"items": [job_json(job) for job in found], "next": following})
        return
    at.screen.table(
        ("id", "state", "recipe", "steps", "created", "took"),
        [
            (
                str(job.id),
                str(job.state) + (" (paused)" if job.is_paused else ""),
                job.recipe,
                f"{job.steps_total - job.steps_open}/{job.steps_total}",
                job.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                marks.duration(seconds_between(job.created_at, job.finished_at)),
            )
            for job in found
        ],
        states=("state",),
    )
    if not found:
        at.screen.note("no jobs match. Submit one: windlass submit RECIPE --input k=v")
    if following:
        at.screen.note(f"there may be more: windlass jobs --before {following}")


async def show(at: Ambient, job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)]) -> None:
    """One job: where it stands, its graph, its error."""
    from windlass.cli.screen import many_lines, one_line, picture
    from windlass.cli.session import desk
    from windlass.cli.wire import job_json

    async with desk(at) as ask:
        job_id = await ask.find(job)
        if at.as_json:
            view = await ask.job(job_id)
            more = {"input": view.input, "steps": await ask.steps(job_id), "costs": await ask.costs(job_id)}
            at.screen.document(job_json(view) | more)
            return
        snapshot = await ask.snapshot(job_id)
        costs = await ask.costs(job_id)
        reasons = [] if snapshot.is_over else await ask.why(job_id, None)
    screen = at.screen
    screen.line(snapshot.headline())
    screen.line(picture(snapshot.boxes))
    for name, value in snapshot.facts():
        screen.line(f"{name:<10} {value}")
    if frames := snapshot.frames():
        screen.line(many_lines(frames.rstrip()))
    for name, value in _spent(costs):
        screen.line(f"{name:<10} {value}")
    for reason in [one for one in reasons if str(one.state) in ("HELD", "PARKED")][:REASONS_SHOWN]:
        screen.line(f"{'waits':<10} {one_line(f'{reason.step}: {reason.because}')}")


async def events(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
) -> None:
    """What happened to a job, in order. With --json, one event a line."""
    from windlass.cli.screen import one_line
    from windlass.cli.session import desk
    from windlass.cli.wire import event_json

    async with desk(at) as ask:
        job_id = await ask.find(job)
        async for event, name in ask.events(job_id, follow=follow):
            if at.as_json:
                at.screen.record(event_json(job_id, event) | {"step": name or None})
                continue
            at_time = event.at.astimezone().strftime("%H:%M:%S.%f")[:-3]
            cells = (str(event.seq), at_time, event.type, name, event.source, one_line(_short(event.payload)))
            at.screen.line("\t".join(cells))


async def result(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end first.")] = False,
    within: Annotated[str | None, typer.Option("--timeout", metavar="TIME", help="How long to wait: 30s, 2m.")] = None,
    step: Annotated[str | None, typer.Option(metavar="NAME", help="One step's output: render, or render[2].")] = None,
) -> Exit:
    """What the recipe returned, as JSON; with --step, what one of its steps returned."""
    from windlass.cli.arguments import parse_seconds
    from windlass.cli.session import desk
    from windlass.core.errors import WrongState
    from windlass.core.states import JOB_TERMINAL, JobState
    from windlass.pure.job_failed import fault_frames

    limit_s = parse_seconds("--timeout", within)
    async with desk(at) as ask:
        job_id = await ask.find(job)
        if step is not None:
            if wait:
                await ask.wait(job_id, limit_s)
            at.screen.document(await ask.step_output(job_id, step))
            return Exit.DONE
        state = await (ask.wait(job_id, limit_s) if wait else ask.state(job_id))
        if state not in JOB_TERMINAL:
            raise WrongState(f"job {job_id} is {state} and has no result yet", remedy="Add --wait, or `windlass watch`")
        if state is not JobState.COMPLETED:
            failure = await ask.failure(job_id)
            at.screen.error(failure.message, failure.remedy, int(exit_for_job(state)), fault_frames(failure.fault))
            return exit_for_job(state)
        at.screen.document(await ask.result(job_id))
    return Exit.DONE


async def why(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="One step; else all that wait.")] = None,
) -> None:
    """Exactly what a job, or one of its steps, waits for. Of a failed step, the exception and where it was raised."""
    from windlass.cli.screen import many_lines
    from windlass.cli.session import desk
    from windlass.pure.job_failed import fault_frames

    async with desk(at) as ask:
        reasons = await ask.why(await ask.find(job), step)
    if at.as_json:
        at.screen.document(
            [{"step": r.step, "state": str(r.state), "because": r.because, "detail": r.detail} for r in reasons]
        )
        return
    if not reasons:
        at.screen.note("nothing waits: every step is done")
    at.screen.table(("step", "state", "because"), [(r.step or "(job)", str(r.state), r.because) for r in reasons],
                    states=("state",))  # fmt: skip
    failed = next((r for r in reasons if fault_frames(r.detail.get("error") or {})), None)
    if failed is not None:
        at.screen.note(f"{failed.step}:\n{many_lines(fault_frames(failed.detail['error']).rstrip())}")


def _spent(costs: dict[str, Any]) -> list[tuple[str, str]]:
    """What a job cost, if anything, and what it may cost, if that is limited."""
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
