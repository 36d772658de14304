"""Test B: one job at a time on an idle system, beside the machine's cost of one durable commit."""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run
from bench.roster import Entry

LATENCY = "B submit to result"
LATENCY_P99 = "B submit to result, p99"
COMMIT = "B one durable commit"
# Both figures from the same run, since the machine's speed differs between runs.
IN_COMMITS = "B submit to result / commit"


async def latency(run: Run) -> None:
    """Measure the milliseconds from the submit to the result seen by the submitter; for Windlass also in durable
    commits.
    """

    def read(entry: Entry, answer: dict[str, Any], load: Load) -> Reading:
        run.results.add(LATENCY_P99, entry.name, "ms p99", "lower", answer["p99_ms"], load.others)
        if commit_ms := answer["commit_p50_ms"]:
            run.results.add(COMMIT, "postgresql", "ms p50", "lower", commit_ms, load.others)
            run.results.add(IN_COMMITS, entry.name, "commits", "lower", answer["p50_ms"] / commit_ms, load.others)
        return answer["p50_ms"], answer

    await run.interleave(
        LATENCY,
        run.contestants(lambda peer: peer.roundtrips > 0),
        "ms p50",
        "lower",
        lambda session: session.measure("latency", count=run.count(session.entry.roundtrips)),
        read,
    )
