"""The code blocks of the README and the docs, with the page and line they stand on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
# What a reader would copy is run or checked; `text` is for what cannot be.
LANGUAGES = {"python", "yaml", "json", "toml", "bash", "sql", "mermaid", "text"}


@dataclass(frozen=True)
class Block:
    """One fenced block. `marks` are the words after the language, as in `bash run`."""

    page: Path
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_providers(self) -> bool:
        """Whether it is a `providers.yaml`, and not a recipe."""
        return self.language == "yaml" and re.search(r"^providers:", self.text, re.MULTILINE) is not None

    @property
    def is_policy(self) -> bool:
        """Whether it is a policy."""
        return self.language == "yaml" and re.search(r"^(default_decision|tier|rules):", self.text, re.M) is not None

    @property
    def is_policy_request(self) -> bool:
        """Whether it is a request that a policy is asked about."""
        return self.language == "yaml" and re.search(r"^topic:", self.text, re.MULTILINE) is not None

    @property
    def is_recipe(self) -> bool:
        """Whether it is a recipe."""
        return self.language == "yaml" and not (self.is_providers or self.is_policy or self.is_policy_request)

    @property
    def file_name(self) -> str | None:
        """A block that opens with `# name.py` is that file, for the commands further down the page."""
        found = re.match(r"# ([\w-]+\.(?:py|yaml|toml|json))\n", self.text)
        return found[1] if found else None


def pages() -> list[Path]:
    """Every page of prose that a user reads."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks_of(page: Path) -> list[Block]:
    """The page's blocks, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, *marks = match["info"].split() or [""]
        line = text.count("\n", 0, match.start("text")) + 1
        found.append(Block(page, line, language, tuple(marks), match["text"]))
    return found


def blocks(*languages: str, where: Callable[[Block], bool] = lambda block: True) -> list[Block]:
    """Every block in one of these languages."""
    return [block for page in pages() for block in blocks_of(page) if block.language in languages and where(block)]
