"""Inside a transaction, await the database and nothing else.

Any other wait there (a provider, a file, another pool's connection, a lock of our own) holds row locks for
as long as it takes, and is a point where a simulation could not replay the operation as one step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.sources import dotted, modules, sample


def _transaction_owner(node: ast.AsyncWith) -> str | None:
    """The connection's name in `async with connection.transaction():`."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "transaction":
            return dotted(call.func.value)
    return None


def _speaks_to(node: ast.Await, owner: str) -> bool:
    """Whether the awaited call is a method of the connection, or takes the connection as an argument."""
    call = node.value
    if not isinstance(call, ast.Call):
        return False
    if dotted(call.func).startswith(f"{owner}."):
        return True
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(dotted(argument) == owner for argument in given)


def foreign_awaits(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.AsyncWith) or (owner := _transaction_owner(node)) is None:
            continue
        for inner in (child for statement in node.body for child in ast.walk(statement)):
            if isinstance(inner, ast.Await) and not _speaks_to(inner, owner):
                yield f"line {inner.lineno}: await {dotted(inner.value) or '…'} inside a transaction"


def nested(tree: ast.AST) -> Iterator[str]:
    """The transactions within a transaction: they would be savepoints, and no commits."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncWith) and _transaction_owner(node) is not None:
            for inner in (child for statement in node.body for child in ast.walk(statement)):
                if isinstance(inner, ast.AsyncWith) and _transaction_owner(inner) is not None:
                    yield f"line {inner.lineno}: a transaction within a transaction"


@pytest.mark.covers("SCR-02", "COR-94")
def test_a_transaction_awaits_only_its_connection() -> None:
    offences = [f"{m.name}: {offence}" for m in modules("src") for offence in foreign_awaits(m.tree)]
    assert not offences, offences


@pytest.mark.covers("SCR-02")
def test_no_transaction_is_nested() -> None:
    offences = [f"{m.name}: {offence}" for m in modules("src") for offence in nested(m.tree)]
    assert not offences, offences


def test_a_nested_transaction_is_seen() -> None:
    inner = "if x:\n      async with c.transaction():\n        await c.execute(q)"
    assert list(nested(sample(f"async def f():\n  async with db.connection() as c, c.transaction():\n    {inner}")))


@pytest.mark.parametrize("call", ["http.get(url)", "asyncio.sleep(1)", "self.lock.acquire()", "pool.fetch(q)"])
def test_foreign_io_is_seen(call: str) -> None:
    code = f"async def f():\n  async with db.connection() as c, c.transaction():\n    await {call}"
    assert list(foreign_awaits(sample(code)))


@pytest.mark.parametrize("call", ["c.execute(q)", "rows.lock(c, ids)", "append(events, connection=c)"])
def test_the_connection_may_be_awaited(call: str) -> None:
    code = f"async def f():\n  async with db.connection() as c, c.transaction():\n    await {call}"
    assert list(foreign_awaits(sample(code))) == []
