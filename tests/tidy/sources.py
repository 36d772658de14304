"""The project's own files, as the tidy checks see them."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "windlass"
PYTHON_TREES = ("src", "tests", "bench", "docs")


@dataclass(frozen=True)
class Module:
    """A Python file: where it is, its text, its syntax tree."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def room(self) -> str:
        """The part of the package it belongs to: `core`, `engine`, …; empty for the package's own files."""
        parts = self.path.relative_to(SRC).parts
        return parts[0] if len(parts) > 1 else ""


@cache
def _module(path: Path) -> Module:
    return Module(path)


def modules(*trees: str) -> tuple[Module, ...]:
    """Every Python file below these folders of the repository, all of ours when none is named."""
    wanted = trees or PYTHON_TREES
    paths = [path for path in project_files() if path.suffix == ".py"]
    return tuple(_module(path) for path in paths if path.relative_to(ROOT).parts[0] in wanted)


def room(*names: str) -> tuple[Module, ...]:
    """The modules of these rooms; a room that is not there is a mistake in the check, not a pass."""
    found = tuple(module for module in modules("src") if module.room in names)
    missing = set(names) - {module.room for module in found}
    assert not missing, f"no such room: {sorted(missing)}"
    return found


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of names; what is called or indexed on the way is left out (`a().b` is `a.b`)."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}".lstrip(".")
        case ast.Call(func=func):
            return dotted(func)
        case ast.Subscript(value=value):
            return dotted(value)
        case ast.Await(value=value):
            return dotted(value)
        case _:
            return ""


def sample(code: str) -> ast.Module:
    """A planted piece of code, to show that a check can fail."""
    return ast.parse(code)
