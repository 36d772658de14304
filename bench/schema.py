"""Windlass's own schema in a database of the benchmark, made by Windlass's own migrations."""

from windlass.store.database import Database
from windlass.store.migrate import migrate


async def make_schema(dsn: str) -> None:
    """Apply every migration."""
    database = await Database.open(dsn)
    try:
        await migrate(database)
    finally:
        await database.close()
