"""Test F: SIGKILL of the worker that runs a step, and the time until the step begins elsewhere. Default settings.

In one variant all its processes die, as with their machine; in the other only the process that runs the handlers.
"""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run
from bench.roster import Entry

KILL = "F lost machine's step"
KILL_PROCESS = "F killed process's step"
LIMIT_S = 60.0


async def killing(run: Run) -> None:
    """Start two workers, and kill the worker with the step."""

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        seconds = answer["seconds"]
        return (LIMIT_S if seconds is None else seconds), answer

    for test, is_host in ((KILL, True), (KILL_PROCESS, False)):
        await run.interleave(
            test,
            run.contestants(lambda peer, is_host=is_host: peer.can_be_killed and is_host),  # type: ignore[misc]
            "s",
            "lower",
            lambda session, is_host=is_host: session.measure("kill", limit_s=LIMIT_S, is_host=is_host),  # type: ignore[misc]
            read,
            workers=2,
            repeats=min(2, run.repeats),
        )
