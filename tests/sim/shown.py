"""In which seed each planted flaw showed last, so that it is not searched for again and again.

A change of the engine or of the simulation changes what happens in a seed. A flaw that no longer shows in its seed is
searched for from the first one on, which takes longer and proves the same. To write the table anew:

    python -m tests.sim.shown
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

import tests.sim.asking_mutants
import tests.sim.outside_mutants
import tests.sim.poison_mutants
import tests.sim.undo_mutants
import tests.sim.worker_mutants  # noqa: F401 -- registers them
from tests.sim.mutants import MUTANTS, Mutant
from windlass.testing.sim.asking import ASKING_FROM
from windlass.testing.sim.run import UNDO_SEEDS, Knobs, Outcome, Simulation

TABLE = Path(__file__).with_suffix(".json")


def first_wrong(mutant: Mutant) -> tuple[int, Outcome] | None:
    """The seed that shows the flaw, which must be planted, and what is wrong then."""

    async def search() -> tuple[int, Outcome] | None:
        async with Simulation.open() as simulation:
            for seed in _seeds(mutant):
                outcome = await simulation.run(seed)
                if outcome.wrong:
                    return seed, outcome
        return None

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(search())


def _seeds(mutant: Mutant) -> Iterator[int]:
    last = json.loads(TABLE.read_text()).get(mutant.name)
    if last is not None:
        yield last
    first = ASKING_FROM if mutant.is_asking else UNDO_SEEDS if mutant.has_undo else 0
    for seed in range(first, first + mutant.seeds_max):
        knobs = Knobs.of(seed)
        if seed != last and knobs.is_outer >= mutant.is_outer and knobs.has_poison >= mutant.has_poison:
            yield seed


def _write() -> None:
    found: dict[str, int] = {}
    for mutant in MUTANTS:
        with pytest.MonkeyPatch.context() as patch:
            mutant.plant(patch)
            if (shown := first_wrong(mutant)) is not None:
                found[mutant.name] = shown[0]
        print(f"{mutant.name}: {found.get(mutant.name, 'not found')}", flush=True)
    TABLE.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    _write()
