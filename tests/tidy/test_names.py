"""A name says what a thing is. The words below say nothing about the thing."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.sources import ROOT, modules

EMPTY_WORDS = ("utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc", "impl", "stuff")
EMPTY_CLASS = re.compile(r"(Impl|Manager|Helper|Helpers|Utils?|Base)$")
TWIN = re.compile(r"_v\d+$")


def empty_parts(module_name: str) -> list[str]:
    """The words of a module's path that say nothing."""
    parts = re.split(r"[/._]", module_name.removesuffix(".py"))
    return [part for part in parts if part.lower() in EMPTY_WORDS]


def test_no_module_has_an_empty_name() -> None:
    assert [module.name for module in modules() if empty_parts(module.name)] == []


def test_no_module_is_a_versioned_twin() -> None:
    assert [module.name for module in modules() if TWIN.search(module.path.stem)] == []


def test_no_class_has_an_empty_name() -> None:
    offences = [
        f"{module.name}: {node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and EMPTY_CLASS.search(node.name)
    ]
    assert not offences, offences


def test_a_test_file_is_where_pytest_looks() -> None:
    def has_tests(tree: ast.Module) -> bool:
        return any(getattr(node, "name", "").startswith("test_") for node in tree.body)

    lost = [m.name for m in modules("tests") if has_tests(m.tree) and not m.path.name.startswith("test_")]
    assert lost == []


def test_the_repository_has_its_front_door() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", ".ci/run"):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("name", ["src/windlass/utils.py", "src/windlass/store/db_helpers.py", "src/base/x.py"])
def test_an_empty_name_is_seen(name: str) -> None:
    assert empty_parts(name)
