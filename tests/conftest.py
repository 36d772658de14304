"""Fixtures: a real PostgreSQL, an emptied database, and clocks, ids and random numbers that the test controls.

Tests and fixtures may be `async def`; those of one test share one event loop.

- `dsn`: a migrated, empty database. It is shared by the tests of a process, one after the other.
- `fresh_dsn`: a database of the test's own, for tests that start processes or look at the schema.
- `db`: a connection to `dsn` that goes by the server's clock; `timed_db` goes by `clock`, which only the test moves.
- `server_folder`: a place for a PostgreSQL server of the test's own.
- `no_pauses`: operations do not wait between their tries.
- `ids`, `spread`, `artifacts`, `evaluator`: arguments of the engine. `ids` follows `clock`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, settings

from windlass.app.entropy import Ids
from windlass.recipe.evaluator import Evaluator
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock
from windlass.testing.postgres import empty, fresh_database

# A loaded machine is slow, which is no fault of the code; and runs are the same every time.
settings.register_profile(
    "windlass", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("windlass")


def pytest_configure() -> None:
    """Give the processes that tests start the usual Ctrl-C, also where the suite itself is a background job.

    A shell starts background jobs with SIGINT ignored, and an ignored signal stays ignored in every process started
    from there. A signal that has a handler gets its default action in a new process.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half as many processes again as there are cores: the tests wait for PostgreSQL, leases and other processes."""
    return max(1, (os.cpu_count() or 1) * 3 // 2)


@pytest.fixture
def loop_runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner: asyncio.Runner = pyfuncitem._request.getfixturevalue("loop_runner")
    names = pyfuncitem._fixtureinfo.argnames
    runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Run `async def` fixtures, with or without a `yield`, on the loop of their test."""
    function = fixturedef.func
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        runner: asyncio.Runner = request.getfixturevalue("loop_runner")
        drive = _generated if inspect.isasyncgenfunction(function) else _awaited
        fixturedef.func = wraps(function)(partial(drive, runner, function))  # type: ignore[misc]
        try:
            return (yield)
        finally:
            fixturedef.func = function  # type: ignore[misc]
    return (yield)


def _awaited(runner: asyncio.Runner, function: Callable[..., Any], **given: Any) -> Any:
    return runner.run(function(**given))


def _generated(runner: asyncio.Runner, function: Callable[..., AsyncIterator[Any]], **given: Any) -> Iterator[Any]:
    generator = function(**given)

    async def step() -> Any:
        return await anext(generator)

    yield runner.run(step())
    try:
        runner.run(step())
    except StopAsyncIteration:
        return
    raise RuntimeError(f"fixture {function.__name__} yields more than once")


@pytest.fixture(scope="session")
def _shared_dsn() -> str:
    return asyncio.run(fresh_database())


@pytest.fixture
def dsn(_shared_dsn: str, loop_runner: asyncio.Runner) -> str:
    async def clear() -> None:
        connection = await asyncpg.connect(_shared_dsn)
        try:
            await empty(connection)
        finally:
            await connection.close()

    loop_runner.run(clear())
    return _shared_dsn


@pytest.fixture
async def fresh_dsn() -> str:
    return await fresh_database()


@pytest.fixture
def server_folder() -> Iterator[Path]:
    """A folder that a server's user may enter. Started by root, a server runs as another user.

    It is not below pytest's own folder: any other run of pytest that starts takes that right away. Its path is short,
    because the path of a socket has about a hundred characters at most.
    """
    with tempfile.TemporaryDirectory(prefix="windlass-test-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(dsn)
    yield database
    await database.close()


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations are repeated at once while the database cannot do them, instead of after 1, 2 and 4 s."""
    monkeypatch.setattr(Database, "_pause", lambda self, seconds: asyncio.sleep(0))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def timed_db(dsn: str, clock: VirtualClock) -> AsyncIterator[Database]:
    database = await Database.open(dsn, now=clock.now)
    yield database
    await database.close()


@pytest.fixture
def ids(clock: VirtualClock) -> Ids:
    return Ids(clock.now_ms, random.Random(7).getrandbits)


@pytest.fixture
def spread() -> Callable[[], float]:
    return random.Random(7).random


@pytest.fixture
def artifacts(tmp_path: Path) -> FolderArtifacts:
    return FolderArtifacts(tmp_path / "artifacts")


@pytest.fixture
def evaluator() -> Iterator[Evaluator]:
    made = Evaluator()
    yield made
    made.close()
