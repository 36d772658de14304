"""Test F: SIGKILL of the worker that runs a step, and how long until the step begins elsewhere. Default settings."""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run
from bench.roster import Entry

KILL = "F killed worker's step"
LIMIT_S = 60.0


async def killing(run: Run) -> None:
    """Two workers; the one with the step dies with all its children, as when a machine is lost."""

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        seconds = answer["seconds"]
        return (LIMIT_S if seconds is None else seconds), answer

    await run.interleave(
        KILL,
        run.contestants(lambda peer: peer.can_be_killed),
        "s",
        "lower",
        lambda session: session.measure("kill", limit_s=LIMIT_S),
        read,
        workers=2,
        repeats=min(2, run.repeats),
    )
