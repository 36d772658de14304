"""A checker that misses a planted flaw is broken."""

from __future__ import annotations

import faulthandler
import sys

import pytest

from tests.sim.mutants import MUTANTS, Mutant
from tests.sim.shown import first_wrong

# A search through all seeds takes minutes, which is no hang.
SEARCH_MAX_S = 1200


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulation_notices_that(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    faulthandler.dump_traceback_later(SEARCH_MAX_S, exit=True, file=sys.__stderr__)
    mutant.plant(monkeypatch)
    found = first_wrong(mutant)
    assert found is not None, f"{mutant.name} did not show in {mutant.seeds_max} seeds"
    print(f"{mutant.name}: seed {found[0]}: {found[1].wrong[0]}")


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
