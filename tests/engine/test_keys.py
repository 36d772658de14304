"""Concurrency keys as recipes write them: resolved by the router, for every step and every child of a fan-out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.lines import slots
from tests.engine.rig import Rig, plan, task
from windlass.core.plan import Node
from windlass.views import read


async def keys(rig: Rig) -> list[tuple[int, str]]:
    return [(row["no"], row["key"]) for row in await slots(rig.db)]


async def test_a_key_is_made_of_inputs_and_of_what_other_steps_returned(rig: Rig) -> None:
    made = plan(
        task("first"),
        task("plain", concurrency="gpu"),
        task("asked", concurrency="user:${inputs.user.id}"),
        task("told", "first", concurrency="${steps.first.outputs.where}:${steps.first.outputs.n + 1}"),
    )
    job = await rig.submit(made, {"user": {"id": 7}})
    await rig.loops.run_until_idle()
    assert await keys(rig) == [(1, "gpu"), (2, "user:7")]
    await rig.run_out('{"where": "here", "n": 1}')
    told = [event for event in await read.events(rig.db, job) if event.no == 3]
    assert [event.type for event in told] == [
        "step.ready", "step.held", "step.queued", "step.running", "step.completed",
    ]  # fmt: skip
    assert await rig.state(job) == "COMPLETED"
    assert await keys(rig) == []


async def test_each_child_of_a_fan_out_has_a_key_of_its_own(rig: Rig) -> None:
    fan = task("a", each="inputs.us", concurrency="u:${item.name}:${index % 2}:${inputs.x}")
    await rig.submit(plan(fan), {"us": [{"name": "ada"}, {"name": "bob"}, {"name": "ada"}], "x": True})
    await rig.loops.run_until_idle()
    assert await keys(rig) == [(1, "u:ada:0:true"), (2, "u:bob:1:true"), (3, "u:ada:0:true")]
    assert len(await rig.claim()) == 2, "one of each key"


async def test_a_limit_lets_as_many_run_at_once(rig: Rig) -> None:
    fan = task("a", each="inputs.ns", concurrency="k", limit=3)
    await rig.submit(plan(fan), {"ns": list(range(5))})
    await rig.loops.run_until_idle()
    assert len(await rig.claim()) == 3


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (task("a", concurrency="${inputs.none}"), "does not exist"),
        (task("a", concurrency="${inputs.empty}"), "the key is empty"),
        (task("a", concurrency="${inputs.long}"), "the key is 300 characters long"),
        (task("a", concurrency="${inputs.nul}"), "the key is text with NUL"),
        (task("a", concurrency="${inputs.n / 0}"), "steps.a.concurrency"),
    ],
)
async def test_a_key_that_cannot_be_made_fails_the_step(rig: Rig, node: Node, told: str) -> None:
    inputs: dict[str, Any] = {"empty": "", "long": "x" * 300, "nul": "a\x00b", "n": 1}
    job = await rig.submit(plan(node), inputs)
    await rig.loops.run_until_idle()
    error = (await read.job(rig.db, job)).error
    assert (error["code"], told in error["message"]) == ("bad_expression", True), error
    assert await keys(rig) == []


async def test_a_condition_is_asked_before_the_key(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", when="inputs.x", concurrency="${inputs.none}")), {"x": False})
    await rig.loops.run_until_idle()
    assert await rig.states(job) == ["SKIPPED"]
