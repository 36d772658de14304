from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client.server import Server, client_of
from windlass.testing.postgres import fresh_database


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"), asyncio.run(fresh_database()))
    yield made
    made.stop()


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(kind: str, server: Server, loop_runner: asyncio.Runner) -> Iterator[Any]:
    made = client_of(kind, loop_runner, server.url, server.key)
    yield made
    made.close()
