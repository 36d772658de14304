"""The figures as tables and as JSON, and the ratios that Windlass must reach."""

import os
import platform
import statistics
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from bench.measures.bare_sql import LIMIT
from bench.measures.bells import WITH, WITHOUT
from bench.measures.fan_out import cpu as fan_cpu
from bench.measures.fan_out import name as fan
from bench.measures.held import CROWD, FREE
from bench.measures.history import EMPTY, FULL
from bench.measures.http import BATCH, HTTP, INSIDE, ONE, ONE_CPU
from bench.measures.killing import KILL, KILL_PROCESS
from bench.measures.latency import IN_COMMITS, LATENCY
from bench.measures.listing import WAYS
from bench.measures.listing import name as listed
from bench.measures.mixed import MIXED, PLAIN
from bench.measures.parked import MEMORY, QUERIES
from bench.measures.polls import ENDED, RUNNING
from bench.measures.scan import scanned
from bench.measures.streams import DELAY_CPU, DELAY_P99, MISSED
from bench.measures.throughput import CHAINS, CHAINS_CPU, JOBS, JOBS_CPU
from bench.measures.verdict import ONE_TOPIC_P99, TYPICAL, TYPICAL_P99
from bench.measures.waiting import MEMORY as WORK_MEMORY
from bench.measures.waiting import QUERIES as WORK_QUERIES
from bench.measures.waiting import QUERIES_NONE
from bench.measures.webhooks import FULL as WEBHOOKS_FULL
from bench.measures.webhooks import STEADY, STEADY_P99
from bench.results import Figure, Results
from bench.roster import BEFORE


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio of two figures, or one figure alone, and its required value."""

    title: str
    ours: tuple[str, str]
    theirs: tuple[str, str] | None
    sense: Literal[">=", ">", "<=", "<"]
    wanted: float
    # Noise only slows, so the best run counts. Where noise slows both sides of each run, the median counts. `rounds`
    # compares two versions of one system round by round, since the machine's speed drifts.
    counts: Literal["best", "median", "rounds"] = "best"


def _ours(test: str) -> tuple[str, str]:
    return (test, "windlass")


BARS = (
    Bar("one-step jobs / bare SQL", _ours(JOBS), (LIMIT, "bare SQL"), ">=", 0.5),
    Bar("one-step jobs / pgqueuer", _ours(JOBS), (JOBS, "pgqueuer"), ">", 1),
    Bar("one-step jobs / DBOS", _ours(JOBS), (JOBS, "dbos"), ">=", 10),
    Bar("one-step jobs / Procrastinate", _ours(JOBS), (JOBS, "procrastinate"), ">=", 10),
    Bar("one-step jobs / Celery", _ours(JOBS), (JOBS, "celery"), ">=", 5),
    Bar("chains, steps/s / DBOS", _ours(CHAINS), (CHAINS, "dbos"), ">=", 10),
    Bar("chains, steps/s / Celery", _ours(CHAINS), (CHAINS, "celery"), ">=", 10),
    Bar("chains, steps/s / Restate", _ours(CHAINS), (CHAINS, "restate"), ">=", 5),
    Bar("fan-out, a step of 10,000 / of 100", _ours(fan(10_000)), _ours(fan(100)), "<=", 1.5),
    Bar("fan-out of 100 / pgqueuer", _ours(fan(100)), (fan(100), "pgqueuer"), "<=", 2),
    Bar("fan-out of 10,000 / pgqueuer", _ours(fan(10_000)), (fan(10_000), "pgqueuer"), "<", 1),
    Bar("fan-out of 100,000: ms a step", _ours(fan(100_000)), None, "<", float("inf")),
    Bar("submit to result, in durable commits", _ours(IN_COMMITS), None, "<=", 4, "median"),
    Bar("submit to result / Restate", _ours(LATENCY), (LATENCY, "restate"), "<", 1),
    Bar("submit to result / SAQ", _ours(LATENCY), (LATENCY, "saq"), "<", 1),
    Bar("submit to result / Procrastinate", _ours(LATENCY), (LATENCY, "procrastinate"), "<", 1),
    Bar("submit to result / DBOS", _ours(LATENCY), (LATENCY, "dbos"), "<", 1),
    Bar("16 writers with bells / without", _ours(WITH), _ours(WITHOUT), ">=", 0.8),
    Bar("lost machine's step runs again, s", _ours(KILL), None, "<=", 16),
    Bar("killed process's step runs again, s", _ours(KILL_PROCESS), None, "<=", 2),
    Bar("100,000 parked jobs, MB more", _ours(MEMORY), None, "<", 30),
    Bar("100,000 parked jobs, queries/s", _ours(QUERIES), None, "<", 1),
    Bar("2 million finished jobs / none", _ours(FULL), _ours(EMPTY), ">=", 0.9),
    Bar("behind 100,000 held steps / none", _ours(CROWD), _ours(FREE), ">=", 0.9),
    Bar("steps beside a provider step / of a plain plan", _ours(MIXED), _ours(PLAIN), ">=", 0.9, "rounds"),
    Bar("submits over HTTP / in process", (ONE, HTTP), (ONE, INSIDE), ">", 0),
    Bar("submits over HTTP, 100 a request / in process", (BATCH, HTTP), (BATCH, INSIDE), ">", 0),
    Bar("a submit over HTTP: us of CPU in the API", _ours(ONE_CPU), None, "<=", 250, "median"),
    Bar("1,000 streams: events missed or repeated", _ours(MISSED), None, "<=", 0),
    Bar("1,000 streams: ms from commit to client, p99", _ours(DELAY_P99), None, "<=", 200),
    Bar("100,000 jobs at a provider, MB more", _ours(WORK_MEMORY), None, "<", 30),
    Bar("100,000 jobs at a provider, queries/s", _ours(WORK_QUERIES), None, "<", float("inf")),
    Bar("100,000 jobs at a provider, queries / with none", _ours(WORK_QUERIES), _ours(QUERIES_NONE), "<=", 1.1),
    Bar("webhooks settled a second, of 1,000 sent", _ours(STEADY), None, ">=", 990),
    Bar("webhook sent to step settled, 1,000/s: ms p99", _ours(STEADY_P99), None, "<", float("inf")),
    Bar("webhooks settled a second at most", _ours(WEBHOOKS_FULL), None, ">=", 3_000),
    Bar("10,000 polls of work under way, s", _ours(RUNNING), None, "<", float("inf")),
    Bar("10,000 polls of work that has ended, s", _ours(ENDED), None, "<", float("inf")),
    Bar("a verdict with 1,000 rules: us of CPU", _ours(TYPICAL), None, "<", float("inf")),
    Bar("a verdict with 1,000 rules: us p99", _ours(TYPICAL_P99), None, "<=", 50),
    Bar("a verdict with 1,000 rules of a topic: us p99", _ours(ONE_TOPIC_P99), None, "<", float("inf")),
    Bar("scan of code, MB/s", _ours(scanned("hyperscan", "code")), None, ">=", 100),
    Bar("scan of logs, MB/s", _ours(scanned("hyperscan", "logs")), None, ">=", 100),
    Bar("scan of JSON, MB/s", _ours(scanned("hyperscan", "json")), None, ">", 0),
    Bar("scan of JSON of 1 KB, MB/s", _ours(scanned("hyperscan", "small")), None, ">", 0),
    Bar("scan of the slowest flood, MB/s", _ours(scanned("hyperscan", "worst")), None, ">=", 1),
    Bar("scan of code without hyperscan, MB/s", _ours(scanned("re2", "code")), None, ">=", 10),
    Bar("scan of logs without hyperscan, MB/s", _ours(scanned("re2", "logs")), None, ">=", 10),
    Bar("scan of JSON without hyperscan, MB/s", _ours(scanned("re2", "json")), None, ">=", 10),
    Bar("scan of the slowest flood without hyperscan, MB/s", _ours(scanned("re2", "worst")), None, ">=", 1),
    Bar("one-step jobs / before", _ours(JOBS), (JOBS, BEFORE), ">=", 0.97, "rounds"),
    Bar("one-step jobs, CPU / before", _ours(JOBS_CPU), (JOBS_CPU, BEFORE), "<=", 1.03, "rounds"),
    Bar("chains / before", _ours(CHAINS), (CHAINS, BEFORE), ">=", 0.97, "rounds"),
    Bar("chains, CPU / before", _ours(CHAINS_CPU), (CHAINS_CPU, BEFORE), "<=", 1.03, "rounds"),
    Bar("fan-out of 1,000 / before", _ours(fan(1_000)), (fan(1_000), BEFORE), "<=", 1.03, "rounds"),
    Bar("fan-out of 1,000, CPU / before", _ours(fan_cpu(1_000)), (fan_cpu(1_000), BEFORE), "<=", 1.03, "rounds"),
    Bar("submit to result / before", _ours(LATENCY), (LATENCY, BEFORE), "<=", 1.03, "rounds"),
    Bar("submits over HTTP / before", (ONE, HTTP), (ONE, BEFORE), ">=", 0.97, "rounds"),
    Bar("submits over HTTP, CPU of the API / before", (ONE_CPU, HTTP), (ONE_CPU, BEFORE), "<=", 1.03, "rounds"),
    Bar("submits over HTTP, 100 a request / before", (BATCH, HTTP), (BATCH, BEFORE), ">=", 0.97, "rounds"),
    Bar("webhooks settled / before", _ours(WEBHOOKS_FULL), (WEBHOOKS_FULL, BEFORE), ">=", 0.97, "rounds"),
    Bar("streams, CPU of the API / before", _ours(DELAY_CPU), (DELAY_CPU, BEFORE), "<=", 1.03, "rounds"),
    *(Bar(f"GET /jobs of a million, {kind}: ms p99", _ours(listed(kind)), None, "<", 50) for kind in WAYS),
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A bar with its measured values."""

    title: str
    best: float
    median: float
    bar: str
    is_met: bool


def ratios(results: Results) -> list[Ratio]:
    """Return every bar with measured figures, on the best runs and on the medians."""
    found = []
    for bar in BARS:
        ours = results.get(*bar.ours)
        theirs = results.get(*bar.theirs) if bar.theirs else None
        if ours is None or (bar.theirs and theirs is None):
            continue
        best = _over(ours.best, theirs.best) if theirs else ours.best
        median = _median(ours, theirs, bar)
        wanted = "any" if bar.wanted == float("inf") else f"{bar.sense} {bar.wanted:g}"
        found.append(Ratio(bar.title, best, median, wanted, _holds(best if bar.counts == "best" else median, bar)))
    return found


def _median(ours: Figure, theirs: Figure | None, bar: Bar) -> float:
    if theirs is None:
        return ours.median
    if bar.counts == "rounds" and len(ours.runs) == len(theirs.runs):
        return statistics.median(_over(mine, other) for mine, other in zip(ours.runs, theirs.runs, strict=True))
    return _over(ours.median, theirs.median)


def _over(ours: float, theirs: float) -> float:
    """Divide. CPU time is counted in hundredths of a second, so that of a small run may be 0."""
    return ours / theirs if theirs else float("inf") if ours else 1.0


def _holds(value: float, bar: Bar) -> bool:
    match bar.sense:
        case ">=":
            return value >= bar.wanted
        case ">":
            return value > bar.wanted
        case "<=":
            return value <= bar.wanted
        case "<":
            return value < bar.wanted


def document(results: Results, about: dict[str, Any]) -> dict[str, Any]:
    """Return all results as a JSON document."""
    machine = {"platform": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()}
    return {
        "about": {**about, **machine},
        "figures": [_plain(figure) for figure in results.all()],
        "ratios": [asdict(ratio) for ratio in ratios(results)],
    }


def _plain(figure: Figure) -> dict[str, Any]:
    plain = asdict(figure)
    if figure.runs:
        plain |= {"best": figure.best, "median": figure.median}
    return plain


def show(results: Results) -> None:
    """Print two tables: the figures, and the ratios."""
    # A file or a pipe has no width.
    console = Console(width=None if sys.stdout.isatty() else 120)
    measured = Table("test", "system", title="Measured: best run, median, cores that others used meanwhile")
    for heading in ("best", "median", "unit", "others"):
        measured.add_column(heading, justify="right")
    for figure in results.all():
        if figure.runs:
            others = " ".join(f"{value:.2f}" for value in figure.others)
            measured.add_row(
                figure.test, figure.system, number(figure.best), number(figure.median), figure.unit, others
            )
        if figure.note:
            measured.add_row(figure.test, figure.system, "failed", figure.note[:60], "", "")
    console.print(measured)
    table = Table("ratio", title="Ratios: Windlass against the bar")
    for heading in ("best runs", "medians", "bar", ""):
        table.add_column(heading, justify="right")
    for ratio in ratios(results):
        mark = "[green]met[/]" if ratio.is_met else "[red]missed[/]"
        table.add_row(ratio.title, number(ratio.best), number(ratio.median), ratio.bar, mark)
    console.print(table)


def number(value: float) -> str:
    """Format with three significant digits, or as whole thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
