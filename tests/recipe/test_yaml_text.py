"""YAML that is read safely: nothing doubled, nothing multiplied, nothing executed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadRecipe, TooLarge
from windlass.recipe.yaml_text import line_of, read_document


def read(text: str | bytes) -> Any:
    return read_document(text)[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes\nb: on\nc: 12:30\nd: 2024-01-01\ne: 0x10\nf: 1_000\ng: .inf", None),
        ("[1, -2, +3, 0, 1.5, 1e3, .5, 5.]", [1, -2, 3, 0, 1.5, 1000.0, 0.5, 5.0]),
        ("[true, false, null, ~, True]", [True, False, None, None, "True"]),
        ("['1', \"true\", 007]", ["1", "true", "007"]),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("1: a\ntrue: b", {"1": "a", "true": "b"}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("", None),
        ("'<<': 1", {"<<": 1}),
        ('{"a": "\\ud83d\\ude00", "b": 1e2}', {"a": "😀", "b": 100.0}),
        ("{a: 1}", {"a": 1}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
    ],
)
def test_scalars_mean_what_they_mean_in_json(text: str | bytes, value: Any) -> None:
    if value is None and text:
        assert all(isinstance(part, str) for part in read(text).values())
    else:
        assert read(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\nb: 2\na: 3", "the key 'a' is written twice (line 3)"),
        ("x:\n  a: 1\n  a: 1", "x: the key 'a' is written twice (line 3)"),
        ('{"a": 1, "a": 2}', "the key 'a' is written twice"),
        ("a: !!python/object/apply:os.system ['x']", "the tag tag:yaml.org,2002:python/object/apply:os.system"),
        ("a: !!str 5", "is not supported"),
        ("a: " + "9" * 2000, "a number of 2,000 digits (line 1)"),
        ('{"a": ' + "9" * 5000 + "}", "a number of 5,000 digits (line 1)"),
        ("a: !mine x", "the tag !mine is not supported (line 1)"),
        ("a: !!int '3'", "is not supported"),
        ("a: !!set {x, y}", "is not supported"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "`<<` is not supported (line 3)"),
        ("? [a]\n: 1", "a key must be text"),
        ("a: [1\nb: 2", "the document cannot be read"),
        ("a: 1\n---\nb: 2", "the document cannot be read"),
        ("a: \x00", "the document cannot be read"),
        ("a: *nope", "the document cannot be read"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a":' * 2000 + "1" + "}" * 2000, "deeper than 64"),
        (b"a: \xff", "not UTF-8: invalid start byte at byte 3"),
        ("[" * 100_000, "nested deeper than 64 (line 1)"),
        ("- " * 1000 + "x", "nested deeper than 64 (line 1)"),
    ],
)
def test_what_cannot_be_trusted_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(BadRecipe) as caught:
        read(text)
    assert reason in str(caught.value)


def test_aliases_that_multiply_are_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    with pytest.raises(TooLarge, match="aliases that multiply"):
        read(bomb)


def test_an_alias_to_itself_is_refused() -> None:
    with pytest.raises(TooLarge):
        read("a: &a [*a]")


def test_a_large_document_is_refused() -> None:
    with pytest.raises(TooLarge, match="at most 4,194,304"):
        read("a: " + "x" * (4 << 20))
    with pytest.raises(TooLarge, match="too many values"):
        read("[" + "1," * 500_000 + "]")


def test_every_place_has_a_line() -> None:
    _, lines = read_document("a:\n  b: 1\n  c:\n    - x\n    - y\n")
    assert (lines["a.b"], lines["a.c"], lines["a.c[1]"]) == (2, 3, 5)
    assert line_of(lines, "a.c[1].deeper.still") == 5
    assert line_of(lines, "zzz") is None


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        read(text)
    except (BadRecipe, TooLarge) as error:
        assert error.message


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x", "- &x a", "a: *x"])
def test_anchors_and_aliases_can_be_refused(text: str) -> None:
    with pytest.raises(BadRecipe, match="anchors and aliases"):
        read_document(text, has_aliases=False)
    assert read_document("a: '&x'\nb: '*x'", has_aliases=False)[0] == {"a": "&x", "b": "*x"}
