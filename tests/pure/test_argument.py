"""Arguments of the wrong type are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from windlass.core.errors import BadInput
from windlass.pure import argument

JOB = UUID("0199a1b2-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("check", "fine", "wrong", "words"),
    [
        (lambda v: argument.check_text("key", v), ["", "a"], [7, None, b"x"], "key must be text, not"),
        (argument.check_labels, [{}, {"a": "b"}], [[], {"a": 1}, {1: "a"}, 7], "labels must be texts by name"),
        (argument.check_priority, [0, -5], [True, 1.5, "1"], "priority must be a whole number"),
        (argument.check_inputs_mapping, [{}, {"a": 1}], [[], "a", 7], "inputs must be values by name"),
        (
            argument.check_timeout,
            [None, 0, 1.5, float("inf")],
            ["1m", True, float("nan"), {}],
            "timeout must be a num",
        ),
        (lambda v: argument.check_many(v, None), [[], [{}], ()], ["ab", b"x", 7, {}], "inputs must be a list"),
        (lambda v: argument.check_many([{}], v), [None, ["a"]], ["a", b"x", 7, [7]], "keys must be a list of texts"),
        (lambda v: argument.check_many([{}], v), [], [[], ["a", "b"]], "1 inputs have"),
    ],
)
def test_it_names_the_argument(check: Callable[[Any], None], fine: list[Any], wrong: list[Any], words: str) -> None:
    for value in fine:
        check(value)
    for value in wrong:
        with pytest.raises(BadInput, match=words):
            check(value)


def test_a_jobs_id_is_read_from_text() -> None:
    assert argument.job_id_of(str(JOB)) == argument.job_id_of(JOB) == JOB
    for value in ("", "x", 7, None, b"x"):
        with pytest.raises(BadInput, match="is not a job's id"):
            argument.job_id_of(value)


def test_a_long_value_is_cut() -> None:
    assert len(argument.shown("x" * 1000)) == argument.SHOWN_MAX + 1
