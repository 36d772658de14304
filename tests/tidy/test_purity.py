"""The engine can be simulated because it takes time, random numbers and ids from its caller, and runs in one thread.

`core` and `engine` are checked: no wall clock, no random numbers, no uuids of their own making, no threads, no
sleeping thread, and nothing that follows the order of a set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.sources import Module, dotted, room, sample

FORBIDDEN_CALLS = (
    "time.time",
    "time.time_ns",
    "time.sleep",
    "time.localtime",
    "time.gmtime",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "os.urandom",
    "os.getrandom",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid1",
    "uuid4",
    "uuid7",
    "asyncio.to_thread",
    "run_in_executor",
)
FORBIDDEN_IMPORTS = ("random", "secrets", "threading", "multiprocessing", "concurrent.futures")
SET_CALLS = ("set", "frozenset")
# Their answer does not depend on the order in which they are fed.
ORDER_BLIND = (
    "sorted", "set", "frozenset", "len", "sum", "min", "max", "any", "all", "dict.fromkeys", "Counter",
)  # fmt: skip


def impure_calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if any(name == bad or name.endswith(f".{bad}") for bad in FORBIDDEN_CALLS):
                yield f"line {node.lineno}: {name}()"


def impure_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN_IMPORTS):
                yield f"line {node.lineno}: import {name}"


def _is_set(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Set | ast.SetComp)
        or (isinstance(node, ast.Call) and dotted(node.func) in SET_CALLS)
        or (isinstance(node, ast.BinOp) and (_is_set(node.left) or _is_set(node.right)))
    )


def set_orders(tree: ast.AST) -> Iterator[str]:
    """Loops over a set that is written on the spot, unless their result is a set or is fed to what sorts it."""
    blind: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in ORDER_BLIND:
            blind.update(id(argument) for argument in node.args)
        if isinstance(node, ast.SetComp):
            blind.add(id(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor) and _is_set(node.iter):
            yield f"line {node.lineno}: a loop in the order of a set"
        if (
            isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp)
            and any(_is_set(generator.iter) for generator in node.generators)
            and id(node) not in blind
        ):
            yield f"line {node.lineno}: a comprehension in the order of a set"
        if isinstance(node, ast.Call) and dotted(node.func) in ("list", "tuple", "enumerate", "iter"):
            for argument in node.args:
                if _is_set(argument) and id(node) not in blind:
                    yield f"line {node.lineno}: {dotted(node.func)}() of a set"


def _all(modules: tuple[Module, ...], *checks: object) -> list[str]:
    return [
        f"{module.name}: {offence}"
        for module in modules
        for check in checks
        for offence in check(module.tree)  # type: ignore[operator]
    ]


def test_core_and_engine_read_no_clock_and_no_random_numbers() -> None:
    offences = _all(room("core", "pure", "engine", "views"), impure_calls, impure_imports)
    assert not offences, offences


def test_core_and_engine_never_follow_the_order_of_a_set() -> None:
    offences = _all(room("core", "pure", "engine", "views"), set_orders)
    assert not offences, offences


@pytest.mark.parametrize(
    "code",
    [
        "import time\nnow = time.time()",
        "now = datetime.datetime.now(tz)",
        "from datetime import datetime\ndatetime.now(UTC)",
        "job = uuid4()",
        "loop.run_in_executor(None, f)",
    ],
)
def test_an_impure_call_is_seen(code: str) -> None:
    assert list(impure_calls(sample(code)))


@pytest.mark.parametrize(
    "code", ["import random", "from threading import Lock", "from concurrent.futures import Future"]
)
def test_an_impure_import_is_seen(code: str) -> None:
    assert list(impure_imports(sample(code)))


@pytest.mark.parametrize("code", ["for x in {1, 2}: f(x)", "a = [x for x in set(y)]", "a = list(set(b) - set(c))"])
def test_the_order_of_a_set_is_seen(code: str) -> None:
    assert list(set_orders(sample(code)))


@pytest.mark.parametrize("code", ["for x in sorted({1, 2}): f(x)", "a = sorted(x for x in set(y))", "{x for x in {1}}"])
def test_a_sorted_set_is_fine(code: str) -> None:
    assert list(set_orders(sample(code))) == []
