"""Constraints: the tighter of two, field by field, and who enforces each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.constraint import (
    CONSTRAINT_FIELDS,
    NO_CONSTRAINTS,
    REDACTION_LEVELS,
    Constraints,
    Enforcer,
    Meet,
)


def names(*texts: str) -> frozenset[str]:
    return frozenset(texts)


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        ({"max_retries": 3}, {"max_retries": 1}, {"max_retries": 1}),
        ({"max_retries": 3}, {"max_runtime_ms": 9}, {"max_retries": 3, "max_runtime_ms": 9}),
        ({"max_cost": Decimal("2")}, {"max_cost": Decimal("1.5")}, {"max_cost": Decimal("1.5")}),
        ({"allowed_tools": names("a", "b")}, {"allowed_tools": names("b", "c")}, {"allowed_tools": names("b")}),
        ({"allowed_tools": names("a")}, {"allowed_tools": names("b")}, {"allowed_tools": names()}),
        (
            {"allowed_destinations": names("*.a.com", "b.com")},
            {"allowed_destinations": names("x.a.com", "c.com")},
            {"allowed_destinations": names("x.a.com")},
        ),
        ({"redact_patterns": names("a")}, {"redact_patterns": names("b")}, {"redact_patterns": names("a", "b")}),
        ({"redaction_level": "full"}, {"redaction_level": "none"}, {"redaction_level": "full"}),
        ({"isolated": True}, {}, {"isolated": True}),
    ],
)
def test_the_tighter_value_of_each_field_counts(
    left: dict[str, Any], right: dict[str, Any], both: dict[str, Any]
) -> None:
    assert Constraints(**left).meet(Constraints(**right)) == Constraints(**both)
    assert Constraints(**right).meet(Constraints(**left)) == Constraints(**both)


def test_nothing_is_the_neutral_constraint() -> None:
    one = Constraints(max_files=2)
    assert one.meet(NO_CONSTRAINTS) is one
    assert NO_CONSTRAINTS.meet(one) is one
    assert one.meet(Constraints(max_files=2)) == one


def test_each_set_limit_says_who_enforces_it() -> None:
    found = Constraints(max_retries=1, redaction_level="full", allowed_commands=names("ls")).enforced
    assert found == {
        "max_retries": Enforcer.ENGINE,
        "allowed_commands": Enforcer.HANDLER,
        "redaction_level": Enforcer.OUTPUT,
    }


def test_constraints_are_shown_as_a_document_has_them() -> None:
    found = Constraints(max_retries=0, max_cost=Decimal("1.50"), allowed_destinations=names("b", "a")).plain()
    assert found == {"budgets": {"max_retries": 0, "max_cost": "1.50"}, "allowed_destinations": ["a", "b"]}
    assert NO_CONSTRAINTS.plain() == {}


TEXTS = st.frozensets(st.sampled_from(["a", "b", "*", "a*", "*.b"]), max_size=3)
VALUES = {
    Meet.LEAST: st.integers(0, 9),
    Meet.BOTH: TEXTS,
    Meet.BOTH_GLOBS: TEXTS,
    Meet.EITHER: TEXTS,
    Meet.LEVEL: st.sampled_from(REDACTION_LEVELS),
}
CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        name: st.just(True) if name == "isolated" else VALUES[field.meet] for name, field in CONSTRAINT_FIELDS.items()
    },
).map(lambda found: Constraints(**found))


def is_no_looser(tight: Any, loose: Any, meet: Meet) -> bool:
    """Whether a value allows nothing that the other forbids."""
    if loose is None:
        return True
    if tight is None:
        return False
    match meet:
        case Meet.LEAST:
            return bool(tight <= loose)
        case Meet.BOTH:
            return bool(tight <= loose)
        case Meet.EITHER:
            return bool(tight >= loose)
        case Meet.LEVEL:
            return REDACTION_LEVELS.index(tight) >= REDACTION_LEVELS.index(loose)
        case Meet.BOTH_GLOBS:
            # Texts are checked in the tests of globs.
            return True


@given(CONSTRAINTS, CONSTRAINTS)
def test_two_constraints_meet_in_one_that_is_no_looser_than_either(left: Constraints, right: Constraints) -> None:
    both = left.meet(right)
    assert both == right.meet(left)
    for name, field in CONSTRAINT_FIELDS.items():
        assert is_no_looser(getattr(both, name), getattr(left, name), field.meet)
        assert is_no_looser(getattr(both, name), getattr(right, name), field.meet)
