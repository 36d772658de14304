"""`windlass logs`: prints the log lines of a job's handlers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windlass.cli.command import Ambient, command
from windlass.cli.commands.jobs import JOB, PANEL


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "logs", panel=PANEL, has_json=True)(logs)


async def logs(
    at: Ambient,
    job: Annotated[str, typer.Argument(metavar="JOB", help=JOB)] = "@last",
    step: Annotated[
        str | None, typer.Argument(metavar="[STEP]", help="One step or fan-out. Default: all steps.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until the job has ended.")] = False,
) -> None:
    """Print the log lines of a job's steps in order. With --json, one document per line."""
    from windlass.cli.find import find
    from windlass.cli.session import client
    from windlass.cli.watching import events, step_name
    from windlass.core.errors import NotFound
    from windlass.views.attempts import lines_of

    async with client(at) as ask:
        job_id = await find(ask, job)
        if step is not None:
            steps = [one async for one in ask.items(f"/jobs/{job_id}/steps")]
            if not any(_is_of(step_name(one), step) for one in steps):
                names = sorted({one["step"] for one in steps})
                raise NotFound(f"job {job_id} has no step {step}", remedy=f"Its steps are {', '.join(names)}")
        async for event, name in events(ask, job_id, follow=follow):
            if event["type"] != "step.log" or (step is not None and not _is_of(name, step)):
                continue
            payload = event["payload"]
            dropped = payload.get("dropped") if isinstance(payload, dict) else 0
            if dropped and not at.as_json:
                at.screen.note(f"… {dropped:,} lines of {name} before these were not kept")
            for line in lines_of(payload, event["attempt"]):
                if at.as_json:
                    at.screen.record(_json(name, event["no"], line))
                else:
                    _show(at.screen, name, line)


def _is_of(name: str, step: str) -> bool:
    """Return whether `name` is the step, or a child of the fan-out `step`."""
    return name == step or name.partition("[")[0] == step


def _json(name: str, no: int | None, line: Any) -> dict[str, Any]:
    return {"at": line.at, "level": line.level, "step": name, "no": no, "attempt": line.attempt, "text": line.text}


def _show(screen: Any, name: str, line: Any) -> None:
    from datetime import datetime

    from windlass.cli.screen import one_line

    try:
        when = datetime.fromisoformat(line.at).astimezone().strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        when = one_line(line.at)
    place = name if line.attempt <= 1 else f"{name} attempt {line.attempt}"
    level = one_line(line.level.upper())
    texts = [one_line(text) for text in line.text.split("\n")]
    if screen.out.is_terminal:
        lead = f"{when}  {level:<8}{one_line(place)}  "
        screen.line("\n".join([lead + texts[0], *(f"    {text}" for text in texts[1:])]))
        return
    rows = [(when, level, one_line(place), texts[0]), *(("", "", "", text) for text in texts[1:])]
    screen.table((), rows)
