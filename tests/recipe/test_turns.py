"""Turns among callers: by the time that their work took, never by how much of it waits."""

from __future__ import annotations

from windlass.recipe.turns import Turns


def order(turns: Turns[str], costs_s: dict[str, float]) -> list[str]:
    """Who has turns in which order, if each caller's items take so long."""
    found = []
    while (taken := turns.take()) is not None:
        caller, item = taken
        found.append(item)
        turns.done(caller, costs_s[caller])
    return found


def test_one_caller_is_served_in_order() -> None:
    turns: Turns[str] = Turns(1)
    for item in ("a1", "a2", "a3"):
        turns.put("a", item)
    assert order(turns, {"a": 1.0}) == ["a1", "a2", "a3"]
    assert turns.take() is None


def test_callers_alternate_however_long_a_line_is() -> None:
    turns: Turns[str] = Turns(1)
    for number in range(5):
        turns.put("a", f"a{number}")
    turns.put("b", "b0")
    turns.put("b", "b1")
    assert order(turns, {"a": 1.0, "b": 1.0})[:4] == ["a0", "b0", "a1", "b1"]


def test_a_quick_caller_passes_a_slow_one() -> None:
    turns: Turns[str] = Turns(1)
    for number in range(3):
        turns.put("slow", f"s{number}")
    for number in range(5):
        turns.put("quick", f"q{number}")
    assert order(turns, {"slow": 1.0, "quick": 0.1}) == ["s0", "q0", "q1", "q2", "q3", "q4", "s1", "s2"]


def test_a_new_caller_neither_waits_for_the_others_nor_owes_them() -> None:
    turns: Turns[str] = Turns(1)
    for number in range(9):
        turns.put("old", f"o{number}")
    for _ in range(4):
        turns.take()
        turns.done("old", 1.0)
    turns.put("new", "n0")
    turns.put("new", "n1")
    assert order(turns, {"old": 1.0, "new": 1.0})[:4] == ["n0", "o4", "n1", "o5"]


def test_a_caller_has_so_many_at_a_time() -> None:
    turns: Turns[str] = Turns(1)
    turns.put("a", "a0")
    turns.put("a", "a1")
    assert turns.take() == ("a", "a0")
    assert turns.take() is None, "its place is taken"
    turns.put("b", "b0")
    assert turns.take() == ("b", "b0")
    turns.done("a", 1.0)
    assert turns.take() == ("a", "a1")


def test_nothing_is_kept_of_callers_who_are_gone() -> None:
    turns: Turns[str] = Turns(1)
    for number in range(100):
        turns.put(f"caller{number}", "item")
    assert len(order(turns, {f"caller{number}": 0.1 for number in range(100)})) == 100
    assert not turns._clocks_s and not turns._running and not turns._lines
