"""A label's name that can be part of an index's name, and of a statement, and nothing else."""

from __future__ import annotations

import pytest

from windlass.pure.label import INDEXED_LENGTH_MAX, can_be_indexed, check_indexed


@pytest.mark.parametrize("name", ["corpus", "a.b-c_D", "1", "x" * INDEXED_LENGTH_MAX])
def test_a_plain_name_can_be_indexed(name: str) -> None:
    assert can_be_indexed(name) and check_indexed(name) == name


@pytest.mark.parametrize("name", ["", "a'b", 'a"b', "a b", "é", "-a", "a\n", "a\x00", "x" * (INDEXED_LENGTH_MAX + 1)])
def test_any_other_is_refused(name: str) -> None:
    assert not can_be_indexed(name)
    with pytest.raises(ValueError, match="cannot be an indexed label"):
        check_indexed(name)
