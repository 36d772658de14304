"""Every module says what it is for, and a package's `__init__` only passes names on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.sources import modules, sample


def code_in_init(tree: ast.Module) -> Iterator[str]:
    """Statements that are no docstring, import or `__all__`."""
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AnnAssign(target=ast.Name(id="__all__")):
                continue
            case _:
                yield f"line {node.lineno}: {type(node).__name__}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        module.name
        for module in modules("src")
        if module.path.name != "__init__.py" and not ast.get_docstring(module.tree)
    ]
    assert silent == []


def test_no_package_has_code_in_its_init() -> None:
    inits = [module for module in modules("src", "tests") if module.path.name == "__init__.py"]
    offences = [f"{module.name}: {offence}" for module in inits for offence in code_in_init(module.tree)]
    assert not offences, offences


def test_examples_use_public_names_only() -> None:
    offences = []
    for module in (m for m in modules("src") if m.room == "examples" and m.path.stem != "__init__"):
        for node in ast.walk(module.tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            offences += [f"{module.name}: {name}" for name in names if name.startswith("windlass.")]
    assert not offences, offences


def test_no_import_hides_behind_type_checking() -> None:
    """A cycle that only a type checker sees is still a cycle."""
    hidden = [module.name for module in modules("src") if "TYPE_CHECKING" in module.text]
    assert hidden == []


@pytest.mark.parametrize("code", ["x = 1", "def f(): ...", "if True: import a", "try:\n  import a\nexcept E: a = 0"])
def test_code_in_an_init_is_seen(code: str) -> None:
    assert list(code_in_init(sample(code)))


def test_re_exports_are_fine() -> None:
    assert list(code_in_init(sample('"""Doc."""\nfrom a import b\n__all__ = ["b"]'))) == []
