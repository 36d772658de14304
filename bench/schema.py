"""Creates Windlass's schema in a database of the benchmark, with Windlass's migrations."""

import os
import subprocess
import sys
from pathlib import Path

from bench.process import code_of
from windlass.store.database import Database
from windlass.store.migrate import migrate

_MAKE = "import asyncio, sys; from bench.schema import make_schema; asyncio.run(make_schema(sys.argv[1]))"


def make_schema_of(tree: Path, dsn: str) -> None:
    """Apply every migration of a checkout, in a process that runs its code."""
    subprocess.run([sys.executable, "-c", _MAKE, dsn], env={**os.environ, **code_of(tree)}, cwd=tree, check=True)


async def make_schema(dsn: str) -> None:
    """Apply every migration."""
    database = await Database.open(dsn)
    try:
        await migrate(database)
    finally:
        await database.close()
