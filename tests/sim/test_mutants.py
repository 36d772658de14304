"""A checker that misses a planted flaw is broken."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

import tests.sim.outside_mutants  # noqa: F401 -- registers them
from tests.sim.mutants import MUTANTS, Mutant
from windlass.testing.sim.run import Knobs, Outcome, Simulation


def first_wrong(mutant: Mutant) -> tuple[int, Outcome] | None:
    async def search() -> tuple[int, Outcome] | None:
        async with Simulation.open() as simulation:
            seeds = (seed for seed in range(mutant.seeds_max) if not mutant.is_outer or Knobs.of(seed).is_outer)
            for seed in seeds:
                outcome = await simulation.run(seed)
                if outcome.wrong:
                    return seed, outcome
        return None

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(search())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulation_notices_that(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.plant(monkeypatch)
    found = first_wrong(mutant)
    assert found is not None, f"{mutant.name} did not show in {mutant.seeds_max} seeds"
    print(f"{mutant.name}: seed {found[0]}: {found[1].wrong[0]}")


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
