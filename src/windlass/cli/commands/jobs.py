"""Reading: jobs, one job, its events, its result, and what it waits for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.exits import Exit, exit_for_job

PANEL = "Look"
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
    from windlass.cli.session import find_job, opened
    from windlass.cli.wire import job_json, seconds_between
    from windlass.core.errors import BadSetting
    from windlass.core.states import JobState
    from windlass.engine import read

    if state is not None and state.upper() not in JobState.__members__:
        raise BadSetting(f"--state {state!r} is not a state", remedy=f"One of: {', '.join(JobState)}")
    wanted = parse_labels([label]) if label else None
    async with opened(at) as windlass:
        cursor = await find_job(windlass, before) if before else None
        found = await read.jobs(
            windlass.db,
            states=[JobState(state.upper())] if state else None,
            recipe=recipe,
            labels=wanted,
            limit=limit,
            before=cursor,
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
    from windlass.cli.screen import picture
    from windlass.cli.session import find_job, opened
    from windlass.cli.snapshot import take
    from windlass.cli.wire import job_json, step_json
    from windlass.engine import read

    async with opened(at) as windlass:
        job_id = await find_job(windlass, job)
        snapshot = await take(windlass.db, job_id)
        if at.as_json:
            steps = await read.steps(windlass.db, job_id)
            body = job_json(snapshot.job)
            body["input"] = snapshot.job.input
            at.screen.document(body | {"steps": [step_json(step, snapshot.plan) for step in steps]})
            return
    screen = at.screen
    screen.line(snapshot.headline())
    screen.line(picture(snapshot.boxes))
    for name, value in snapshot.facts():
        screen.line(f"{name:<10} {value}")


async def events(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
) -> None:
    """What happened to a job, in order. With --json, one event a line."""
    from windlass.cli.screen import one_line
    from windlass.cli.session import find_job, opened
    from windlass.cli.wire import event_json
    from windlass.engine import read
    from windlass.engine.recipes import plan_of

    async with opened(at) as windlass:
        job_id = await find_job(windlass, job)
        view = await read.job(windlass.db, job_id)
        plan = await plan_of(windlass.db, view.plan)
        names: dict[int, str] = {}
        async for event in windlass.job(job_id).events(follow=follow):
            name = await _step_name(windlass, job_id, plan, names, event.no)
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
) -> Exit:
    """What the recipe returned, as JSON."""
    from windlass.app.job import failure_of
    from windlass.cli.arguments import parse_seconds
    from windlass.cli.session import find_job, opened
    from windlass.core.errors import WrongState
    from windlass.core.states import JOB_TERMINAL, JobState

    limit_s = parse_seconds("--timeout", within)
    async with opened(at) as windlass:
        job_id = await find_job(windlass, job)
        job_ = windlass.job(job_id)
        state = await (job_.wait(limit_s) if wait else job_.status())
        if state not in JOB_TERMINAL:
            raise WrongState(f"job {job_id} is {state} and has no result yet", remedy="Add --wait, or `windlass watch`")
        if state is not JobState.COMPLETED:
            failure = await failure_of(windlass.db, await job_.view())
            at.screen.error(failure.message, failure.remedy, int(exit_for_job(state)))
            return exit_for_job(state)
        at.screen.document(await job_.result())
    return Exit.DONE


async def why(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)],
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="One step; else all that wait.")] = None,
) -> None:
    """Exactly what a job, or one of its steps, waits for."""
    from windlass.cli.session import find_job, opened

    async with opened(at) as windlass:
        job_id = await find_job(windlass, job)
        reasons = await windlass.job(job_id).why(step)
    if at.as_json:
        at.screen.document(
            [{"step": r.step, "state": str(r.state), "because": r.because, "detail": r.detail} for r in reasons]
        )
        return
    if not reasons:
        at.screen.note("nothing waits: every step is done")
    at.screen.table(("step", "state", "because"), [(r.step or "(job)", str(r.state), r.because) for r in reasons],
                    states=("state",))  # fmt: skip


def _short(payload: Any) -> str:
    import msgspec

    text = "" if payload is None else msgspec.json.encode(payload).decode()
    return text if len(text) <= 200 else text[:200] + "…"


async def _step_name(windlass: Any, job_id: Any, plan: Any, names: dict[int, str], no: int | None) -> str:
    """A step's name; the children of a fan-out have numbers after the plan's and are looked up once."""
    if no is None:
        return ""
    if no < len(plan.nodes):
        return str(plan.nodes[no].name)
    if no not in names:
        from windlass.engine import read

        for step in await read.steps(windlass.db, job_id):
            if step.index is not None:
                names[step.no] = f"{plan.nodes[step.node].name}[{step.index}]"
    return names.get(no, f"#{no}")
