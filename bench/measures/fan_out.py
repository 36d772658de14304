"""Test D: a fan-out of many steps in one job, and its join. What counts is the cost of one step as widths grow."""

from typing import Any

from bench.machine import Load
from bench.measures.run import Reading, Run, cpu_us
from bench.roster import WINDLASS, Entry


def name(width: int) -> str:
    """The test's name for one width."""
    return f"D fan-out {width:,}"


async def fan_out(run: Run) -> None:
    """Every width, over the systems that are asked for it. A width of 10,000 and more is run once."""
    for width in WINDLASS.widths:
        if width > 100 and width > 100_000 * run.scale:
            continue

        def read(entry: Entry, answer: dict[str, Any], load: Load, width: int = width) -> Reading:
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
