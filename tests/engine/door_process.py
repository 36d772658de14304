"""A process that submits jobs, one after another, and prints how many were let in and how many were denied.

`python -m tests.engine.door_process DSN COUNT`. It begins when it reads a line.
"""

from __future__ import annotations

import asyncio
import sys

from tests.engine.rig import plan, task
from windlass.app.entropy import Ids
from windlass.core.errors import Denied
from windlass.engine import recipes
from windlass.engine.submit import Submission, submit
from windlass.store.database import Database


async def main(dsn: str, count: int) -> None:
    db = await Database.open(dsn, max_size=1)
    of, ids = plan(task("a")), Ids()
    await recipes.register(db, of)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    denied = 0
    for _ in range(count):
        [answer] = await submit(db, [Submission(of, {}, ids.new())])
        denied += isinstance(answer, Denied)
    print(count - denied, denied, flush=True)
    await db.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
