"""The one table of what errors are over HTTP."""

from __future__ import annotations

import pytest

from windlass.core.errors import (
    BadInput,
    BadRange,
    Broken,
    Busy,
    Conflict,
    Limited,
    MethodNotAllowed,
    NotFound,
    WindlassError,
)
from windlass.pure.problem import KINDS, hint_of, kind_of


class Odd(Conflict):
    code = "odd"


def test_an_error_without_a_row_has_that_of_the_class_above() -> None:
    assert kind_of(Odd) is KINDS["conflict"]
    assert kind_of(WindlassError) is KINDS["broken"]
    assert {row.error for row in KINDS.values()} == {kind_of(row.error).error for row in KINDS.values()}


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (NotFound("no", remedy="Look elsewhere"), "Look elsewhere."),
        (NotFound("no", remedy="Is it there?"), "Is it there?"),
        (NotFound("no", remedy="`windlass jobs` lists them"), KINDS["not_found"].hint),
        (NotFound("no", remedy="Give --home"), KINDS["not_found"].hint),
        (NotFound("no"), KINDS["not_found"].hint),
        (Broken("secret", remedy="Read the code"), KINDS["broken"].hint),
        (Busy("full", retry_after_s=30, remedy="Come back."), "Come back."),
    ],
)
def test_the_hint_is_the_remedy_unless_it_is_for_somebody_else(error: WindlassError, hint: str) -> None:
    assert hint_of(error) == hint


def test_errors_carry_what_their_answers_need() -> None:
    assert BadInput("no", errors=(("/a", "is not a number"),)).errors == (("/a", "is not a number"),)
    assert BadRange("no", size=9).size == 9
    assert MethodNotAllowed("no", allowed=("GET",)).allowed == ("GET",)
    assert Limited("no", retry_after_s=2.5).retry_after_s == 2.5
