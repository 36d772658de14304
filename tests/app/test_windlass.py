"""The SDK: what a Python program submits, waits for, and hears when it goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import windlass as wl
from windlass.app.job import JobCancelled, JobFailed
from windlass.app.service import holding, is_held, serving
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import BadInput, BadSetting, Conflict, NotFound, Refused, WaitTimeout, WrongState
from windlass.core.states import JobState
from windlass.engine import installation
from windlass.views import read, recipes

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@wl.step
async def double(n: int) -> int:
    return 2 * n


@wl.step
def refuse(n: int) -> int:
    raise wl.Permanent(f"{n} is not wanted")


@wl.step(queue="nobody")
def never(n: int) -> int:
    return n


@wl.recipe
def doubled(n: int):
    return double(n)


@wl.recipe
def quadrupled(n: int):
    return doubled(doubled(n))


@wl.recipe
def refused(n: int):
    return refuse(double(n))


@wl.recipe
def waiting(n: int = 1, key: str = ""):
    return never(n)


def app() -> wl.App:
    made = wl.App()
    made.add([doubled, quadrupled, refused, waiting])
    return made


@pytest.fixture
async def windlass(dsn: str, tmp_path: Path) -> AsyncIterator[Windlass]:
    async with Windlass.connect(dsn, settings=Settings(home=tmp_path)) as connected, serving(connected, app()):
        yield connected


async def test_a_recipe_is_submitted_and_its_result_awaited(windlass: Windlass) -> None:
    job = await windlass.submit(doubled, n=21)
    assert await job.result(timeout=60) == 42
    assert await job.status() is JobState.COMPLETED
    assert [event.type async for event in job.events()][-1] == "job.completed"


async def test_a_registered_recipe_is_submitted_by_name(windlass: Windlass) -> None:
    assert await (await windlass.submit("quadrupled", n=10)).result(timeout=60) == 40
    with pytest.raises(NotFound):
        await windlass.submit("unheard_of", n=1)


async def test_a_recipe_brings_the_recipes_that_it_uses(dsn: str, tmp_path: Path) -> None:
    async with Windlass.connect(dsn, settings=Settings(home=tmp_path)) as connected:
        assert await connected.register(quadrupled) == {"doubled": 1, "quadrupled": 1}
        assert {one.name for one in await recipes.listing(connected.db)} == {"doubled", "quadrupled"}


async def test_a_submit_in_python_uses_the_plan_of_its_own_code_and_a_name_the_newest_version(
    windlass: Windlass, caplog: pytest.LogCaptureFixture
) -> None:
    @wl.recipe(name="doubled")
    def newer(n: int):
        return double(double(n))

    assert await windlass.register(newer) == {"doubled": 2}
    assert await windlass.register(doubled) == {"doubled": 1}
    assert "this code is version 1, and jobs submitted by name use version 2" in caplog.text
    assert await (await windlass.submit(doubled, n=1)).result(timeout=60) == 2
    assert await (await windlass.submit("doubled", n=1)).result(timeout=60) == 4
    assert await windlass.register(doubled, newest=True) == {"doubled": 3}


async def test_a_failed_job_raises_with_its_step_and_fault(windlass: Windlass) -> None:
    job = await windlass.submit(refused, n=4)
    with pytest.raises(JobFailed) as caught:
        await job.result(timeout=60)
    assert (caught.value.status, caught.value.step) == (JobState.FAILED, "refuse")
    assert "8 is not wanted" in caught.value.fault["message"] and str(job.job_id) in str(caught.value)


async def test_a_cancelled_job_raises_and_an_unfinished_one_can_be_waited_for_again(windlass: Windlass) -> None:
    job = await windlass.submit(waiting)
    with pytest.raises(WaitTimeout):
        await job.result(timeout=0.05)
    assert "no worker" in (await job.why("never"))[0].because
    await job.cancel("not needed")
    with pytest.raises(JobCancelled, match="not needed"):
        await windlass.job(str(job.job_id)).result(timeout=60)


async def test_many_jobs_are_made_in_few_commits_and_can_be_made_again_safely(windlass: Windlass) -> None:
    keys = [f"k{n}" for n in range(5)]
    jobs = await windlass.submit_many(doubled, [{"n": n} for n in range(5)], keys=keys)
    assert [await job.result(timeout=60) for job in jobs] == [0, 2, 4, 6, 8]
    again = await windlass.submit_many(doubled, [{"n": n} for n in range(5)], keys=keys)
    assert [job.job_id for job in again] == [job.job_id for job in jobs] and not any(job.is_new for job in again)
    with pytest.raises(Conflict):
        await windlass.submit_many(doubled, [{"n": 100}], keys=["k0"])


async def test_one_bad_input_among_many_makes_no_job(windlass: Windlass) -> None:
    bad: list[dict[str, Any]] = [{"n": 1}, {"n": "one"}]
    with pytest.raises(BadInput):
        await windlass.submit_many(doubled, bad, keys=["a", "b"])
    job = await windlass.submit(doubled, n=2, key="a")
    assert job.is_new


async def test_the_same_key_gives_the_same_job_per_caller(windlass: Windlass) -> None:
    first = await windlass.submit(waiting, key="k", n=1)
    assert (await windlass.submit(waiting, key="k", n=1)).job_id == first.job_id
    with pytest.raises(Conflict):
        await windlass.submit(waiting, key="k", n=2)
    other = await windlass.as_caller("ana").submit(waiting, key="k", n=1)
    assert other.is_new and other.job_id != first.job_id


async def test_inputs_whose_names_are_taken_go_into_inputs(windlass: Windlass) -> None:
    job = await windlass.submit(waiting, inputs={"key": "mine"}, labels={"a": "b"}, priority=3, deadline="10m", ttl=60)
    view = await job.view()
    assert await job.input() == {"n": 1, "key": "mine"} and view.labels == {"a": "b"} and view.priority == 3
    assert view.deadline_at is not None and view.deadline_at - view.created_at == timedelta(minutes=10)


async def test_a_database_without_the_schema_is_refused_and_the_embedded_one_is_brought_up_to_date(
    server_folder: Path,
) -> None:
    async with Windlass.connect(home=server_folder) as connected, serving(connected, app()):
        assert await (await connected.submit(doubled, n=1)).result(timeout=60) == 2
        with pytest.raises(BadSetting):
            async with Windlass.connect(connected.dsn.replace("/postgres?", "/template1?")):
                pass


def test_one_holder_per_folder(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    with holding(tmp_path):
        assert is_held(tmp_path)
        with pytest.raises(WrongState, match="another `windlass up`"), holding(tmp_path):
            pass
    assert not is_held(tmp_path)


async def test_a_job_of_a_served_installation_is_followed(dsn: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    async with Windlass.connect(dsn, settings=settings) as windlass:
        assert not windlass.is_served
        alone = await windlass.submit(waiting)
        assert (await read.job(windlass.db, alone.job_id)).correlation_id is None
        hooked = await windlass.submit(waiting, webhook=("https://93.184.216.34", SECRET))
        assert (await read.job(windlass.db, hooked.job_id)).correlation_id == str(hooked.job_id)
        await installation.serve(windlass.db, b"check")
    async with Windlass.connect(dsn, settings=settings) as windlass:
        assert windlass.is_served
        made = await windlass.submit_many(waiting, [{}, {}])
        made.append(await windlass.as_caller("ada").submit(waiting))
        for job in made:
            assert (await read.job(windlass.db, job.job_id)).correlation_id == str(job.job_id)
        named = await windlass.submit(waiting, correlation_id="order 7")
        assert (await read.job(windlass.db, named.job_id)).correlation_id == "order 7"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": 7}, "key must be text, not 7"),
        ({"labels": ["a"]}, "labels must be texts by name"),
        ({"labels": {"a": 1}}, "labels must be texts by name"),
        ({"priority": "high"}, "priority must be a whole number"),
        ({"webhook": "https://example.org"}, "webhook must be a URL and a secret"),
        ({"correlation_id": 7}, "correlation_id must be text"),
        ({"correlation_id": "x" * 201}, "a correlation id has 1 to 200 characters"),
        ({"inputs": [1]}, "inputs must be values by name"),
        ({"ttl": 0}, "ttl must be longer than 0"),
        ({"ttl": "0s"}, "ttl must be longer than 0"),
        ({"ttl": timedelta(seconds=-1)}, "ttl must be longer than 0"),
        ({"deadline": 0}, "deadline must be longer than 0"),
        ({"deadline": 10**400}, "is not between 0 and ten years"),
        ({"unknown": 1}, "'unknown' was unexpected"),
        ({"n": object()}, "inputs.n"),
        ({"n": "seven"}, "inputs.n"),
    ],
)
async def test_a_slip_in_a_submit_is_refused_with_the_name_of_the_argument(
    dsn: str, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    async with Windlass.connect(dsn, settings=Settings(home=tmp_path)) as connected:
        with pytest.raises(Refused, match=words):
            await connected.submit(doubled, **{"n": 1, **options})
        assert await read.jobs(connected.db) == []


async def test_other_slips_are_refused_too(dsn: str, tmp_path: Path) -> None:
    def plain(n: int) -> int:
        return n

    async with Windlass.connect(dsn, settings=Settings(home=tmp_path)) as connected:
        with pytest.raises(BadInput, match="required property"):
            await connected.submit(doubled)
        for wrong, words in ((7, "Pass a recipe"), (plain, "@wl.recipe"), (double, "@wl.recipe")):
            with pytest.raises(BadInput, match=f"is not a recipe.*{words}"):
                await connected.submit(wrong, n=1)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await connected.submit("a\x00")
        with pytest.raises(BadInput, match="is not a job's id"):
            connected.job("7")
        with pytest.raises(BadInput, match="inputs must be a list"):
            await connected.submit_many(doubled, {"n": 1})  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="2 inputs have 1 keys"):
            await connected.submit_many(doubled, [{"n": 1}, {"n": 2}], keys=["a"])
        with pytest.raises(BadSetting, match="is not a queue's name"):
            connected.worker(app(), queues=["a b"])
        job = await connected.submit(doubled, n=1)
        with pytest.raises(BadInput, match="timeout must be a number of seconds"):
            await job.result(timeout="1m")  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="name must be text"):
            await job.send_event(7)  # type: ignore[arg-type]
