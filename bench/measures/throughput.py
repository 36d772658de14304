"""Tests A and C: one-step jobs and three-step chains, from the first submit to the last recorded end."""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run, cpu_us
from bench.roster import Entry

JOBS = "A one-step jobs"
CHAINS = "C three-step chains"


async def jobs(run: Run) -> None:
    """Jobs a second, worker running while the client submits."""

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        count = run.count(entry.jobs)
        return count / answer["seconds"], {"submit_per_s": count / answer["submit_s"], **cpu_us(load, count)}

    await run.interleave(
        JOBS,
        run.contestants(lambda peer: peer.jobs > 0),
        "jobs/s",
        "higher",
        lambda session: session.measure("jobs", count=run.count(session.entry.jobs)),
        read,
    )


async def chains(run: Run) -> None:
    """Steps a second in jobs of three steps."""

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        count = run.count(entry.chains)
        return 3 * count / answer["seconds"], cpu_us(load, 3 * count)

    await run.interleave(
        CHAINS,
        run.contestants(lambda peer: peer.chains > 0),
        "steps/s",
        "higher",
        lambda session: session.measure("chains", count=run.count(session.entry.chains)),
        read,
    )
