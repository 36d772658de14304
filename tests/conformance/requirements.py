"""Requirements and the tests that show them.

`docs/reference/requirements.toml` lists every requirement: a table for each family, in it a table for each section, in
that an id and a sentence. A test states which requirements it shows by a mark: `@pytest.mark.covers("COR-14")`.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "pytest.mark.covers"


@dataclass(frozen=True, slots=True)
class Family:
    """The requirements of one system: the prefix of their ids, the system's name, sentences by section and id."""

    prefix: str
    name: str
    sections: Mapping[str, Mapping[str, str]]

    @property
    def sentences(self) -> dict[str, str]:
        return {key: text for section in self.sections.values() for key, text in section.items()}


@dataclass(frozen=True, slots=True)
class Mark:
    """A `covers` mark: the test that carries it (None if it stands elsewhere), its line, the ids that it names."""

    test: str | None
    line: int
    ids: tuple[str, ...]


def families(root: Path = ROOT) -> tuple[Family, ...]:
    """Read the requirements of all families."""
    document = tomllib.loads((root / "docs/reference/requirements.toml").read_text(encoding="utf-8"))
    names: dict[str, str] = document.pop("families")
    if set(names) != set(document):
        raise ValueError(f"families without a name or without requirements: {sorted(set(names) ^ set(document))}")
    return tuple(Family(prefix, name, document[prefix]) for prefix, name in names.items())


def marks(tree: ast.Module, path: str) -> Iterator[Mark]:
    """Find every `covers` mark of a module, also a mark that decorates no test."""
    tests = {
        id(decorator): f"{path}::{node.name}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == MARK:
            ids = tuple(arg.value if isinstance(arg, ast.Constant) else ast.unparse(arg) for arg in node.args)
            yield Mark(tests.get(id(node)), node.lineno, tuple(map(str, ids)))


def is_marked(path: Path) -> bool:
    """Whether a file of tests holds a `covers` mark."""
    return MARK in path.read_text(encoding="utf-8")


def tests_by_id(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the marked tests of each requirement, as pytest names them, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in filter(is_marked, sorted((root / "tests").rglob("test_*.py"))):
        for mark in marks(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(root).as_posix()):
            for one in mark.ids:
                if mark.test is not None:
                    found[one].append(mark.test)
    return found
