"""The schema as the server's catalog has it, as text that is the same however the schema came about.

`python -m tests.store.catalog` writes it to `schema.txt`, which is checked in: a change of the schema shows in review.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg

from windlass.testing.postgres import fresh_database

SNAPSHOT = Path(__file__).with_name("schema.txt")

_COLUMNS = """
SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
       || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
       || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'windlass'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p', 'v', 'm')
"""
_TABLES = """
SELECT 'table ' || c.relname || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'windlass'
WHERE c.relkind IN ('r', 'p', 'v', 'm')
"""
_INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'windlass'"
_CONSTRAINTS = """
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(c.oid)
FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace AND n.nspname = 'windlass'
WHERE contype <> 'n'
"""
_FUNCTIONS = """
SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = 'windlass'
"""
_TRIGGERS = """
SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'windlass' WHERE NOT t.tgisinternal
"""


async def catalog(dsn: str) -> str:
    """Tables, columns, indexes, constraints, functions and triggers, each kind sorted."""
    connection = await asyncpg.connect(dsn)
    try:
        parts = []
        for query in (_TABLES, _COLUMNS, _INDEXES, _CONSTRAINTS, _FUNCTIONS, _TRIGGERS):
            parts += sorted(row[0].rstrip() for row in await connection.fetch(query))
    finally:
        await connection.close()
    return "\n".join(parts) + "\n"


async def _write() -> None:
    SNAPSHOT.write_text(await catalog(await fresh_database()))


if __name__ == "__main__":
    asyncio.run(_write())
