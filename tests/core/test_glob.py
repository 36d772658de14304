"""Globs: whole texts, in linear time, and which of two is the wider."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.glob import Glob, narrower


@pytest.mark.parametrize(
    ("glob", "text", "is_match"),
    [
        ("job.mail", "job.mail", True),
        ("job.mail", "job.mails", False),
        ("job.*", "job.", True),
        ("job.*", "job.mail.send", True),
        ("job.*.send", "job.mail.send", True),
        ("job.*.send", "job.send", False),
        ("job.?", "job.a", True),
        ("job.?", "job.", False),
        ("job.?", "job.ab", False),
        ("*a?c*", "xxabcxx", True),
        ("*a?c*", "xxac", False),
        ("a*b*c", "abc", True),
        ("a*b*c", "acb", False),
        ("*", "", True),
        ("**", "x", True),
        ("ab*ba", "aba", False),
        ("a*?b", "ab", False),
        ("a*?b", "axb", True),
    ],
)
def test_a_glob_matches_whole_texts(glob: str, text: str, is_match: bool) -> None:
    assert Glob(glob).matches(text) is is_match


def test_a_glob_has_a_fixed_prefix() -> None:
    assert (Glob("job.m?il.*").prefix, Glob("job").prefix, Glob("*").prefix) == ("job.m", "job", "")
    assert (Glob("job").is_plain, Glob("jo?").is_plain, Glob("j*?").wildcards) == (True, False, 2)
    assert Glob("a") == Glob("a") and Glob("a") != Glob("b")


def test_a_hostile_glob_takes_no_time() -> None:
    assert not Glob("*a" * 8 + "*b").matches("a" * 100_000)


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        ("*", "a*", True),
        ("a*", "ab*", True),
        ("a*", "*a", False),
        ("a?", "a?", True),
        ("a?", "a*", False),
        ("a?*", "a*", False),
        ("a*", "a", True),
        ("a", "a*", False),
    ],
)
def test_one_glob_covers_another(wide: str, narrow: str, is_covered: bool) -> None:
    assert Glob(wide).covers(Glob(narrow)) is is_covered


def test_the_narrower_globs_of_two_sets_are_kept() -> None:
    assert narrower(frozenset({"*.a.com", "b.com"}), frozenset({"x.a.com", "*"})) == {"x.a.com", "*.a.com", "b.com"}
    assert narrower(frozenset({"a*"}), frozenset({"*b"})) == frozenset()
    assert narrower(frozenset(), frozenset({"*"})) == frozenset()


TEXT = st.text("ab", max_size=6)
GLOB = st.text("ab*?", max_size=6)


@given(GLOB, TEXT)
def test_a_glob_means_what_its_regular_expression_means(glob: str, text: str) -> None:
    pattern = "".join({"*": ".*", "?": "."}.get(char, char) for char in glob)
    assert Glob(glob).matches(text) is (re.fullmatch(pattern, text) is not None)


@given(GLOB, GLOB, TEXT)
def test_a_covering_glob_matches_whatever_the_other_matches(wide: str, narrow: str, text: str) -> None:
    if Glob(wide).covers(Glob(narrow)) and Glob(narrow).matches(text):
        assert Glob(wide).matches(text)


@given(st.frozensets(GLOB, max_size=3), st.frozensets(GLOB, max_size=3), TEXT)
def test_a_text_that_the_narrower_globs_match_is_matched_by_both_sets(
    left: frozenset[str], right: frozenset[str], text: str
) -> None:
    if any(Glob(one).matches(text) for one in narrower(left, right)):
        assert any(Glob(one).matches(text) for one in left)
        assert any(Glob(one).matches(text) for one in right)
