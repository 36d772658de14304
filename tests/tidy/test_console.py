"""The console's sources: no cast that hides a wrong type, and comments in plain English."""

from __future__ import annotations

import re

from tests.tidy.sources import ROOT, project_files
from tests.tidy.test_prose import FORM

GENERATED = "web/src/api/types.gen.ts"
SOURCES = {
    name: path.read_text(encoding="utf-8")
    for path in project_files()
    if (name := path.relative_to(ROOT).as_posix()).startswith("web/")
    and path.suffix in (".ts", ".tsx", ".mjs")
    and name != GENERATED
}
DOUBLE_CAST = re.compile(r"\bas\s+unknown\s+as\b")
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
PER_THOUSAND_MAX = 1.0


def per_thousand(text: str) -> float:
    """How many forms of the dialect there are in a thousand words of comments."""
    comments = " ".join(COMMENT.findall(text))
    return 1000 * len(FORM.findall(comments)) / max(1, len(re.findall(r"[A-Za-z']+", comments)))


def test_no_cast_goes_through_unknown() -> None:
    assert [name for name, text in SOURCES.items() if DOUBLE_CAST.search(text)] == []


def test_a_cast_through_unknown_would_be_found() -> None:
    assert DOUBLE_CAST.search("const job = {} as unknown as JobDocument;")
    assert not DOUBLE_CAST.search("const told = frame as unknown;")


def test_the_comments_are_plain() -> None:
    assert len(SOURCES) > 200
    assert per_thousand("\n".join(SOURCES.values())) <= PER_THOUSAND_MAX


def test_the_dialect_would_be_counted() -> None:
    assert per_thousand("// Whoever comes here waits for somebody.") > 100
    assert per_thousand('const text = "nobody"; // plain words') == 0
