"""One page's Python, run from top to bottom as a reader would type it."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

from tests.docs.blocks import blocks_of
from windlass.recipe.recipe import Recipe


class Page:
    """The page's blocks in one module; files that it shows are written to `folder`."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.module = types.ModuleType(f"docs_{page.stem.replace('-', '_').lower()}")

    def run(self) -> None:
        """Execute every Python block, so that an error names the page and its line."""
        # Hints are looked up in the module by its name, as they would be in a file.
        sys.modules[self.module.__name__] = self.module
        for block in blocks_of(self.page):
            if block.language == "python":
                code = compile("\n" * (block.line - 1) + block.text, str(self.page), "exec", dont_inherit=True)
                exec(code, self.module.__dict__)

    def tests(self) -> list[Any]:
        """The tests that the page shows."""
        return [value for name, value in self.module.__dict__.items() if name.startswith("test_")]

    def write_files(self) -> list[Path]:
        """Write the blocks that are files."""
        written = []
        for block in blocks_of(self.page):
            if block.file_name:
                written.append(self.folder / block.file_name)
                written[-1].write_text(block.text, encoding="utf-8")
        return written

    def recipe(self, name: str) -> Recipe | None:
        """The recipe that the page defines under this name."""
        found = self.module.__dict__.get(name)
        return found if isinstance(found, Recipe) else None

    def recipes(self) -> list[Recipe]:
        """Every recipe that the page defines."""
        return [value for value in self.module.__dict__.values() if isinstance(value, Recipe)]
