"""Lengths of time as people write them."""

from __future__ import annotations

import pytest

from windlass.core.errors import BadRecipe
from windlass.recipe.duration import duration_s


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(90, 90.0), (0.5, 0.5), ("90s", 90.0), ("2m", 120.0), ("1h30m", 5400.0), ("1h 30m", 5400.0), ("7d", 604800.0),
     ("1w", 604800.0), ("250ms", 0.25), ("1.5h", 5400.0), (0, 0.0)],
)  # fmt: skip
def test_a_length_of_time_is_read(value: object, seconds: float) -> None:
    assert duration_s(value, "p") == seconds
    assert isinstance(duration_s(value, "p"), float)


@pytest.mark.parametrize(
    "value", ["", "5", "5 minutes", "m", "-1s", -1, True, None, [], float("nan"), float("inf"), 1e12, "1y"]
)
def test_what_is_no_length_of_time_is_refused(value: object) -> None:
    with pytest.raises(BadRecipe) as caught:
        duration_s(value, "steps.x.timeout")
    assert caught.value.place == "steps.x.timeout"
