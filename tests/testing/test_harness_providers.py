"""Users test steps that ask a provider without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

import windlass as wl
from windlass.providers.errors import ProviderDown
from windlass.testing import Harness, harness


@wl.step(provider="painter", wait="2h")
async def paint(ctx: wl.Context, prompt: str) -> Any:
    return await ctx.provider.start(model="oil", input={"prompt": prompt})


@wl.recipe
def picture(prompt: str):
    return paint(prompt)


@wl.recipe
def sketch(prompt: str):
    return wl.call("painter", model="pencil", input={"prompt": prompt})


@wl.recipe
def gallery(prompts: list[str]):
    return paint.map(prompts)


@pytest.fixture
async def h(dsn: str) -> AsyncIterator[Harness]:
    async with harness(dsn) as made:
        yield made


@pytest.mark.parametrize(("recipe", "model"), [(picture, "oil"), (sketch, "pencil")])
async def test_a_scripted_provider_does_the_step(h: Harness, recipe: wl.Recipe, model: str) -> None:
    h.provider("painter", lambda model, input: f"{input['prompt']} in {model}")
    job = await h.submit(recipe, prompt="a fox")
    assert await h.result(job) == f"a fox in {model}"
    [work] = h.asked("painter")
    assert (work.model, work.input) == (model, {"prompt": "a fox"})


async def test_a_provider_without_a_script_waits_for_the_tests_word(h: Harness) -> None:
    job = await h.submit(picture, prompt="a fox")
    assert await h.run(job) == "PROCESSING"
    await h.assert_steps(job, {"paint": "PARKED"})
    assert await h.answer(job, "paint", {"url": "x"})
    assert await h.result(job) == {"url": "x"}


async def test_a_wait_that_nobody_ends_is_over_in_time(h: Harness) -> None:
    before = h.clock.now()
    job = await h.submit(picture, prompt="a fox")
    await h.run(job)
    await h.advance("2h")
    assert [work.is_cancelled for work in h.asked("painter")][:1] == [False]
    assert h.clock.now() - before == timedelta(hours=2)
    assert (await h.steps(job))["paint"].failures == 1


async def test_what_a_script_raises_fails_the_step_and_the_providers_own_trouble_does_not(h: Harness) -> None:
    told: list[str] = []

    async def paint_badly(model: str, input: Any) -> Any:
        told.append(model)
        if len(told) < 3:
            raise ProviderDown("tired")
        raise ValueError("no such colour")

    h.provider("painter", paint_badly)
    job = await h.submit(picture, prompt="a fox")
    assert await h.run(job) == "FAILED"
    assert "no such colour" in str((await h.view(job)).error)
    assert len(told) == 3


async def test_no_more_run_at_once_than_the_provider_has_places(h: Harness) -> None:
    h.provider("painter", None, concurrency=2)
    job = await h.submit(gallery, prompts=["a", "b", "c", "d", "e"])
    await h.run(job)
    assert len(h.asked("painter")) == 2
    h.provider("painter", lambda model, input: input["prompt"], concurrency=2)
    assert await h.result(job) == ["a", "b", "c", "d", "e"]
    assert len(h.asked("painter")) == 5
