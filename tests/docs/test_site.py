"""The documentation as a site: its menu has all pages, its links lead somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.blocks import ROOT, pages

sys.path.insert(0, str(ROOT / "docs/site"))

import site_build
import site_pages

# Elements that a browser loads, and the attribute that names the address.
LOADS = dict.fromkeys(("script", "img", "iframe", "source", "video", "audio", "embed"), "src")
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}


class Reader(HTMLParser):
    """The addresses and ids of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.classes: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids.update(found[name] for name in ("id", "name") if name in found)
        self.classes.update(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADS and LOADS[tag] in found:
            self.loaded.append(found[LOADS[tag]])
        if tag == "link" and set(found.get("rel", "").split()) & LOADED_LINKS:
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the real generator."""
    pytest.importorskip("zensical", reason="`make` installs it from requirements/site.txt")
    out = tmp_path_factory.mktemp("site") / "site"
    site_build.build(ROOT, out, print)
    return out


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Reader]:
    return {page: Reader(page) for page in sorted(site.rglob("*.html"))}


def test_every_page_is_on_the_site(read: dict[Path, Reader], site: Path) -> None:
    wanted = {site / site_pages.place(ROOT, page).replace(".md", ".html") for page in pages()}
    assert wanted == set(read)


def test_every_page_is_in_the_menu() -> None:
    """A new page needs a link in docs/README.md."""
    menu = re.findall(r"[\w/-]+\.md", json.dumps(site_pages.navigation(ROOT)))
    assert sorted(menu) == sorted(site_pages.place(ROOT, page) for page in pages())


def test_every_link_of_the_site_leads_somewhere(read: dict[Path, Reader]) -> None:
    broken = []
    for page, found in read.items():
        for link in [*found.links, *found.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                broken.append(f"{page.name}: {link}")
            elif parts.fragment and target in read and unquote(parts.fragment) not in read[target].ids:
                broken.append(f"{page.name}: {link} has no such heading")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(read: dict[Path, Reader], site: Path) -> None:
    assert [one for found in read.values() for one in found.loaded if re.match(r"[a-z]+:|//|/", one)] == []
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles
    addresses = [one for text in styles for one in re.findall(r"url\(([^)]*)\)|@import\s*([^;]*)", text)]
    assert [one for one in addresses if re.match(r"""['"]?(https?:|//)""", one[0] or one[1])] == []


def test_no_page_asks_for_what_the_theme_has_on_other_servers(read: dict[Path, Reader]) -> None:
    """The theme's script fetches libraries for such elements; the policy of the server would refuse them."""
    assert [page.name for page, found in read.items() if found.classes & {"mermaid", "glightbox", "pyodide"}] == []


def test_every_script_inside_a_page_is_noted_for_the_policy(read: dict[Path, Reader], site: Path) -> None:
    noted = set(json.loads((site / site_build.STAMP).read_text())["scripts"])
    found = {script for page in read for script in re.findall(rb"<script>(.*?)</script>", page.read_bytes(), re.DOTALL)}
    assert noted == {base64.b64encode(hashlib.sha256(one).digest()).decode() for one in found}
    # A hash for each depth of the tree, and some that all pages have: a policy that grows with the pages is none.
    assert 0 < len(noted) < 12
    bare = r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]+>"
    assert [page.name for page in read if re.search(bare, page.read_text())] == []


def test_the_search_knows_every_page(site: Path) -> None:
    text = (site / "search.json").read_text(encoding="utf-8")
    places = {one["location"].partition("#")[0] for one in json.loads(text)["items"]}
    pages_of_site = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert pages_of_site - places == set()


def test_the_same_sources_are_built_once(site: Path) -> None:
    said: list[str] = []
    site_build.build(ROOT, site, said.append)
    assert said == ["the documentation is up to date"]


def small(root: Path, **files: str) -> Path:
    """A repository of a few pages."""
    shutil.copytree(ROOT / "docs/site", root / "docs/site", ignore=shutil.ignore_patterns("__pycache__"))
    for name in site_pages.ROOT_PAGES:
        (root / name).write_text(f"# {name}\n")
    (root / "docs/README.md").write_text("# Docs\n\n**Guides**: [one](one.md)\n")
    (root / "docs/one.md").write_text("# One\n")
    for name, text in files.items():
        (root / "docs" / f"{name}.md").write_text(text)
    return root


def staged(tmp_path: Path, text: str) -> str:
    site_pages.stage(small(tmp_path / "repository", one=text), tmp_path / "stage")
    return (tmp_path / "stage/one.md").read_text()


def test_links_lead_to_the_pages_of_the_site(tmp_path: Path) -> None:
    text = "# One\n[a](../README.md#one) [b](README.md) [`c`](../src/x.py) [d](https://example.com/x.md) [e](#one)\n"
    wanted = "# One\n[a](project/about.md#one) [b](index.md) `c` [d](https://example.com/x.md) [e](#one)\n"
    assert staged(tmp_path, text) == wanted


def test_code_is_left_alone(tmp_path: Path) -> None:
    text = "```bash run\necho [a](../src/x.py)\n```\n\n````text\n```\n````\n"
    assert staged(tmp_path, text) == text.replace("bash run", "bash")


def test_a_state_diagram_becomes_a_table(tmp_path: Path) -> None:
    text = "```mermaid\nstateDiagram-v2\n    [*] --> A\n    state unfinished {\n        A --> B\n    }\n"
    text += "    B --> C\n    unfinished --> D\n    C --> [*]\n    D --> [*]\n```\n"
    rows = staged(tmp_path, text).splitlines()[2:]
    assert rows == ["| *(new)* | A |", "| A | B |", "| B | C |", "| *any unfinished state* | D |"]


def test_another_diagram_is_refused(tmp_path: Path) -> None:
    with pytest.raises(site_pages.BadPage, match=r"one\.md"):
        staged(tmp_path, "```mermaid\ngraph TD\n```\n")


def test_a_build_that_fails_leaves_the_former_site(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="`make` installs it from requirements/site.txt")
    root, out = small(tmp_path / "repository"), tmp_path / "out/site"
    site_build.build(root, out, print)
    before = (out / "one.html").read_text()
    (root / "docs/one.md").write_text("# Two\n\n[broken](#nowhere)\n")
    with pytest.raises(site_build.NotBuilt, match="nowhere"):
        site_build.build(root, out, print)
    assert (out / "one.html").read_text() == before
    assert [path.name for path in out.parent.iterdir()] == ["site"]


def test_without_the_generator_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_build, "GENERATOR", "a_generator_that_is_not_there")
    with pytest.raises(site_build.NotBuilt, match="not installed"):
        site_build.build(small(tmp_path / "repository"), tmp_path / "out", print)


def test_one_version_of_the_generator() -> None:
    pin = site_build.GENERATOR_PACKAGE.partition(";")[0]
    assert f"\n{pin} " in (ROOT / "requirements/site.txt").read_text()
