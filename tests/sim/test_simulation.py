"""The simulation itself: it finds nothing wrong, meets its faults, and comes to the same history every time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from windlass.testing.sim.__main__ import main
from windlass.testing.sim.run import UNDO_SEEDS, Outcome, run_seeds

SEEDS = range(100, 140)


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return run_seeds(SEEDS)


@pytest.mark.covers("SCR-72", "COR-36", "COR-105", "COR-106")
def test_nothing_is_wrong(outcomes: list[Outcome]) -> None:
    assert [(outcome.seed, outcome.wrong) for outcome in outcomes if outcome.wrong] == []


@pytest.mark.covers("COR-45", "COR-105")
def test_every_effect_of_a_job_that_ended_badly_is_undone() -> None:
    found = run_seeds(range(UNDO_SEEDS, UNDO_SEEDS + 40))
    assert [(outcome.seed, outcome.wrong) for outcome in found if outcome.wrong] == []


@pytest.mark.covers("COR-106")
def test_every_kind_of_fault_and_of_ending_was_met(outcomes: list[Outcome]) -> None:
    assert all(sum(getattr(o, kind) for o in outcomes) > 10 for kind in ("kills", "pauses", "errors"))
    states = {state for outcome in outcomes for state in outcome.states}
    assert states == {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "EXPIRED"}


def test_the_same_seed_gives_the_same_history(outcomes: list[Outcome]) -> None:
    # In another order, so that nothing that an earlier seed left behind can matter.
    again = {outcome.seed: outcome.history for outcome in run_seeds(list(reversed(SEEDS))[:12])}
    assert again == {o.seed: o.history for o in outcomes if o.seed in again}
    assert len({outcome.history for outcome in outcomes}) == len(outcomes)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_history_does_not_depend_on_how_python_hashes(outcomes: list[Outcome], hash_seed: str) -> None:
    code = (
        "from windlass.testing.sim.run import run_seeds\n"
        f"for o in run_seeds({list(SEEDS[:8])}): print(o.seed, o.history)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.splitlines() == [f"{o.seed} {o.history}" for o in outcomes[:8]]


def test_the_command_says_what_it_did(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["sim", "--seeds", "3", "--start", "7", "--processes", "1"])
    assert main() == 0
    assert "3 seeds in" in capsys.readouterr().out


def test_the_command_shows_one_seed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["sim", "--seed", "7"])
    assert main() == 0
    told = capsys.readouterr().out
    assert "job.submitted" in told
    assert "seed 7: workers=" in told


def test_a_wrong_seed_is_told_with_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.sim.mutants import claim_keeps_the_attempt_number

    claim_keeps_the_attempt_number(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["sim", "--seeds", "1", "--processes", "1"])
    assert main() == 1
    assert "see it again: python -m windlass.testing.sim --seed 0" in capsys.readouterr().out
