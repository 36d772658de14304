"""Runs in which recipes ask people: nothing is wrong, and every result of an approval is met."""

from __future__ import annotations

from collections import Counter

import pytest

from windlass.testing.sim.asking import ASKING_FROM
from windlass.testing.sim.run import Outcome, run_seeds

SEEDS = range(ASKING_FROM, ASKING_FROM + 24)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return run_seeds(SEEDS)


def test_nothing_is_wrong_where_people_are_asked(outcomes: list[Outcome]) -> None:
    assert [(outcome.seed, outcome.wrong) for outcome in outcomes if outcome.wrong] == []


def test_jobs_end_in_every_way(outcomes: list[Outcome]) -> None:
    states = Counter[str]()
    for outcome in outcomes:
        states.update(outcome.states)
    assert {"COMPLETED", "FAILED", "CANCELLED"} <= set(states)


def test_the_same_seed_asks_the_same(outcomes: list[Outcome]) -> None:
    again = {outcome.seed: outcome.history for outcome in run_seeds(list(reversed(SEEDS))[:4])}
    assert again == {one.seed: one.history for one in outcomes if one.seed in again}
