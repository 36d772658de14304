"""Providers as a whole process has them: from the file to the result, and what is said when the file is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import windlass as wl
from tests.providers.ground import providers_yaml
from windlass.access.callbacks import Callbacks
from windlass.access.secret import Secret
from windlass.app import providing
from windlass.app.service import serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadInput, BadSetting
from windlass.engine import budgets
from windlass.providers.config import ProviderConfig
from windlass.pure.job_failed import JobFailed
from windlass.testing.fake_provider import FakeProvider
from windlass.views import providers as provider_views

SECRET = "a secret of thirty-two characters"


@wl.step
def token(ctx: wl.Context) -> str:
    return ctx.token


@wl.step
def spawn(ctx: wl.Context, name: str) -> str:
    return str(ctx.spawn(greeting, {"name": name}, key="the one"))


@wl.step(provider="fake")
async def draw(ctx: wl.Context) -> Any:
    return await ctx.provider.start(input={"prompt": "a fox"})


@wl.step
def greet(name: str) -> str:
    return f"hello {name}"


@wl.recipe
def greeting(name: str):
    return greet(name)


@wl.recipe
def drawing():
    return draw()


@wl.recipe
def picture(prompt: str):
    return wl.call("fake", model="image", input={"prompt": prompt})


@wl.recipe
def signing():
    return token()


@wl.recipe
def spawning(name: str):
    return spawn(name)


class Studio:
    def __init__(self, *recipes: wl.Recipe) -> None:
        self.recipes = {recipe.name: recipe for recipe in recipes}
        self.steps = {name: step for recipe in recipes for name, step in recipe.steps.items()}


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    async with FakeProvider(tmp_path / "journal", is_durable=False) as made:
        yield made


def settings(dsn: str, home: Path, **given: Any) -> Settings:
    return Settings(database_url=dsn, home=home, secret=(SECRET,), **given)


async def test_a_recipe_that_only_calls_a_provider_runs_where_the_file_is_set(
    dsn: str, tmp_path: Path, fake: FakeProvider
) -> None:
    await fake.behave(seconds=0.2)
    (tmp_path / "providers.yaml").write_text(providers_yaml(fake, concurrency=3, rate=500))
    given = settings(dsn, tmp_path, providers=tmp_path / "providers.yaml")
    async with Windlass.connect(settings=given) as windlass, serving(windlass, Studio(picture)) as service:
        job = await windlass.submit(picture, prompt="a fox")
        assert (await job.result(timeout=60))["echo"] == {"prompt": "a fox"}
        assert service.services.alive()["poller"] < 20
        [view] = await provider_views.views(windlass.db, "fake")
        assert (view.concurrency, view.rate, view.holders) == (3, 500.0, ())


async def test_without_the_file_the_step_fails_with_what_to_do(dsn: str, tmp_path: Path) -> None:
    async with (
        Windlass.connect(settings=settings(dsn, tmp_path)) as windlass,
        serving(windlass, Studio(drawing)) as service,
    ):
        assert service.poller is None
        job = await windlass.submit(drawing)
        with pytest.raises(JobFailed, match="WINDLASS_PROVIDERS"):
            await job.result(timeout=60)


async def test_a_file_that_is_wrong_is_said_so_before_anything_runs(dsn: str, tmp_path: Path) -> None:
    path = tmp_path / "providers.yaml"
    for text, told in (("providers: {fal: {}}", "has no `adapter`"), (None, "cannot be read")):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        async with Windlass.connect(settings=settings(dsn, tmp_path, providers=path)) as windlass:
            with pytest.raises(BadSetting, match=told):
                async with serving(windlass, Studio(greeting)):
                    raise AssertionError("it runs")


async def test_a_handlers_token_speaks_for_its_attempt(dsn: str, tmp_path: Path) -> None:
    async with Windlass.connect(settings=settings(dsn, tmp_path)) as windlass, serving(windlass, Studio(signing)):
        job = await windlass.submit(signing)
        found = Callbacks(Secret.of([SECRET])).read(await job.result(timeout=60))
        assert (found.job_id, found.no, found.attempt) == (job.job_id, 0, 1)


async def test_a_worker_without_the_secret_says_so(dsn: str, tmp_path: Path) -> None:
    given = Settings(database_url=dsn, home=tmp_path)
    async with Windlass.connect(settings=given) as windlass, serving(windlass, Studio(signing)):
        job = await windlass.submit(signing)
        with pytest.raises(JobFailed, match="WINDLASS_SECRET"):
            await job.result(timeout=60)


async def test_a_plain_handler_makes_jobs_of_its_own(dsn: str, tmp_path: Path) -> None:
    async with (
        Windlass.connect(settings=settings(dsn, tmp_path)) as windlass,
        serving(windlass, Studio(greeting, spawning)),
    ):
        job = await windlass.submit(spawning, name="Ada")
        child = windlass.job(await job.result(timeout=60))
        assert await child.result(timeout=60) == "hello Ada"


async def test_a_job_is_made_with_its_budget(dsn: str, tmp_path: Path) -> None:
    async with Windlass.connect(settings=settings(dsn, tmp_path)) as windlass:
        job = await windlass.submit(greeting, name="Ada", budget="1.50")
        assert str((await budgets.get(windlass.db, "job", str(job.job_id))).most) == "1.50"
        with pytest.raises(BadInput, match="amount of money"):
            await windlass.submit(greeting, name="Ada", budget="much")


def test_a_provider_on_this_machine_tells_the_server_of_this_home(tmp_path: Path) -> None:
    local, remote = (
        ProviderConfig("p", "http", base_url=url) for url in ("http://127.0.0.1:9/x", "https://far.example")
    )
    given = Settings(home=tmp_path)
    assert providing._public_url(given, local) is None
    (tmp_path / "server").write_text("http://127.0.0.1:8420\n")
    assert providing._public_url(given, local) == "http://127.0.0.1:8420"
    assert providing._public_url(given, remote) is None
    assert (
        providing._public_url(Settings(home=tmp_path, public_url="https://us.example"), remote) == "https://us.example"
    )
