"""Symbolic values: operators make expressions, and what would need the value itself is refused helpfully."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import windlass as wl
from windlass.core.errors import BadRecipe
from windlass.core.plan import Node
from windlass.recipe.handle import Value, expression_text

a, b = Value(("inputs.a",)), Value(("inputs.b",))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (a["x"], "inputs.a.x"),
        (a["x"][0]["y z"], 'inputs.a.x[0]["y z"]'),
        (a["in"], 'inputs.a["in"]'),
        (a[b], "inputs.a[inputs.b]"),
        (a > 5, "inputs.a > 5"),
        (a > 5, "inputs.a > 5"),
        (a == "x", 'inputs.a == "x"'),
        (a != None, "inputs.a != null"),  # noqa: E711
        (a == True, "inputs.a == true"),  # noqa: E712
        (a >= 1.5, "inputs.a >= 1.5"),
        (a <= -1, "inputs.a <= -1"),
        ((a > 1) & (b < 2), "inputs.a > 1 && inputs.b < 2"),
        ((a | b) & ~a, "(inputs.a || inputs.b) && !inputs.a"),
        (a | b & a, "inputs.a || inputs.b && inputs.a"),
        (~(a > 1), "!(inputs.a > 1)"),
        (a & b & a, "inputs.a && inputs.b && inputs.a"),
        (a & (b & a), "inputs.a && (inputs.b && inputs.a)"),
        (True & a, "true && inputs.a"),
        (False | a, "false || inputs.a"),
        ((a + b) * 2, "(inputs.a + inputs.b) * 2"),
        (a - (b - 1), "inputs.a - (inputs.b - 1)"),
        (a - b - 1, "inputs.a - inputs.b - 1"),
        ("x" + a, '"x" + inputs.a'),
        (2 - a, "2 - inputs.a"),
        (2 * a / b % 3, "2 * inputs.a / inputs.b % 3"),
        (1 / a, "1 / inputs.a"),
        (7 % a, "7 % inputs.a"),
        (-a, "-inputs.a"),
        (-(a + 1), "-(inputs.a + 1)"),
        ((a > 1) == (b > 1), "(inputs.a > 1) == (inputs.b > 1)"),
        (a.contains("x"), '"x" in inputs.a'),
        (a.size() > 3, "size(inputs.a) > 3"),
        ((a + b)["x"], "(inputs.a + inputs.b).x"),
        (a == [1, "x", b], 'inputs.a == [1, "x", inputs.b]'),
    ],
)
def test_operators_write_the_expression(value: Value, text: str) -> None:
    assert expression_text(value) == text


@pytest.mark.parametrize(
    ("use", "remedy"),
    [
        (bool, ".when(condition)"),
        (lambda v: v and 1, ".when(condition)"),
        (list, "step.map(values)"),
        (lambda v: [x + 1 for x in v], "step.map(values)"),
        (len, "value.size()"),
        (lambda v: "x" in v, "value.contains(item)"),
        (lambda v: f"about {v}", "wl.text("),
        (lambda v: "about {}".format(v), "wl.text("),  # noqa: UP032
        (lambda v: "about %s" % v, "wl.text("),  # noqa: UP031
        (str, "wl.text("),
        (int, "in a step"),
        (float, "in a step"),
        (lambda v: [1, 2][v], "in a step"),
        (lambda v: v[-1], "from 0 on"),
        (lambda v: v[1.5], "from 0 on"),
        (lambda v: v[True], "from 0 on"),
        (lambda v: v == {"a": 1}, "make it in a step"),
    ],
)
def test_what_needs_the_value_is_refused_with_what_to_write(use: Callable[[Any], Any], remedy: str) -> None:
    with pytest.raises(BadRecipe) as caught:
        use(a)
    assert remedy in str(caught.value)


def test_an_attribute_is_refused_with_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"written value\['scenes'\]"):
        _ = a.scenes
    assert not hasattr(a, "__wrapped__")


def test_a_value_cannot_be_a_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        {a: 1}  # noqa: B018


def test_a_value_shows_itself_to_a_debugger() -> None:
    assert repr(a["x"]) == "<value inputs.a.x>"


@wl.step
def one(x: Any = None) -> Any:
    return x


def traced(body: Callable[[Any], Any]) -> Node:
    def recipe(topic: Any) -> Any:
        return body(topic)

    return wl.recipe(recipe).plan.nodes[0]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("about {t}", "about ${inputs.topic}"),
        ("{t}, {t}", "${inputs.topic}, ${inputs.topic}"),
        ("costs ${t}", 'costs ${"$"}${inputs.topic}'),
        ("{{}} ${{x}}", "{} $${x}"),
        ("plain", "plain"),
    ],
)
def test_text_takes_values_by_name(template: str, text: str) -> None:
    assert traced(lambda topic: one(wl.text(template, t=topic))).with_ == {"x": text}


def test_text_takes_constants_too() -> None:
    assert traced(lambda topic: one(wl.text("{n} of {t}", n=3, t=topic))).with_ == {"x": "3 of ${inputs.topic}"}


@pytest.mark.parametrize("template", ["{nope}", "{t!r}", "{t:>3}", "{}", "{t.x}"])
def test_text_refuses_what_is_not_a_name(template: str) -> None:
    with pytest.raises(BadRecipe, match="not the name of a value"):
        wl.text(template, t=a)


def test_text_of_a_python_author_is_text_whatever_is_in_it() -> None:
    node = traced(lambda topic: one({"shell": "echo ${HOME}", "list": ["${inputs.topic}", topic]}))
    assert node.with_ == {"x": {"shell": "echo $${HOME}", "list": ["$${inputs.topic}", "${inputs.topic}"]}}


def test_a_step_that_was_not_called_is_no_value() -> None:
    with pytest.raises(BadRecipe, match=r"steps\.one\.with\.x: <step one> is not a value.*Call it"):
        traced(lambda topic: one(one))


def test_what_is_not_json_is_refused_with_its_place() -> None:
    with pytest.raises(BadRecipe, match=r"steps\.one\.with\.x\[0\]: nan is not a JSON number"):
        traced(lambda topic: one([float("nan")]))
    with pytest.raises(BadRecipe, match=r"steps\.one\.with\.x: a set is not JSON"):
        traced(lambda topic: one({1}))
