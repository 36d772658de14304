"""Marks are known: a requirement that a test claims to show exists, and no mark is misspelt."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.conformance.requirements import families, marks
from tests.tidy.sources import ROOT, dotted, modules, sample

BUILT_IN = {"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"}
SENTENCE_WORDS_MAX = 24


def own_marks() -> set[str]:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    return {re.split(r"[:(]", mark, maxsplit=1)[0] for mark in options["markers"]}


def unknown_marks(tree: ast.Module) -> Iterator[str]:
    """Every `pytest.mark.NAME` that neither pytest nor pyproject.toml knows."""
    known = BUILT_IN | own_marks()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node.value) == "pytest.mark" and node.attr not in known:
            yield f"line {node.lineno}: {node.attr}"


def wrong_covers(tree: ast.Module) -> Iterator[str]:
    """Every `covers` mark that names no requirement, an unknown one or one twice, or that decorates no test."""
    known = {key for family in families() for key in family.sentences}
    for mark in marks(tree, ""):
        if mark.test is None:
            yield f"line {mark.line}: the mark decorates no test"
        if not mark.ids or len(set(mark.ids)) < len(mark.ids):
            yield f"line {mark.line}: no requirement, or one twice"
        yield from (f"line {mark.line}: {one} is no requirement" for one in mark.ids if one not in known)


def test_every_mark_is_known() -> None:
    assert [f"{m.name}: {offence}" for m in modules("tests") for offence in unknown_marks(m.tree)] == []


def test_every_requirement_that_a_test_covers_exists() -> None:
    assert [f"{m.name}: {offence}" for m in modules("tests") for offence in wrong_covers(m.tree)] == []


def test_requirements_are_numbered_in_order() -> None:
    for family in families():
        numbers = [key.removeprefix(f"{family.prefix}-") for key in family.sentences]
        assert numbers == [f"{number:02}" for number in range(1, len(numbers) + 1)], family.prefix


def test_a_requirement_is_one_short_sentence() -> None:
    sentences = {key: text for family in families() for key, text in family.sentences.items()}
    long = [key for key, text in sentences.items() if len(text.split()) > SENTENCE_WORDS_MAX]
    assert long == []
    assert [key for key, text in sentences.items() if not text.endswith(".") or "|" in text] == []


@pytest.mark.parametrize(
    "code",
    [
        '@pytest.mark.covers("SCR-99")\ndef test_a(): ...',
        '@pytest.mark.covers("SCR-01", "SCR-01")\ndef test_a(): ...',
        "@pytest.mark.covers()\ndef test_a(): ...",
        '@pytest.mark.covers("SCR-01")\ndef not_a_test(): ...',
        'pytestmark = pytest.mark.covers("SCR-01")',
        "@pytest.mark.covers(NAME)\ndef test_a(): ...",
    ],
)
def test_a_wrong_covers_is_seen(code: str) -> None:
    assert list(wrong_covers(sample(code)))


def test_a_misspelt_mark_is_seen() -> None:
    assert list(unknown_marks(sample("@pytest.mark.cover('SCR-01')\ndef test_a(): ..."))) == ["line 1: cover"]


def test_a_right_covers_passes() -> None:
    assert list(wrong_covers(sample('@pytest.mark.covers("SCR-01")\nasync def test_a(): ...'))) == []
