"""The figures as tables and as JSON, and the ratios that Windlass is to reach."""

import os
import platform
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from bench.measures.bare_sql import LIMIT
from bench.measures.bells import WITH, WITHOUT
from bench.measures.fan_out import name as fan
from bench.measures.history import EMPTY, FULL
from bench.measures.http import BATCH, HTTP, INSIDE, ONE
from bench.measures.killing import KILL
from bench.measures.latency import IN_COMMITS, LATENCY
from bench.measures.listing import WAYS
from bench.measures.listing import name as listed
from bench.measures.parked import MEMORY, QUERIES
from bench.measures.polls import ENDED, RUNNING
from bench.measures.streams import DELAY_P99, MISSED
from bench.measures.throughput import CHAINS, JOBS
from bench.measures.waiting import MEMORY as WORK_MEMORY
from bench.measures.waiting import QUERIES as WORK_QUERIES
from bench.measures.waiting import QUERIES_NONE
from bench.measures.webhooks import FULL as WEBHOOKS_FULL
from bench.measures.webhooks import STEADY, STEADY_P99
from bench.results import Figure, Results


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio of two figures, or one figure alone, and what it is to be."""

    title: str
    ours: tuple[str, str]
    theirs: tuple[str, str] | None
    sense: Literal[">=", ">", "<=", "<"]
    wanted: float
    # Noise only slows, so the best run counts; but where it slows both sides of each run, the middle one does.
    counts: Literal["best", "median"] = "best"


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
    Bar("fan-out of 10,000 / pgqueuer", _ours(fan(10_000)), (fan(10_000), "pgqueuer"), "<", 1),
    Bar("fan-out of 100,000: ms a step", _ours(fan(100_000)), None, "<", float("inf")),
    Bar("submit to result, in durable commits", _ours(IN_COMMITS), None, "<=", 4, "median"),
    Bar("submit to result / Restate", _ours(LATENCY), (LATENCY, "restate"), "<", 1),
    Bar("submit to result / SAQ", _ours(LATENCY), (LATENCY, "saq"), "<", 1),
    Bar("submit to result / Procrastinate", _ours(LATENCY), (LATENCY, "procrastinate"), "<", 1),
    Bar("submit to result / DBOS", _ours(LATENCY), (LATENCY, "dbos"), "<", 1),
    Bar("16 writers with bells / without", _ours(WITH), _ours(WITHOUT), ">=", 0.8),
    Bar("killed worker's step runs again, s", _ours(KILL), None, "<=", 16),
    Bar("100,000 parked jobs, MB more", _ours(MEMORY), None, "<", 30),
    Bar("100,000 parked jobs, queries/s", _ours(QUERIES), None, "<", 1),
    Bar("2 million finished jobs / none", _ours(FULL), _ours(EMPTY), ">=", 0.9),
    Bar("submits over HTTP / in process", (ONE, HTTP), (ONE, INSIDE), ">", 0),
    Bar("submits over HTTP, 100 a request / in process", (BATCH, HTTP), (BATCH, INSIDE), ">", 0),
    Bar("1,000 streams: events missed or repeated", _ours(MISSED), None, "<=", 0),
    Bar("1,000 streams: ms from commit to client, p99", _ours(DELAY_P99), None, "<", float("inf")),
    Bar("100,000 jobs at a provider, MB more", _ours(WORK_MEMORY), None, "<", 30),
    Bar("100,000 jobs at a provider, queries/s", _ours(WORK_QUERIES), None, "<", float("inf")),
    Bar("100,000 jobs at a provider, queries / with none", _ours(WORK_QUERIES), _ours(QUERIES_NONE), "<=", 1.1),
    Bar("webhooks settled a second, of 1,000 sent", _ours(STEADY), None, ">=", 990),
    Bar("webhook sent to step settled, 1,000/s: ms p99", _ours(STEADY_P99), None, "<", float("inf")),
    Bar("webhooks settled a second at most", _ours(WEBHOOKS_FULL), None, ">=", 1_000),
    Bar("10,000 polls of work under way, s", _ours(RUNNING), None, "<", float("inf")),
    Bar("10,000 polls of work that has ended, s", _ours(ENDED), None, "<", float("inf")),
    *(Bar(f"GET /jobs of a million, {kind}: ms p99", _ours(listed(kind)), None, "<", 50) for kind in WAYS),
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A bar with what was measured."""

    title: str
    best: float
    median: float
    bar: str
    is_met: bool


def ratios(results: Results) -> list[Ratio]:
    """Every bar whose figures were measured, on the best runs and on the medians."""
    found = []
    for bar in BARS:
        ours = results.get(*bar.ours)
        theirs = results.get(*bar.theirs) if bar.theirs else None
        if ours is None or (bar.theirs and theirs is None):
            continue
        best = ours.best / theirs.best if theirs else ours.best
        median = ours.median / theirs.median if theirs else ours.median
        wanted = "any" if bar.wanted == float("inf") else f"{bar.sense} {bar.wanted:g}"
        found.append(Ratio(bar.title, best, median, wanted, _holds(best if bar.counts == "best" else median, bar)))
    return found


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
    """Everything, for programs."""
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
    """Two tables: what was measured, and the ratios."""
    # A file or a pipe has no width of its own.
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
    """Three digits that matter, or whole thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
