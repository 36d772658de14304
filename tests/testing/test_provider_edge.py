"""The policy judges a request to a provider before it goes out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import windlass as wl
from windlass.engine import publish
from windlass.engine.door import policies_of
from windlass.testing import Harness, harness
from windlass.views.decisions import decisions


@wl.step(provider="painter", wait="2h")
async def paint(ctx: wl.Context, prompt: str) -> Any:
    return await ctx.provider.start(model="oil", input={"prompt": prompt})


@wl.recipe
def picture(prompt: str):
    return paint(prompt)


@wl.step
async def told(ctx: wl.Context) -> Any:
    return await ctx.constraints()


@wl.step
def told_plainly(ctx: wl.Context) -> Any:
    return ctx.constraints()


@wl.recipe
def telling():
    return {"a": told(), "b": told_plainly()}


@pytest.fixture
async def h(dsn: str) -> AsyncIterator[Harness]:
    async with harness(dsn) as made:
        made.provider("painter", lambda model, input: input["prompt"])
        yield made


async def put(h: Harness, rule: str) -> None:
    text = f'version: "1"\ndefault_decision: allow\nrules:\n- {rule}\n'
    await publish.publish(h.db, {"main": text}, by="op", untested="a test")
    policies_of(h.db).expire()


async def test_a_request_that_no_rule_concerns_goes_out(h: Harness) -> None:
    await put(h, "{id: other, at: [provider], match: {topics: [job.else.*]}, decision: deny}")
    job = await h.submit(picture, prompt="a fox")
    assert await h.result(job) == "a fox"


async def test_a_denied_request_never_goes_out_and_ends_its_step(h: Harness) -> None:
    await put(h, "{id: no-oil, at: [provider], match: {topics: [job.picture.paint]}, decision: deny, reason: no oil}")
    job = await h.submit(picture, prompt="a fox")
    assert await h.run(job) == "DENIED"
    assert h.asked("painter") == []
    await h.assert_steps(job, {"paint": "DENIED"})
    [one] = (await decisions(h.db, job.job_id)).verdicts
    assert (one.edge, one.no, one.attempt, one.decision, one.rule) == ("provider", 0, 1, "deny", "no-oil")
    assert (await h.view(job)).error["code"] == "safety_denied"  # type: ignore[index]


async def test_a_job_with_allowed_destinations_reaches_no_other_host(h: Harness) -> None:
    await put(
        h,
        "{id: local, match: {topics: [job.picture]}, decision: allow,"
        " constraints: {allowed_destinations: ['*.acme.example']}}",
    )
    job = await h.submit(picture, prompt="a fox")
    assert await h.run(job) == "DENIED"
    assert h.asked("painter") == []
    assert (await h.view(job)).error["code"] == "destination_denied"  # type: ignore[index]


async def test_a_throttled_request_is_tried_again_without_using_up_an_attempt(h: Harness) -> None:
    await put(h, "{id: slow, at: [provider], match: {topics: [job.picture.paint]}, decision: throttle}")
    job = await h.submit(picture, prompt="a fox")
    for _ in range(5):
        await h.advance("6s")
    assert h.asked("painter") == []
    await h.assert_steps(job, {"paint": "PARKED"})
    await put(h, "{id: go, at: [provider], match: {topics: [job.picture.paint]}, decision: allow}")
    assert await h.result(job) == "a fox"


async def test_a_handler_is_told_the_limits_that_only_it_can_keep(h: Harness) -> None:
    await put(
        h,
        "{id: tight, match: {topics: [job.telling]}, decision: allow,"
        " constraints: {sandbox: {isolated: true}, budgets: {max_retries: 2}}}",
    )
    limits = {"sandbox": {"isolated": True}, "budgets": {"max_retries": 2}}
    assert await h.result(await h.submit(telling)) == {"a": limits, "b": limits}


async def test_without_a_policy_there_are_no_limits(h: Harness) -> None:
    assert await h.result(await h.submit(telling)) == {"a": {}, "b": {}}
