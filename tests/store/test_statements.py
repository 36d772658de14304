"""Statements are put together when they are read: includes are static, and parameters have names."""

from __future__ import annotations

import pytest

from windlass.store import statements
from windlass.store.database import Database
from windlass.store.statements import arguments, bound, named, names, ordered, sql


def read(*texts: str) -> dict[str, str]:
    return statements._load((f"{number}.sql", text) for number, text in enumerate(texts)).texts


def test_an_include_stands_in_place_of_its_line() -> None:
    found = read("-- name: a\nSELECT\n    -- include: columns\nFROM t\n", "-- fragment: columns\nx,\ny\n")
    assert found == {"a": "SELECT\n    x,\n    y\nFROM t"}


def test_a_gap_is_filled_by_each_include() -> None:
    page = "-- fragment: page (found, order)\nSELECT 1 FROM t WHERE :found AND ':found' <> '' ORDER BY :order\n"
    found = read(page + "-- name: a\n-- include: page (found: x = $1 AND y::text = 'a'; order: z DESC)\n")
    assert found == {"a": "SELECT 1 FROM t WHERE x = $1 AND y::text = 'a' AND ':found' <> '' ORDER BY z DESC"}


def test_a_fragment_may_include_others() -> None:
    found = read("-- fragment: a\n-- include: b\n", "-- fragment: b\nSELECT 1\n", "-- name: c\n-- include: a\n")
    assert found == {"c": "SELECT 1"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("-- name: a\n-- include: b\n", "a includes b, and there is no such SQL fragment"),
        ("-- name: a\n-- include: b\n-- name: b\nSELECT 1", "there is no such SQL fragment"),
        ("-- fragment: a\n-- include: b\n-- fragment: b\n-- include: a\n-- name: c\n-- include: a\n", "a → b → a"),
        ("-- fragment: a\nSELECT 1\n-- name: a\nSELECT 1", "named a"),
        ("-- fragment: a (x)\nSELECT :x\n-- name: b\n-- include: a\n", "its gaps are x, not none"),
        ("-- fragment: a (x)\nSELECT :x\n-- name: b\n-- include: a (x: 1; y: 2)\n", "its gaps are x, not x, y"),
        ("-- fragment: a\nSELECT 1\n-- name: b\n-- include: a (y: 2)\n", "its gaps are none, not y"),
        ("-- name: a (x)\nSELECT :x\n", "cannot have gaps"),
        ("-- name: a b\nSELECT 1\n", "cannot be read: -- name: a b"),
        ("--include: a\nSELECT 1\n", "cannot be read: --include: a"),
        ("-- include: a\n-- fragment: a\nSELECT 1\n", "before the first statement"),
        ("-- name: a\nSELECT :x, $1\n", "a has parameters by name and by number"),
    ],
)
def test_what_cannot_be_put_together_is_an_error_when_it_is_read(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("(", r"\(")):
        read(text)


def test_names_become_numbers_in_the_order_in_which_they_appear() -> None:
    found = read("-- name: a\nSELECT :b::uuid[], ':c', \":d\", x::text, :e, :b, :'f' -- :g\n")
    assert found == {"a": "SELECT $1::uuid[], ':c', \":d\", x::text, $2, $1, :'f' -- :g"}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = statements._load([("x.sql", "-- name: two\nSELECT :b::int - :a::int\n-- name: one\nSELECT :a::int\n")])
    monkeypatch.setattr(statements, "_loaded", lambda: made)


async def test_values_are_given_by_name(db: Database, loaded: None) -> None:
    assert names("two") == ("b", "a")
    assert bound("two", a=1, b=3) == (sql("two"), 3, 1)
    async with db.connection() as connection:
        assert await connection.fetchval(*bound("two", a=1, b=3)) == 2
        assert await connection.fetchval(*bound("one", a=5)) == 5


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("two", {"a": 1}, "two lacks b"),
        ("two", {"a": 1, "b": 2, "c": 3}, "two has no c"),
        ("two", {"a": 1, "c": 3}, "two lacks b and has no c"),
        ("one", {}, "one lacks a"),
        ("one", {"a": 1, "b": 2}, "one has no b"),
    ],
)
def test_a_name_that_is_missing_or_unknown_is_refused(
    loaded: None, name: str, values: dict[str, int], told: str
) -> None:
    with pytest.raises(TypeError, match=f"the SQL statement {told}$"):
        arguments(name, values)


def test_an_order_is_made_once_and_checked() -> None:
    given = tuple(reversed(names("key_create")))
    assert ordered("key_create", given)(given) == names("key_create")
    with pytest.raises(TypeError, match="lacks"):
        ordered("key_create", given[1:])


def test_an_extension_gives_values_by_number() -> None:
    assert named([("x.sql", "-- name: a\n-- include: b\n-- fragment: b\nSELECT $1")]) == {"a": "SELECT $1"}
    with pytest.raises(ValueError, match="a has parameters by name"):
        named([("x.sql", "-- name: a\nSELECT :x")])


def test_a_statement_with_numbers_takes_no_names() -> None:
    with pytest.raises(TypeError, match="has no parameters by name"):
        bound("plan_get", hash="x")
