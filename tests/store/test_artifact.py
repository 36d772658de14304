"""References to artifacts: what is one, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.store.artifact import ref_in, ref_of

REF = ref_of(b"a picture")


def test_a_reference_is_read_back() -> None:
    assert ref_in(REF.as_json()) == REF


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {}, {"$artifact": REF.sha256}, {"$artifact": {"sha256": REF.sha256}},
        {"$artifact": {"sha256": "../../../../etc/passwd", "size": 9}},
        {"$artifact": {"sha256": "/etc/passwd", "size": 9}},
        {"$artifact": {"sha256": REF.sha256 + "\n", "size": 9}},
        {"$artifact": {"sha256": REF.sha256.upper(), "size": 9}},
        {"$artifact": {"sha256": REF.sha256, "size": "9"}},
        {**REF.as_json(), "more": 1},
    ],
)  # fmt: skip
def test_what_is_no_reference_is_a_value(value: Any) -> None:
    assert ref_in(value) is None
