"""`@step`: a plain call outside a recipe, a step of the graph inside one."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

import windlass as wl
from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.core.queue import BACKGROUND_PROCESSING, MAIN_PROCESSING
from windlass.core.retry import Retry
from windlass.recipe.step import Step


@wl.step
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@wl.step(name="shout", retry=wl.Retry(max_attempts=4), timeout="2m", queue="loud", provider="fal", parks=True)
async def shout_it(text: str) -> str:
    return text.upper()


@wl.step(cpu=True)
def crunch(n: int) -> int:
    return n


class Context:
    """Stands in for the worker's context, which recipes know by its name only."""


Context.__module__ = "windlass.worker.context"


@wl.step
def watched(ctx: Context, x: int, other: Context | None = None) -> int:
    return x


@wl.step
def unreadable(ctx: wl.Context, x: NoSuchType) -> int:  # type: ignore[name-defined]  # noqa: F821
    return x


@wl.step
def anything(**named: Any) -> Any:
    return named


def test_outside_a_recipe_a_step_is_its_function() -> None:
    assert add(1) == 2
    assert add(a=1, b=5) == 6
    assert asyncio.run(shout_it("hi")) == "HI"


def test_a_step_keeps_the_functions_name_and_text() -> None:
    assert (add.__name__, add.__doc__, add.name) == ("add", "Add.", "add")
    assert add.where.endswith(f"test_step.py:{add.function.__code__.co_firstlineno}")
    assert repr(add) == "<step add>"


def test_options_are_kept() -> None:
    asks = shout_it.asks
    assert (shout_it.name, asks.retry, asks.timeout_s) == ("shout", Retry(max_attempts=4), 120.0)
    assert (asks.queue, asks.provider, shout_it.parks) == ("loud", "fal", True)
    assert shout_it.is_async
    assert not shout_it.is_cpu


def test_an_option_that_does_not_exist_is_named() -> None:
    options: Any = {"retries": 3}
    with pytest.raises(TypeError, match="step add got an unexpected keyword argument 'retries'"):
        wl.step(**options)(add.function)
    with pytest.raises(TypeError, match="provider fal got an unexpected keyword argument 'retries'"):
        wl.provider("fal", **options)


@pytest.mark.covers("SCR-51", "SCR-54")
def test_cpu_work_has_its_own_queue() -> None:
    assert (crunch.is_cpu, crunch.asks.queue) == (True, BACKGROUND_PROCESSING)
    assert (add.is_cpu, add.asks.queue) == (False, MAIN_PROCESSING)


def test_a_step_is_pickled_by_its_name() -> None:
    assert isinstance(shout_it, Step)
    assert pickle.loads(pickle.dumps(shout_it)) is shout_it


def test_the_context_is_no_input() -> None:
    assert watched.context is not None
    assert watched.parameters.names == ("x",)
    assert add.context is None


def test_hints_that_cannot_be_read_do_not_matter_to_a_step() -> None:
    assert unreadable.context == "ctx"
    assert unreadable.parameters.names == ("x",)


def test_a_function_that_takes_any_name_is_given_any_name() -> None:
    @wl.recipe
    def r() -> Any:
        return anything(x=1, y=2)

    assert r.plan.nodes[0].with_ == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: add(), "steps.add.with: add needs 'a'"),
        (lambda: add(1, 2, 3), "steps.add.with: add takes 2 arguments, and 3 are given"),
        (lambda: add(1, a=2), "steps.add.with.a: add is given 'a' twice"),
        (lambda: add(1, bb=2), "steps.add.with.bb: add takes no 'bb'"),
        (lambda: watched(1, ctx=2), "steps.watched.with.ctx: watched takes no 'ctx'"),
        (lambda: add.map(), "steps.add.each: add.map takes the items first"),
        (lambda: add.map([1], [2]), "steps.add.each: add.map takes the items first"),
        (lambda: add.map(a=[1], b=2), "steps.add.each: add.map takes the items first"),
        (lambda: add.map([1], a=1, b=2), "steps.add.each: add has no parameter left"),
        (lambda: add.map([1], c=1), "steps.add.with.c: add takes no 'c'"),
        (lambda: add(1).after(add), "steps.add.after: <step add> is not a step"),
        (lambda: wl.sleep("soon"), "steps.sleep.sleep: 'soon' is not a length of time"),
        (lambda: add(1).named("no good"), "steps.no good: a step's name cannot be 'no good'"),
    ],
)
def test_a_wrong_call_is_refused_with_place_and_reason(call: Any, message: str) -> None:
    @wl.recipe
    def r() -> Any:
        call()

    with pytest.raises(BadRecipe) as caught:
        _ = r.plan
    assert message in str(caught.value)
    assert "in recipe r, " in str(caught.value)


@pytest.mark.parametrize("use", [lambda: add.map([1]), lambda: wl.sleep("5m")])
def test_what_needs_a_recipe_says_so(use: Any) -> None:
    with pytest.raises(BadRecipe, match=r"inside a function with @wl\.recipe"):
        use()


def _positional(a: int, /) -> None: ...
def _starred(*a: int) -> None: ...
def _yields() -> Any:
    yield 1


async def _async_yields() -> Any:
    yield 1


async def _async_cpu() -> None: ...


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: wl.step(_positional), "by position only"),
        (lambda: wl.step(_starred), "by position only"),
        (lambda: wl.step(_yields), "must return one value"),
        (lambda: wl.step(_async_yields), "must return one value"),
        (lambda: wl.step(cpu=True)(_async_cpu), "cannot be async"),
        (lambda: wl.step(len), "decorates functions"),
        (lambda: wl.step(timeout="x")(add.function), "not a length of time"),
        (lambda: wl.step(timeout=-1)(add.function), "between 0 and ten years"),
        (lambda: wl.step(retry=3)(add.function), "Retry(max_attempts=4)"),
        (lambda: wl.step(retry=wl.Retry(max_attempts=0))(add.function), "max_attempts must be 1"),
        (lambda: wl.step(retry=wl.Retry(max_attempts=True))(add.function), "max_attempts must be 1"),
        (lambda: wl.step(retry=wl.Retry(factor=0.5))(add.function), "factor must be 1"),
        (lambda: wl.step(retry=wl.Retry(jitter=float("nan")))(add.function), "jitter must be 0"),
        (lambda: wl.step(retry=wl.Retry(base_s="1"))(add.function), "base_s must be 0"),  # type: ignore[arg-type]
    ],
)
def test_a_function_that_cannot_be_a_step_is_refused_at_once(make: Any, reason: str) -> None:
    with pytest.raises(BadRecipe) as caught:
        make()
    assert reason in str(caught.value)


def test_a_map_gives_the_item_to_the_first_free_parameter() -> None:
    @wl.recipe
    def r(items: list[int]) -> Any:
        add.map(items).named("plain")
        add.map(items, a=3).named("second")
        add.map(items, a=wl.item["n"], b=wl.index).named("said")
        add.map([1, items[0]]).named("literal")

    plan = r.plan
    nodes = {node.name: node for node in plan.nodes}
    assert nodes["plain"].with_ == {"a": "${item}"}
    assert nodes["second"].with_ == {"a": 3, "b": "${item}"}
    assert nodes["said"].with_ == {"a": "${item.n}", "b": "${index}"}
    assert nodes["literal"].each == "[1, inputs.items[0]]"
    assert all(node.kind is NodeKind.TASK for node in plan.nodes)


def test_a_map_may_name_the_parameter_of_the_items() -> None:
    @wl.recipe
    def r(items: list[int]) -> Any:
        return crunch.map(n=items)

    assert (r.plan.nodes[0].each, r.plan.nodes[0].with_) == ("inputs.items", {"n": "${item}"})
