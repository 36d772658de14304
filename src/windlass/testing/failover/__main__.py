"""`python -m windlass.testing.failover --rounds 20 --mode sync`: real failovers under load, and their cost."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from windlass.testing.failover.rounds import Cost, run_rounds


def main() -> int:
    """Run, print a line for each round, and return 1 if a rule was broken."""
    parser = argparse.ArgumentParser(prog="failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--mode", choices=("sync", "async"), default="sync")
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
        Path(folder).chmod(0o711)
        rounds = run_rounds(
            Path(folder),
            is_synchronous=given.mode == "sync",
            rounds=given.rounds,
            on_round=lambda cost: tell(f"{given.mode}: {told(cost)}"),
        )
        costs = asyncio.run(rounds)
    tell(f"{given.mode}, {len(costs)} failovers: {total(costs)}")
    for wrong in [wrong for cost in costs for wrong in cost.wrong]:
        tell(f"WRONG: {wrong}")
    return 1 if any(cost.wrong for cost in costs) else 0


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def told(cost: Cost) -> str:
    """Describe one failover in a line."""
    return (
        f"{cost.accepted} accepted, {cost.lost} lost;"
        f" {cost.acknowledged} steps acknowledged, {cost.run_again} run again;"
        f" {cost.refused} late reports refused; {cost.outage_s:.1f} s without a primary;"
        f" timeline {cost.timeline[0]} to {cost.timeline[1]}, epoch {cost.epoch[0]} to {cost.epoch[1]}"
    )


def total(costs: list[Cost]) -> str:
    """Describe all failovers together."""
    return (
        f"{sum(c.accepted for c in costs)} accepted, {sum(c.lost for c in costs)} lost;"
        f" {sum(c.acknowledged for c in costs)} steps acknowledged, {sum(c.run_again for c in costs)} run again;"
        f" {sum(c.refused for c in costs)} late reports refused; {sum(len(c.wrong) for c in costs)} wrong"
    )


if __name__ == "__main__":
    sys.exit(main())
