"""Test D: a fan-out of many steps in one job, and its join. The figure is the cost of one step as widths grow."""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run, all_us, cpu_us
from bench.roster import WINDLASS, Entry


def name(width: int) -> str:
    """Return the test's name for one width."""
    return f"D fan-out {width:,}"


def cpu(width: int) -> str:
    """Return the name of the figure for the CPU time of a step."""
    return f"D fan-out {width:,}, CPU"


async def fan_out(run: Run) -> None:
    """Measure every width on the systems that support it. A width above 10,000 is run once."""
    for width in WINDLASS.widths:
        if width > 100 and width > 100_000 * run.scale:
            continue

        def read(entry: Entry, answer: dict[str, Any], load: Load, width: int = width) -> Reading:
            run.results.add(cpu(width), entry.name, "us/step", "lower", all_us(load, width), load.others)
            return answer["seconds"] / width * 1e3, {"seconds": answer["seconds"], **cpu_us(load, width)}

        await run.interleave(
            name(width),
            run.contestants(lambda peer, width=width: width in peer.widths),  # type: ignore[misc]
            "ms/step",
            "lower",
            lambda session, width=width: session.measure("fan", width=width),  # type: ignore[misc]
            read,
            repeats=1 if width > 10_000 else None,
        )
