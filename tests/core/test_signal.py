"""Which events a step that waits is content with."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.signal import fits, same

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("match", "body", "is_fit"),
    [
        ({}, None, True),
        ({}, {"any": "thing"}, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": 1}, [1], False),
        ({"a": 1}, "a", False),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [{"b": False}]}, {"a": [{"b": 0}]}, False),
        ({"a": {}}, {"a": []}, False),
    ],
)
def test_every_key_must_be_there_and_equal(match: dict[str, Any], body: Any, is_fit: bool) -> None:
    assert fits(match, body) is is_fit


@given(JSON, JSON)
def test_equal_is_what_json_calls_equal(one: Any, other: Any) -> None:
    def told(value: Any) -> Any:
        """True and 1 are told apart, 1 and 1.0 are not."""
        if isinstance(value, bool):
            return ("bool", value)
        if isinstance(value, dict):
            return {key: told(part) for key, part in value.items()}
        return [told(part) for part in value] if isinstance(value, list) else value

    assert same(one, other) == (told(one) == told(other))
    assert same(one, msgspec.json.decode(msgspec.json.encode(one)))


@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), st.dictionaries(st.sampled_from("xyz"), JSON))
def test_what_else_an_event_holds_does_not_matter(match: dict[str, Any], more: dict[str, Any]) -> None:
    assert fits(match, {**more, **match})
    for key in match:
        assert not fits(match, {k: v for k, v in {**more, **match}.items() if k != key})
