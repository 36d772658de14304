"""Every link from one page to another leads somewhere, to a heading if it names one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import FENCE, ROOT, pages

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The headings of a page as links name them: small letters, dashes, nothing but words."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path, text: str) -> Iterator[str]:
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: {link}"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8") if file else text):
            yield f"{page.relative_to(ROOT)}: {link} has no such heading"


def test_every_link_leads_somewhere() -> None:
    found = [*pages(), ROOT / "bench/README.md"]
    assert [one for page in found for one in broken(page, page.read_text(encoding="utf-8"))] == []


def test_a_broken_link_is_seen() -> None:
    text = "# One heading\n[a](nowhere.md) [b](#one-heading) [c](#another) [d](https://example.com/x)\n"
    wanted = ["README.md: nowhere.md", "README.md: #another has no such heading"]
    assert list(broken(ROOT / "README.md", text)) == wanted
