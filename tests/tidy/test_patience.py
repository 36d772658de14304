"""A test waits long enough for a machine that is many times slower than its author's.

A limit of a few seconds on a wait that should succeed makes the suite fail by luck. A limit that must be reached, in a
block that expects a timeout, may be short.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.sources import modules, sample

PATIENCE_MIN_S = 60.0
HTTPX_TIMEOUT_S = 5.0  # what httpx takes if nothing is said
HTTPX = {f"httpx.{name}" for name in ("AsyncClient", "Client", "get", "post", "put", "delete", "request", "stream")}
# Calls that give up after a time: the position of the limit among the arguments, if it has one.
WAITS = {
    "timeout": 0,
    "wait_for": 1,
    "communicate": None,
    "result": None,
    "wait": None,
    "run": None,
    "check_output": None,
}


def _limit(call: ast.Call) -> float | None:
    """The time after which this call gives up, if the source says so in a number."""
    if ast.unparse(call.func) in HTTPX:
        given = {one.arg: one.value for one in call.keywords}
        unsaid = ast.Constant(value=None if "transport" in given else HTTPX_TIMEOUT_S)
        return _seconds(given.get("timeout", unsaid))
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    # `asyncio.wait` does not fail when its time is over: tests use it to show that something does not happen.
    if name not in WAITS or ast.unparse(call.func) == "asyncio.wait":
        return None
    position = WAITS[name]
    limits = [one.value for one in call.keywords if one.arg == "timeout"]
    if position is not None and len(call.args) > position and ast.unparse(call.func).startswith("asyncio."):
        limits.append(call.args[position])
    return _seconds(limits[0]) if limits else None


def _seconds(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as seconds):
            return float(seconds)
    return None


def _must_time_out(node: ast.AST) -> bool:
    """Whether a block expects a timeout."""
    return isinstance(node, ast.With | ast.AsyncWith) and any(
        ast.unparse(one.context_expr).startswith("pytest.raises(") and "Timeout" in ast.unparse(one.context_expr)
        for one in node.items
    )


def _patience(node: ast.AST) -> float | None:
    """How long a constant, or a deadline made from the clock, gives a wait."""
    match node:
        case ast.BinOp(left=ast.Call(func=ast.Attribute(attr="monotonic")), op=ast.Add(), right=right):
            return _seconds(right)
        case ast.Assign(targets=[ast.Name(id="PATIENCE_S")], value=value):
            return _seconds(value)
    return None


def impatient(node: ast.AST) -> Iterator[str]:
    """The waits of a file that give up too early."""
    if _must_time_out(node):
        return
    if isinstance(node, ast.Call) and (limit := _limit(node)) is not None and limit < PATIENCE_MIN_S:
        yield f"line {node.lineno}: {ast.unparse(node.func)} gives up after {limit:g} s"
    if (patience := _patience(node)) is not None and patience < PATIENCE_MIN_S:
        yield f"line {node.lineno}: a patience of {patience:g} s"
    for child in ast.iter_child_nodes(node):
        yield from impatient(child)


def test_a_wait_that_should_succeed_has_time() -> None:
    # The seconds of the simulation's loop are virtual.
    real = [module for module in modules("tests") if module.name != "tests/sim/test_loop.py"]
    offences = [f"{module.name}, {found}" for module in real for found in impatient(module.tree)]
    assert offences == []


@pytest.mark.parametrize(
    "code",
    [
        "async with asyncio.timeout(10):\n        pass",
        "await asyncio.wait_for(done, 5)",
        "process.communicate(timeout=30)",
        "job.result(timeout=20)",
        "with pytest.raises(JobCancelled):\n        job.result(timeout=5)",
        "PATIENCE_S = 20.0",
        "httpx.get(url)",
        "until_s = time.monotonic() + 10",
    ],
)
def test_a_short_limit_is_seen(code: str) -> None:
    assert list(impatient(sample(f"async def f():\n    {code}")))


@pytest.mark.parametrize(
    "code",
    [
        "job.result(timeout=60)",
        "with pytest.raises(TimeoutError):\n        job.result(timeout=0.1)",
        "await asyncio.wait([task], timeout=0.3)",
        "httpx.AsyncClient(transport=app)",
    ],
)
def test_a_long_limit_and_one_that_must_be_reached_are_allowed(code: str) -> None:
    assert not list(impatient(sample(f"async def f():\n    {code}")))
