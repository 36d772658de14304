"""Tests A and C: one-step jobs and three-step chains, from the first submit to the last recorded end."""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run, all_us, cpu_us
from bench.roster import Entry

JOBS = "A one-step jobs"
CHAINS = "C three-step chains"
# CPU time of client, worker and server together: foreign load disturbs it less than the rate.
JOBS_CPU = "A one-step jobs, CPU"
CHAINS_CPU = "C three-step chains, CPU"


async def jobs(run: Run) -> None:
    """Measure jobs per second, with the worker running while the client submits."""

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        count = run.count(entry.jobs)
        run.results.add(JOBS_CPU, entry.name, "us/job", "lower", all_us(load, count), load.others)
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
    """Measure steps per second in jobs of three steps."""

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        count = run.count(entry.chains)
        run.results.add(CHAINS_CPU, entry.name, "us/step", "lower", all_us(load, 3 * count), load.others)
        return 3 * count / answer["seconds"], cpu_us(load, 3 * count)

    await run.interleave(
        CHAINS,
        run.contestants(lambda peer: peer.chains > 0),
        "steps/s",
        "higher",
        lambda session: session.measure("chains", count=run.count(session.entry.chains)),
        read,
    )
