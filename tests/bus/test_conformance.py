"""Every bus that is shipped passes the suite that is shipped."""

from __future__ import annotations

import asyncpg
import pytest

from windlass.bus.port import Bus
from windlass.bus.postgres import PostgresBus
from windlass.testing.bus_conformance import BusConformance


class TestPostgres(BusConformance):
    @pytest.fixture(autouse=True)
    def _at(self, dsn: str) -> None:
        self._dsn = dsn

    async def open(self) -> Bus:
        return PostgresBus(lambda: asyncpg.connect(self._dsn))

    async def cut_off(self) -> None:
        admin = await asyncpg.connect(self._dsn)
        try:
            await admin.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        finally:
            await admin.close()
