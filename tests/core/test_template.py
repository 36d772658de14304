"""Templates: holes are filled with the right values, and what is missing is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core import template as module
from windlass.core.errors import BadExpression
from windlass.core.plan import Node, Plan
from windlass.core.template import (
    as_condition,
    as_items,
    as_key,
    compile_expression,
    compile_template,
    escape,
    plan_templates,
    references,
    resolve,
)

SCOPE: dict[str, Any] = {
    "inputs": {"topic": "sea", "n": 3, "none": None, "tags": ["a", "b"], "odd key": 1},
    "steps": {
        "a": {"outputs": {"url": "http://x", "scenes": [{"id": 7}], "ok": True}},
        "b": {"outputs": {"skipped": True}},
    },
    "item": {"name": "i"},
    "index": 4,
}


def no_evaluator(expression: str, scope: Mapping[str, Any]) -> Any:
    raise AssertionError(f"{expression} was evaluated")


def filled(tree: Any) -> Any:
    return resolve(tree, SCOPE, no_evaluator)


def missing(tree: Any) -> str:
    with pytest.raises(BadExpression) as caught:
        compile_template(tree, "steps.z.with").resolve(SCOPE, no_evaluator)
    assert str(caught.value).startswith("steps.z.with")
    return str(caught.value)


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        ("plain", "plain"),
        ("${inputs.topic}", "sea"),
        ("${inputs.n}", 3),
        ("${inputs.none}", None),
        ("${inputs.tags}", ["a", "b"]),
        ("${ inputs['odd key'] }", 1),
        ("${steps.a.outputs.scenes[0].id}", 7),
        ("${steps.a.outputs.ok}", True),
        ("${item.name} ${index}", "i 4"),
        ("a ${inputs.topic} of ${inputs.n}", "a sea of 3"),
        ("${inputs.topic}${inputs.none}", "seanull"),
        ("${inputs.tags}!", '["a","b"]!'),
        ("$${inputs.topic}", "${inputs.topic}"),
        ("$$${inputs.topic}", "$${inputs.topic}"),
        ("5 $ and ${inputs.n} $", "5 $ and 3 $"),
        ("${inputs.n}$${x}${inputs.n}", "3${x}3"),
        ("", ""),
        (7, 7),
        (None, None),
        ({"a": "${inputs.n}", "b": [1, "${index}", {"c": "x"}], "d": {}}, {"a": 3, "b": [1, 4, {"c": "x"}], "d": {}}),
        (("${inputs.n}",), [3]),
    ],
)
def test_holes_are_filled(tree: Any, value: Any) -> None:
    assert filled(tree) == value
    assert type(filled(tree)) is type(value)


def test_keys_keep_their_order() -> None:
    assert list(filled({"z": "${inputs.n}", "a": 1, "m": "${index}"})) == ["z", "a", "m"]


def test_every_resolution_makes_new_containers() -> None:
    made = compile_template({"a": [1], "b": {"c": 2}, "d": "${inputs.n}"})
    first = made.resolve(SCOPE, no_evaluator)
    first["a"].append(2)
    first["b"]["c"] = 0
    assert made.resolve(SCOPE, no_evaluator) == {"a": [1], "b": {"c": 2}, "d": 3}
    constant = compile_template({"a": 1})
    constant.resolve(SCOPE, no_evaluator)["a"] = 2
    assert constant.resolve(SCOPE, no_evaluator) == {"a": 1}


def test_what_is_more_than_a_path_goes_to_the_evaluator() -> None:
    asked: list[str] = []

    def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
        asked.append(expression)
        return scope["inputs"]["n"] + 1

    made = compile_template({"a": "${inputs.n+1}", "b": "n is ${ inputs.n + 1 }"})
    assert made.resolve(SCOPE, evaluate) == {"a": 4, "b": "n is 4"}
    assert [expression.text for expression in made.expressions] == ["inputs.n + 1"]
    assert asked == ["inputs.n + 1"] * 2


def test_an_error_of_the_evaluator_gets_its_place() -> None:
    def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
        raise BadExpression("divided by zero", remedy="Do not")

    with pytest.raises(BadExpression) as caught:
        compile_template({"a": ["${1 / 0}"]}, "output").resolve(SCOPE, evaluate)
    assert str(caught.value) == "output.a[0]: divided by zero. Do not"


def test_references_are_collected_from_the_whole_tree() -> None:
    made = compile_template({"a": ["${steps.x.outputs}", "${inputs.i} ${size(steps.y.outputs)}"], "b": "${index}"})
    assert (made.steps, made.inputs, made.uses_item, made.uses_index) == ({"x", "y"}, {"i"}, False, True)
    assert compile_template("${item}").uses_item
    assert references(["$${steps.no.outputs}", "${steps.yes.outputs}"]) == {"yes"}


def test_the_tree_is_kept_in_its_canonical_spelling() -> None:
    tree = {"a": "${ inputs['topic'] }", "b": ["x ${inputs.n>1} $${y}"]}
    assert compile_template(tree).tree == {"a": "${inputs.topic}", "b": ["x ${inputs.n > 1} $${y}"]}


@pytest.mark.parametrize(
    ("tree", "there"),
    [
        ("${steps.a.outputs.nope}", "steps.a.outputs has ok, scenes, url"),
        ("${steps.a.outputs.scenes[3]}", "steps.a.outputs.scenes is a list of 1"),
        ("${steps.a.outputs.scenes.id}", "steps.a.outputs.scenes is a list of 1"),
        ("${steps.a.outputs.scenes[0].name}", "steps.a.outputs.scenes[0] has id"),
        ("${steps.a.outputs.url.host}", 'steps.a.outputs.url is "http://x"'),
        ("${steps.a.outputs.url[0]}", 'steps.a.outputs.url is "http://x"'),
        ("${steps.b.outputs.url}", "that step was skipped"),
        ("${steps.c.outputs}", "steps has a, b"),
        ("${inputs.none.x}", "inputs.none is null"),
    ],
)
def test_a_path_that_leads_nowhere_says_how_far_it_led(tree: str, there: str) -> None:
    assert f"{tree} does not exist: {there}" in missing(tree)


def test_an_empty_scope_has_nothing_in_it() -> None:
    with pytest.raises(BadExpression, match="the scope has nothing in it"):
        resolve("${item}", {}, no_evaluator)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ("${inputs.a", "without its `}`"),
        ("x ${", "without its `}`"),
        ("${}", "empty expression"),
        ("${nope}", "not known here"),
        ({"${inputs.a}": 1}, "a key must be plain text"),
        ({1: 1}, "a key must be plain text"),
    ],
)
def test_a_bad_template_is_refused_with_its_place(tree: Any, reason: str) -> None:
    assert reason in missing(tree)


def test_the_place_leads_to_the_string() -> None:
    with pytest.raises(BadExpression) as caught:
        compile_template({"a": [0, {"b": "${nope}"}]}, "steps.x.with")
    assert caught.value.place == "steps.x.with.a[1].b"


def test_a_tree_may_not_be_deep() -> None:
    tree: Any = 1
    for _ in range(40):
        tree = [tree]
    assert "nested deeper than 32" in missing(tree)


def test_a_whole_expression_is_written_without_braces() -> None:
    made = compile_expression(" steps.a.outputs.scenes ", "steps.r.each")
    assert made.tree == "steps.a.outputs.scenes"
    assert made.resolve(SCOPE, no_evaluator) == [{"id": 7}]
    with pytest.raises(BadExpression, match=r"steps\.r\.when: `map` is refused"):
        compile_expression("inputs.l.map(x, x)", "steps.r.when", is_condition=True)


def test_a_condition_is_true_or_false() -> None:
    assert as_condition(True, "p") is True
    assert as_condition(False, "p") is False
    for value, told in [("yes", '"yes"'), (1, "1"), (None, "null"), ([1], "a list of 1"), ({}, "an object")]:
        with pytest.raises(BadExpression) as caught:
            as_condition(value, "steps.x.when")
        assert str(caught.value) == f"steps.x.when: the condition gave {told}, and must give true or false"


def test_a_key_is_text_of_some_length() -> None:
    assert [as_key(value, "p") for value in ("a", 7, True, None, [1], "x" * 255)] == [
        "a", "7", "true", "null", "[1]", "x" * 255,
    ]  # fmt: skip
    for value, told in [("", "empty"), ("x" * 256, "256 characters long"), ("\x00", "text with NUL")]:
        with pytest.raises(BadExpression) as caught:
            as_key(value, "steps.x.concurrency")
        assert str(caught.value) == f"steps.x.concurrency: the key is {told}, and must be 1 to 255 characters of text"


def test_a_fan_out_is_over_a_list() -> None:
    assert as_items([1], "p") == [1]
    with pytest.raises(BadExpression, match="must be over a list"):
        as_items("x" * 100, "steps.x.each")


@given(st.text(alphabet="a$ {}'\"", max_size=30))
def test_escaped_text_resolves_to_itself(text: str) -> None:
    assert filled(escape(text)) == text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(alphabet="ab${}'", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


def _escaped(tree: Any) -> Any:
    if isinstance(tree, str):
        return escape(tree)
    if isinstance(tree, list):
        return [_escaped(part) for part in tree]
    return {key: _escaped(part) for key, part in tree.items()} if isinstance(tree, dict) else tree


@given(_JSON)
def test_a_tree_without_holes_resolves_to_itself(tree: Any) -> None:
    made = compile_template(_escaped(tree))
    assert made.resolve({}, no_evaluator) == tree
    assert compile_template(made.tree).tree == made.tree
    assert not made.steps
    assert not made.expressions


def plan(name: str, **node: Any) -> Plan:
    return Plan(recipe=name, nodes=(Node(name="a", run="a"), Node(name="b", run="b", **node)), output="${inputs.n}")


def test_a_plan_is_compiled_once() -> None:
    first = plan("p", with_={"x": "${item}"}, each="inputs.tags", when="steps.a.outputs.ok", needs=("a",))
    made = plan_templates(first)
    assert (
        plan_templates(plan("p", with_={"x": "${item}"}, each="inputs.tags", when="steps.a.outputs.ok", needs=("a",)))
        is made
    )
    assert made.nodes[0].with_.resolve(SCOPE, no_evaluator) == {}
    assert (made.nodes[0].when, made.nodes[0].each) == (None, None)
    assert made.nodes[1].when is not None
    assert made.nodes[1].each is not None
    assert made.nodes[1].when.steps == {"a"}
    assert made.nodes[1].each.inputs == {"tags"}
    assert made.output.resolve(SCOPE, no_evaluator) == 3


def test_plans_that_are_out_of_use_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PLANS_MAX", 2)
    monkeypatch.setattr(module, "_compiled", {})
    for at in range(5):
        plan_templates(plan(f"p{at}"))
    assert list(module._compiled) == [plan("p3").hash, plan("p4").hash]
