"""`python -m windlass.testing.sim --seeds 1000`: runs seeds, and tells which failed and how to repeat them."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import uvloop

from windlass.testing.postgres import server_dsn
from windlass.testing.sim.run import Outcome, Simulation, run_seeds

SHARE = 50
SHOWN_MAX = 10


def main() -> int:
    """Return 0 when every seed is right, 1 when one is wrong."""
    arguments = _arguments()
    if arguments.seed is not None:
        return _one(arguments.seed)
    seeds = range(arguments.start, arguments.start + arguments.seeds)
    began_s = time.monotonic()
    outcomes: list[Outcome] = []
    for outcome in _all(seeds, arguments.processes):
        outcomes.append(outcome)
        if outcome.wrong:
            _tell(_complaint(outcome))
        if len(outcomes) % 100 == 0:
            _tell(f"{len(outcomes)} of {len(seeds)} seeds, {len(outcomes) / (time.monotonic() - began_s):.1f}/s")
    _tell(_summary(outcomes, time.monotonic() - began_s))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m windlass.testing.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="run this one alone, and show its history")
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    return parser.parse_args()


def _all(seeds: range, processes: int) -> Iterator[Outcome]:
    shares = [seeds[at : at + SHARE] for at in range(0, len(seeds), SHARE)]
    if processes < 2 or len(shares) < 2:
        yield from run_seeds(seeds)
        return
    # Fresh interpreters share one server, which this process ends.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        for outcomes in pool.map(partial(run_seeds, server=server_dsn()), shares):
            yield from outcomes


def _one(seed: int) -> int:
    async def run() -> tuple[Outcome, str]:
        async with Simulation.open() as simulation:
            outcome = await simulation.run(seed)
            return outcome, await simulation.story()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome, story = runner.run(run())
    _tell(story)
    _tell(f"seed {seed}: {outcome.knobs}\nhistory {outcome.history}")
    if outcome.wrong:
        _tell(_complaint(outcome))
    return 1 if outcome.wrong else 0


def _complaint(outcome: Outcome) -> str:
    shown = outcome.wrong[:SHOWN_MAX]
    more = [f"and {len(outcome.wrong) - len(shown)} more"] if len(outcome.wrong) > len(shown) else []
    return "\n  ".join(
        [
            f"seed {outcome.seed} is wrong ({outcome.knobs})",
            *shown,
            *more,
            f"see it again: python -m windlass.testing.sim --seed {outcome.seed}",
        ]
    )


def _summary(outcomes: list[Outcome], took_s: float) -> str:
    states: dict[str, int] = {}
    for outcome in outcomes:
        for state, count in outcome.states.items():
            states[state] = states.get(state, 0) + count
    wrong = sum(bool(outcome.wrong) for outcome in outcomes)
    hours = sum(outcome.simulated_s for outcome in outcomes) / 3600
    return (
        f"{len(outcomes)} seeds in {took_s:.0f} s ({len(outcomes) / took_s:.1f}/s), {wrong} wrong; "
        f"{hours:.1f} simulated hours, {sum(o.turns for o in outcomes):,} turns, "
        f"{sum(o.kills for o in outcomes):,} kills, {sum(o.pauses for o in outcomes):,} pauses, "
        f"{sum(o.errors for o in outcomes):,} lost connections; "
        f"{sum(o.jobs for o in outcomes):,} jobs: " + ", ".join(f"{states[name]} {name}" for name in sorted(states))
    )


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
