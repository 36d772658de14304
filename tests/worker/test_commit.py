"""`wl.commit`: a handler's own operation, on a real PostgreSQL whose connections break."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

import windlass as wl
from windlass.worker import commit as module
from windlass.worker.fault import failure_of

MAKE = "CREATE TABLE IF NOT EXISTS own_notes (key text PRIMARY KEY, tries int NOT NULL)"
PUT = "INSERT INTO own_notes VALUES ($1, $2) ON CONFLICT DO NOTHING"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITS_S", (0.0, 0.0, 0.0))


class Saving:
    """An operation whose connection the server ends before the commit, the first `breaks` times."""

    def __init__(self, dsn: str, breaks: int) -> None:
        self.dsn, self.breaks, self.tries = dsn, breaks, 0

    async def __call__(self) -> int:
        self.tries += 1
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(MAKE)
            async with connection.transaction():
                await connection.execute(PUT, "k", self.tries)
                if self.tries <= self.breaks:
                    await self._end(connection.get_server_pid())
        finally:
            connection.terminate()
        return self.tries

    async def _end(self, pid: int) -> None:
        other = await asyncpg.connect(self.dsn)
        await other.execute("SELECT pg_terminate_backend($1, 10000)", pid)
        await other.close()

    async def stored(self) -> list[int]:
        connection = await asyncpg.connect(self.dsn)
        rows = await connection.fetch("SELECT tries FROM own_notes")
        await connection.close()
        return [row["tries"] for row in rows]


@pytest.mark.covers("SCR-81")
async def test_a_connection_that_drops_in_a_commit_costs_no_attempt(fresh_dsn: str) -> None:
    saving = Saving(fresh_dsn, breaks=1)

    async def save() -> int:
        return await saving()

    assert await wl.commit(save) == 2
    assert await saving.stored() == [2]


@pytest.mark.covers("SCR-81")
async def test_the_last_error_is_raised_for_the_worker_to_know(fresh_dsn: str) -> None:
    saving = Saving(fresh_dsn, breaks=99)

    async def save() -> int:
        return await saving()

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)) as raised:
        await wl.commit(save)
    assert saving.tries == 4
    failure = failure_of(raised.value)
    assert (failure.fault.code, failure.is_retryable) == ("database_lost", True)


async def test_a_fault_of_the_operation_is_raised_at_once(dsn: str) -> None:
    tries = 0

    async def wrong() -> None:
        nonlocal tries
        tries += 1
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute("SELECT no_such_column")
        finally:
            await connection.close()

    with pytest.raises(asyncpg.UndefinedColumnError):
        await wl.commit(wrong)
    assert tries == 1


async def test_a_plain_handler_may_use_it_too() -> None:
    tries = 0

    def save() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionRefusedError("nobody listens")
        return "saved"

    assert await asyncio.to_thread(wl.commit, save) == "saved"
    assert tries == 3


def test_the_waits_are_those_of_a_short_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert module.WAITS_S == (1.0, 2.0, 4.0)
