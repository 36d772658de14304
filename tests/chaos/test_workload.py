"""What the handlers of a chaos run do, write down, and should come to."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from windlass.core.outcome import TIMEOUTS
from windlass.core.states import JobState
from windlass.recipe.recipe import Recipe
from windlass.testing.chaos import other_workload
from windlass.testing.chaos.answers import ANSWERS, FAILS_WITH, answer
from windlass.testing.chaos.journal import FOLDER_VARIABLE, journal, read_journal
from windlass.testing.chaos.outside import PROVIDERS
from windlass.testing.chaos.process import FAN_BATCH
from windlass.testing.chaos.workload import APPROVED, PARKED_WITHIN_S, POISON, RECIPES, WIDE
from windlass.testing.harness import harness
from windlass.worker.context import Context

# Poison would end the process of the test.
ALL = (*RECIPES, *other_workload.RECIPES)
HARMLESS = [recipe for recipe in ALL if recipe is not POISON]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr("windlass.testing.chaos.journal._files", {})
    return tmp_path


@pytest.mark.parametrize("recipe", HARMLESS, ids=lambda recipe: recipe.name)
async def test_every_recipe_comes_to_its_answer(recipe: Recipe, folder: Path, dsn: str) -> None:
    async with harness(dsn) as h:
        for name in PROVIDERS:
            h.provider(name, lambda model, input: {"echo": input, "model": model})
        job = await h.submit(recipe, n=4)
        if recipe.name == "approval":
            assert await h.send(job, APPROVED, {"n": 5}) == "kept"
            await h.send(job, APPROVED, {"n": 4})
        if recipe.name in ANSWERS:
            assert await h.result(job) == answer(recipe.name, 4)
        else:
            await h.run(job)
            await h.advance(PARKED_WITHIN_S + 1)
            ending = JobState.TIMEOUT if FAILS_WITH[recipe.name] in TIMEOUTS else JobState.FAILED
            await h.assert_status(job, ending, await h.run(job))
            assert (await h.view(job)).error["code"] == FAILS_WITH[recipe.name]


def test_every_recipe_has_an_answer_or_a_failure() -> None:
    assert {recipe.name for recipe in ALL} == ANSWERS.keys() | FAILS_WITH.keys()


def test_a_wide_fan_out_takes_several_batches() -> None:
    assert WIDE >= 3 * FAN_BATCH


def test_an_attempt_writes_down_its_start_and_its_end(folder: Path) -> None:
    with journal(Context(UUID(int=1), "quick", None, 2)):
        pass
    with pytest.raises(ValueError), journal(Context(UUID(int=1), "flaky", 3, 1)):
        raise ValueError
    found = [(line.word, line.step, line.index, line.attempt) for line in read_journal(folder)]
    assert found == [("start", "quick", None, 2), ("end", "quick", None, 2), ("start", "flaky", 3, 1)]


def test_a_line_that_was_cut_off_is_left_out(folder: Path) -> None:
    (folder / "7.log").write_text(f"start {UUID(int=1)} quick - 1 7 1.0\nend {UUID(int=1)} qui")
    assert [line.word for line in read_journal(folder)] == ["start"]
