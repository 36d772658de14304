"""Everything that runs in a process has one shape (`pure/service.py`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.sources import modules, sample

SHAPE = {"alive", "ready"}


def half_services(tree: ast.AST) -> Iterator[str]:
    """Classes that start and stop like a service, and do not say how they are."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        start = methods.get("start")
        # What is started for something that is named, or at once, is a part of another service.
        is_service = isinstance(start, ast.AsyncFunctionDef) and len(start.args.args) == 1 and "stop" in methods
        has_name = any(
            isinstance(target, ast.Name | ast.Attribute) and (getattr(target, "id", None) or target.attr) == "name"
            for one in ast.walk(node)
            if isinstance(one, ast.Assign | ast.AnnAssign)
            for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        )
        if is_service and not (methods.keys() >= SHAPE and has_name):
            yield f"line {node.lineno}: {node.name}"


def test_what_starts_and_stops_is_a_service() -> None:
    shipped = [module for module in modules("src") if module.room != "testing"]
    offences = [f"{module.name}: {offence}" for module in shipped for offence in half_services(module.tree)]
    assert not offences, offences


@pytest.mark.parametrize(
    ("more", "is_half"),
    [("", True), ("    def alive(self): ...\n    def ready(self): ...\n", True),
     ("    name = 'a'\n    def alive(self): ...\n    def ready(self): ...\n", False)],
)  # fmt: skip
def test_half_a_service_is_seen(more: str, is_half: bool) -> None:
    code = f"class A:\n    async def start(self): ...\n    async def stop(self): ...\n{more}"
    assert bool(list(half_services(sample(code)))) is is_half
