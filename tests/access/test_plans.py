"""The statements of tickets, callers and streams find their rows by an index, however many there are."""

from __future__ import annotations

import pytest

from windlass.store.database import Database
from windlass.store.statements import sql

FILL = {
    "ticket_spend": "INSERT INTO windlass.tickets SELECT sha256(n::text::bytea), '{}', NULL, windlass.clock()"
    " FROM generate_series(1, 100000) AS n",
    "caller_find": "INSERT INTO windlass.caller_aliases SELECT sha256(n::text::bytea), 'c' || n, NULL, windlass.clock()"
    " FROM generate_series(1, 100000) AS n",
    "stream_nodes": "INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s)"
    " SELECT gen_random_uuid(), n, 0, 'COMPLETED', 'q', 0, 0, 1 FROM generate_series(1, 100000) AS n",
}
GIVEN = {
    "ticket_spend": "'{}', NULL",
    "caller_find": "'{}'",
    "stream_nodes": "'00000000-0000-0000-0000-000000000000', '{1}'",
}


@pytest.mark.parametrize("name", FILL)
async def test_no_table_is_read_through(db: Database, name: str) -> None:
    async with db.connection() as connection:
        await connection.execute(FILL[name])
        await connection.execute("ANALYZE windlass.tickets, windlass.caller_aliases, windlass.steps, windlass.keys")
        await connection.execute(f"PREPARE looked_at AS {sql(name)}")
        rows = await connection.fetch(f"EXPLAIN EXECUTE looked_at({GIVEN[name]})")
        await connection.execute("DEALLOCATE looked_at")
    plan = "\n".join(row[0] for row in rows)
    assert "Index" in plan
    assert "Seq Scan" not in plan, plan
