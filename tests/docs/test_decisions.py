"""Every page of `docs/decisions` says what would make us decide again."""

from __future__ import annotations

import pytest

from tests.tidy.sources import ROOT

PAGES = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md")


@pytest.mark.covers("CIX-14")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_decision_says_when_to_revisit_it(path) -> None:  # type: ignore[no-untyped-def]
    _, found, said = path.read_text(encoding="utf-8").partition("\n## Revisit when\n")
    assert found, "give it a section `## Revisit when`"
    assert "\n## " not in said and 40 <= len(said.strip()) <= 400, "one or two sentences, at the end of the page"


def test_there_are_pages() -> None:
    assert len(PAGES) > 30
