"""`@recipe`: values that flow between steps become the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import windlass as wl
from windlass.core.errors import BadRecipe
from windlass.core.plan import Node, NodeKind, OnFailure, plan_from_json
from windlass.core.queue import BACKGROUND_PROCESSING
from windlass.recipe.description import DESCRIPTION_MAX_CHARS, description_of


@wl.step
def fetch(url: str) -> dict:
    return {"url": url}


@wl.step(cpu=True, timeout=60, retry=wl.Retry(max_attempts=5))
def shrink(image: Any, width: int = 100) -> Any:
    return image


@wl.step
def store(images: list) -> list:
    return images


@wl.recipe
def one(url: str) -> Any:
    return shrink(fetch(url))


def nodes(recipe: wl.Recipe) -> dict[str, Node]:
    return {node.name: node for node in recipe.plan.nodes}


def test_passing_a_value_is_a_dependency() -> None:
    plan = one.plan
    assert [node.name for node in plan.nodes] == ["fetch", "shrink"]
    assert plan.nodes[1].needs == ("fetch",)
    assert plan.nodes[1].with_ == {"image": "${steps.fetch.outputs}"}
    assert plan.output == "${steps.shrink.outputs}"


def test_a_steps_options_are_in_the_plan() -> None:
    node = nodes(one)["shrink"]
    assert (node.queue, node.timeout_s, node.retry.max_attempts) == (BACKGROUND_PROCESSING, 60.0, 5)


def test_one_handler_may_be_several_steps() -> None:
    @wl.recipe
    def several(a: str, b: str) -> Any:
        first, second, third = fetch(a), fetch(b), fetch(b).named("fetch_2")
        return [first["x"], second["x"], third["x"]]

    assert [node.name for node in several.plan.nodes] == ["fetch", "fetch_2", "fetch_3"]
    assert several.plan.output == [
        "${steps.fetch.outputs.x}",
        "${steps.fetch_3.outputs.x}",
        "${steps.fetch_2.outputs.x}",
    ]


def test_a_name_given_late_is_used_everywhere() -> None:
    @wl.recipe
    def late(a: str) -> Any:
        page = fetch(a)
        small = shrink(page["body"]).when(page["ok"])
        page.named("page")
        return small

    assert nodes(late)["shrink"].with_ == {"image": "${steps.page.outputs.body}"}
    assert nodes(late)["shrink"].when == "steps.page.outputs.ok"
    assert nodes(late)["shrink"].needs == ("page",)


def test_conditions_add_up() -> None:
    @wl.recipe
    def conditional(a: str, force: bool = False) -> Any:
        page = fetch(a)
        return shrink(page).when((page["size"] > 5) | force).when(page["ok"])

    assert nodes(conditional)["shrink"].when == (
        "(steps.fetch.outputs.size > 5 || inputs.force) && steps.fetch.outputs.ok"
    )


def test_after_is_an_order_without_a_value() -> None:
    @wl.recipe
    def ordered(a: str) -> Any:
        first, second = fetch(a), fetch(a)
        return store([]).after(first, second)

    assert nodes(ordered)["store"].needs == ("fetch", "fetch_2")


def test_a_timer_is_a_step() -> None:
    @wl.recipe
    def patient(a: str, wait_s: float = 1) -> Any:
        pause = wl.sleep("1h30m").after(fetch(a))
        again = wl.sleep(wait_s).after(pause).named("again")
        return fetch(a).after(again)

    by_name = nodes(patient)
    assert by_name["sleep"].kind is NodeKind.TIMER
    assert by_name["sleep"].with_ == {"seconds": 5400.0}
    assert by_name["again"].with_ == {"seconds": "${inputs.wait_s}"}
    assert by_name["fetch_2"].needs == ("again",)


def test_a_recipe_in_a_recipe_is_a_job_of_its_own() -> None:
    @wl.recipe
    def many(urls: list[str]) -> Any:
        alone = one(urls[0])
        return {"all": one.map(urls), "alone": alone}

    by_name = nodes(many)
    assert by_name["one"].kind is NodeKind.RECIPE
    assert by_name["one"].run == "one"
    assert by_name["one"].with_ == {"url": "${inputs.urls[0]}"}
    assert (by_name["one_2"].each, by_name["one_2"].with_) == ("inputs.urls", {"url": "${item}"})
    assert many.children == {"one": one}
    assert one.steps == {"fetch": fetch, "shrink": shrink}


def test_a_recipe_may_use_itself() -> None:
    @wl.recipe
    def again(depth: int) -> Any:
        return again(depth - 1).when(depth > 0)

    assert nodes(again)["again"].with_ == {"depth": "${inputs.depth - 1}"}


def test_a_recipe_is_not_called() -> None:
    with pytest.raises(BadRecipe, match="windlass run"):
        one("x")
    with pytest.raises(BadRecipe, match=r"@wl\.recipe"):
        one.map(["x"])


def test_a_wrong_call_of_a_recipe_is_refused() -> None:
    @wl.recipe
    def wrong() -> Any:
        return one(link="x")

    with pytest.raises(BadRecipe, match=r"steps\.one\.with\.link: one takes no 'link'.*There is url"):
        _ = wrong.plan


@dataclass
class Size:
    """Two numbers."""

    width: int
    height: int = 10


def test_inputs_have_a_schema_from_the_hints() -> None:
    @wl.recipe
    def typed(url: str, size: Size, tags: list[str], extra: Any, untyped, note: str | None = None, n: int = 3) -> Any:  # type: ignore[no-untyped-def]
        return fetch(url)

    schema = typed.plan.inputs_schema
    assert schema["properties"]["url"] == {"type": "string"}
    assert schema["properties"]["size"] == {"$ref": "#/$defs/Size"}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert schema["properties"]["extra"] == schema["properties"]["untyped"] == {}
    assert schema["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert schema["properties"]["n"] == {"type": "integer", "default": 3}
    assert schema["required"] == ["extra", "size", "tags", "untyped", "url"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Size"]["required"] == ["width"]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("def r(x: complex): return fetch('u')", "inputs.x: the type hint"),
        ("def r(x: 'Nope'): return fetch('u')", "inputs.x: the type hint cannot be read: NameError"),
        ("def r(x: int = 'a'): return fetch('u')", "inputs.x: the default does not fit"),
        ("def r(x=1j): return fetch('u')", "inputs.x: the default is not JSON"),
        ("def r(**x): return fetch('u')", "inputs: recipe r takes **arguments"),
        ("def r(): return None", "steps: a recipe needs at least one step"),
        ("def r(): return foreign", "output: 'fetch' is a step of another recipe"),
        ("def r(): return fetch(foreign)", "steps.fetch.with: 'fetch' is a step of another recipe"),
        ("def r(): return fetch('u').after(foreign)", "steps.fetch.after: 'fetch' is a step of another recipe"),
        ("def r(): return fetch('u'), fetch2('v')", "two different handlers are called 'fetch'"),
        ("def r(): return fetch('a').named('x'), fetch('b').named('x')", "steps.x: two steps have this name"),
        ("def r(): return fetch('u').after(fetch('v').after(wl.item))", "<value item> is not a step"),
        ("def r(): return fetch(wl.item)", "steps.fetch.with: `item` is known only in"),
        ("def r(): return [fetch('u'), wl.index]", "output: `item` and `index` are known only in"),
        ("def r(): return fetch('u').when(1 + wl.text('x'))", "unsupported operand"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said_with_its_place(function: str, reason: str) -> None:
    leaked: list[Any] = []

    @wl.recipe
    def leaks() -> Any:
        leaked.append(fetch("u"))

    _ = leaks.plan
    other = wl.step(name="fetch")(lambda url: url)
    scope = {"fetch": fetch, "fetch2": other, "foreign": leaked[0], "wl": wl}
    exec(function, scope)
    with pytest.raises((BadRecipe, TypeError)) as caught:
        _ = wl.recipe(scope["r"]).plan  # type: ignore[call-overload]
    assert reason in str(caught.value)


def test_a_cycle_is_named() -> None:
    @wl.recipe
    def circle(a: str) -> Any:
        first = fetch(a)
        second = shrink(first)
        third = store(second)
        first.after(third)

    with pytest.raises(BadRecipe) as caught:
        _ = circle.plan
    assert "a cycle: fetch waits for store, which waits for shrink, which waits for fetch" in str(caught.value)
    assert caught.value.place == "steps.fetch"


def test_a_recipe_is_a_plain_function() -> None:
    async def wrong() -> None: ...

    with pytest.raises(BadRecipe, match="plain def"):
        wl.recipe(wrong)
    with pytest.raises(BadRecipe, match="not finish or stop"):
        wl.recipe(on_failure="explode")(lambda: None)


def test_a_recipe_has_options() -> None:
    @wl.recipe(name="other-name", on_failure="stop")
    def named() -> Any:
        return fetch("x")

    assert (named.name, named.plan.recipe, named.plan.on_failure) == ("other-name", "other-name", OnFailure.STOP)
    assert plan_from_json(named.plan.canonical) == named.plan
    assert repr(named) == "<recipe other-name>"


def test_the_order_of_independent_steps_does_not_change_the_hash() -> None:
    def ab() -> Any:
        x, y = fetch("a").named("x"), fetch("b").named("y")
        return store([x, y])

    def ba() -> Any:
        y, x = fetch("b").named("y"), fetch("a").named("x")
        return store([x, y])

    assert wl.recipe(name="r")(ab).plan.hash == wl.recipe(name="r")(ba).plan.hash


def test_a_recipe_that_failed_to_be_read_leaves_nothing_behind() -> None:
    @wl.recipe
    def broken() -> Any:
        fetch("a")
        raise ValueError("no")

    with pytest.raises(BadRecipe, match="ValueError: no"):
        _ = broken.plan
    assert fetch("a") == {"url": "a"}


def test_a_docstring_is_the_description_and_no_part_of_the_plan() -> None:
    def plain(topic: str) -> Any:
        return fetch(topic)

    def told(topic: str) -> Any:
        """Says it loudly.

        Twice, if need be.
        """
        return fetch(topic)

    one, other = wl.recipe(name="r")(plain), wl.recipe(name="r")(told)
    assert one.plan.hash == other.plan.hash
    assert (one.description, other.description) == ("", "Says it loudly.\n\nTwice, if need be.")


def test_a_description_is_cut_and_can_be_stored() -> None:
    assert description_of("a\0b\ud800") == "ab?"
    long = description_of("x" * 5_000)
    assert (len(long), long[-2:]) == (DESCRIPTION_MAX_CHARS, "x…")
