"""The pages of the site: the Markdown of the repository, with its links and pictures made fit for a site.

The sources are written for GitHub: a folder's first page is README.md, links lead to files, and state diagrams are
Mermaid. The generator wants index.md, links within its own folder, and would load Mermaid from a foreign server.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

# Pages of the repository's root that the site has too. The others are about the repository, not the product.
ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "STYLE.md")
PROJECT = "project"
# The folders of docs/ that hold no pages.
NO_PAGES = frozenset({"site", "__pycache__"})
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<bang>!?)\[(?P<text>[^][]*(?:\[[^][]*\][^][]*)*)\]\((?P<target>[^)\s]+)\)")
_MOVE = re.compile(r"^\s*(?P<source>\S+) --> (?P<target>\S+)$", re.MULTILINE)
_SECTION = re.compile(r"^\*\*(?P<title>[^*]+)\*\*(?P<rest>.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)
_MARK = "[*]"
_BOX = "unfinished"


class BadPage(Exception):
    """A page holds something that the site cannot show; the message names the page."""


def sources(root: Path) -> Iterator[Path]:
    """The files that become part of the site, in a fixed order."""
    for name in ROOT_PAGES:
        yield root / name
    for folder, names, files in os.walk(root / "docs"):
        names[:] = sorted(name for name in names if name not in NO_PAGES)
        yield from (Path(folder, name) for name in sorted(files) if not name.endswith((".py", ".pyc")))


def place(root: Path, source: Path) -> str:
    """The path of a source on the site."""
    path = source.relative_to(root).as_posix()
    if not path.startswith("docs/"):
        return f"{PROJECT}/{path.lower()}" if path != "README.md" else f"{PROJECT}/about.md"
    folder, name = posixpath.split(path.removeprefix("docs/"))
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def stage(root: Path, folder: Path) -> None:
    """Write every page and picture to `folder`, ready for the generator."""
    places = {source: place(root, source) for source in sources(root)}
    for source, path in places.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = source.read_text(encoding="utf-8")
            target.write_text(_page(source, text, places), encoding="utf-8")
        else:
            target.write_bytes(source.read_bytes())


def navigation(root: Path) -> list[dict[str, object]]:
    """The site's menu: the sections of docs/README.md in their order, then the project's own pages."""
    text = (root / "docs" / "README.md").read_text(encoding="utf-8")
    menu: list[dict[str, object]] = [{"Home": ["index.md", {"What Windlass is": f"{PROJECT}/about.md"}]}]
    for section in _SECTION.finditer(text):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", section["title"])
        found = _links_of(section.group(), "")
        if len(found) == 1 and found[0].endswith("/index.md"):
            folder = posixpath.dirname(found[0])
            found += _links_of((root / "docs" / folder / "README.md").read_text(encoding="utf-8"), folder)
        menu.append({title: list(dict.fromkeys(found))})
    others = [place(root, root / name) for name in ROOT_PAGES if name != "README.md"]
    return [*menu, {"Project": others}]


def _links_of(text: str, folder: str) -> list[str]:
    targets = (link["target"] for link in _LINK.finditer(_FENCE.sub("", text)))
    pages = [target for target in targets if target.endswith(".md") and not target.startswith(("..", "http"))]
    return [posixpath.join(folder, re.sub(r"README\.md$", "index.md", target)) for target in pages]


def _page(source: Path, text: str, places: dict[Path, str]) -> str:
    """The page as the generator wants it. Fences are left alone, but for their language and for state diagrams."""
    made, end = [], 0
    for fence in _FENCE.finditer(text):
        made += [_linked(source, text[end : fence.start()], places), _fenced(source, fence)]
        end = fence.end()
    return "".join([*made, _linked(source, text[end:], places)])


def _fenced(source: Path, fence: re.Match[str]) -> str:
    language = (fence["info"].split() or ["text"])[0]
    if language == "mermaid":
        return _moves(source, fence["text"])
    return f"{fence['fence']}{language}\n{fence['text']}{fence['fence']}"


def _moves(source: Path, text: str) -> str:
    """A state diagram as a table: a picture of it would need a script of three megabytes."""
    if not text.startswith("stateDiagram"):
        raise BadPage(f"{source}: the site shows no Mermaid but state diagrams")
    moves: dict[str, list[str]] = {}
    for move in _MOVE.finditer(text):
        moves.setdefault(move["source"], []).append(move["target"])
    first, shared = moves.pop(_MARK, []), moves.pop(_BOX, [])
    rows = ["| from | to |", "|---|---|", f"| *(new)* | {', '.join(first)} |"]
    rows += [f"| {state} | {', '.join(targets)} |" for state, targets in moves.items() if targets != [_MARK]]
    if shared:
        rows.append(f"| *any unfinished state* | {', '.join(shared)} |")
    return "\n".join(rows).replace(_MARK, "*(end)*")


def _linked(source: Path, text: str, places: dict[Path, str]) -> str:
    """The prose with links between places of the site. A link to a file that the site has not keeps its text only."""

    def changed(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return link.group()
        path = Path(os.path.normpath(source.parent / target))
        found = places.get(path)
        if found is None:
            return link["text"]
        here = posixpath.dirname(places[source]) or "."
        there = posixpath.relpath(found, here) + (f"#{anchor}" if anchor else "")
        return f"{link['bang']}[{link['text']}]({there})"

    return _LINK.sub(changed, text)
