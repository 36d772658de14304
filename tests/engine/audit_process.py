"""A process that runs the auditor without a pause, until it is killed.

`python -m tests.engine.audit_process DSN`
"""

from __future__ import annotations

import asyncio
import sys

from windlass.engine.loops.auditor import Auditor
from windlass.store.database import Database


async def main(dsn: str) -> None:
    db = await Database.open(dsn, max_size=2)
    auditor = Auditor(db)
    await auditor.run_once()
    print("ready", flush=True)
    while True:
        await auditor.run_once()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
