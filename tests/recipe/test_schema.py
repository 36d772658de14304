"""Inputs: checked against the recipe's schema, with defaults filled in and every fault named."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import windlass as wl
from windlass.core.errors import BadInput, TooLarge
from windlass.core.plan import Node, Plan
from windlass.recipe import schema as module
from windlass.recipe.schema import check_inputs, check_inputs_text, required_names


@dataclass
class Size:
    """Two numbers."""

    width: int
    height: int = 10


class Mood(enum.Enum):
    """Two words."""

    DARK = "dark"
    LIGHT = "light"


@wl.step
def draw(topic: Any) -> Any:
    return topic


@wl.recipe
def film(topic: str, n: int = 3, tags: list[str] = ["a"], size: Size | None = None, extra: Any = None) -> Any:  # noqa: B006
    return draw(topic)


PLAN = film.plan


def refusal(inputs: Any, plan: Plan = PLAN) -> str:
    with pytest.raises(BadInput) as caught:
        check_inputs(plan, inputs)
    return str(caught.value)


def test_defaults_are_filled_in() -> None:
    assert check_inputs(PLAN, {"topic": "sea"}) == {"topic": "sea", "n": 3, "tags": ["a"], "size": None, "extra": None}


def test_given_inputs_are_kept_and_the_callers_own_are_not_touched() -> None:
    given = {"topic": "sea", "n": 5, "tags": ["b"], "size": {"width": 1}, "extra": {"x": [1.5]}}
    assert check_inputs(PLAN, given) == given
    few = {"topic": "sea"}
    check_inputs(PLAN, few)["tags"].append("z")
    assert few == {"topic": "sea"}
    assert check_inputs(PLAN, few)["tags"] == ["a"]


def test_the_text_is_the_same_as_the_values() -> None:
    values, text = check_inputs_text(PLAN, {"topic": "é"})
    assert msgspec.json.decode(text) == values


def test_no_inputs_is_an_empty_object() -> None:
    @wl.recipe
    def none() -> Any:
        return draw(1)

    assert check_inputs(none.plan, None) == {}
    assert "inputs: Additional properties are not allowed ('x' was unexpected)" in refusal({"x": 1}, none.plan)


def test_every_fault_is_named() -> None:
    told = refusal({"n": "three", "tags": ["a", 1], "zz": 0})
    assert "the inputs do not fit recipe film" in told
    for fault in (
        'inputs.n: "three" is not of type "integer"',
        "inputs.tags[1]: ",
        "'zz' was unexpected",
        '"topic" is a',
    ):
        assert fault in told


def test_a_long_list_of_faults_is_cut() -> None:
    assert "; and 15 more" in refusal({"topic": "x", "tags": list(range(25))})


def test_a_fault_does_not_quote_a_long_value_in_full() -> None:
    told = refusal({"topic": ["x" * 100_000]})
    assert len(told) < 1_000 and 'is not of type "string"' in told


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([1], "must be an object, not a list"),
        ("topic", "must be an object, not a str"),
        ({"topic": float("nan")}, "inputs.topic: nan is not a JSON number"),
        ({"topic": "x", "extra": [float("inf")]}, "inputs.extra[0]: inf is not a JSON number"),
        ({"topic": "x", "extra": 2**64}, "does not fit in 64 bits"),
        ({"topic": "x\ud800"}, "inputs.topic: text with half of a surrogate pair"),
        ({"topic": "x", "extra": {"\ud800": 1}}, "half of a surrogate pair"),
        ({"topic": "x", "extra": object()}, "inputs.extra: a object is not JSON"),
        ({"topic": "x", "extra": 1j}, "a complex is not JSON"),
    ],
)
def test_what_json_cannot_say_is_refused(inputs: Any, reason: str) -> None:
    assert reason in refusal(inputs)


def test_inputs_may_not_be_deep() -> None:
    deep: Any = 1
    for _ in range(31):
        deep = [deep]
    assert check_inputs(PLAN, {"topic": "x", "extra": deep})
    assert "nested deeper than 32" in refusal({"topic": "x", "extra": [deep]})
    endless: list[Any] = []
    endless.append(endless)
    assert "nested deeper than 32" in refusal({"topic": "x", "extra": endless})


def test_inputs_may_not_be_large() -> None:
    with pytest.raises(TooLarge, match="at most 1,048,576"):
        check_inputs(PLAN, {"topic": "x" * (1 << 20)})


def test_what_python_has_beyond_json_is_turned_into_it() -> None:
    given = {"topic": Mood.DARK, "size": Size(4), "extra": (datetime(2025, 1, 2, tzinfo=UTC), {1: 2})}
    made = check_inputs(PLAN, given)
    assert (made["topic"], made["size"]) == ("dark", {"width": 4, "height": 10})
    assert made["extra"] == ["2025-01-02T00:00:00Z", {"1": 2}]


def test_a_whole_schema_is_obeyed() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}, "any": True}, "required": ["n"]}
    plan = Plan("r", (Node("a", run="a"),), schema)
    assert check_inputs(plan, {"n": 3, "more": 1}) == {"n": 3, "more": 1}
    assert "2 is less than the minimum of 3" in refusal({"n": 2}, plan)
    assert required_names(schema) == {"n"}


def test_a_pattern_cannot_backtrack() -> None:
    plan = Plan("r", (Node("a", run="a"),), {"properties": {"x": {"pattern": "^(a+)+$"}}})
    assert "does not match" in refusal({"x": "a" * 50_000 + "!"}, plan)


def test_validators_that_are_out_of_use_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHECKERS_MAX", 2)
    monkeypatch.setattr(module, "_checkers", {})
    for name in "abcd":
        check_inputs(Plan(name, (Node("a", run="a"),)), {})
    assert len(module._checkers) == 2
