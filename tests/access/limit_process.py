"""A process that asks for one caller as fast as it can, and prints how often it was let in.

`python -m tests.access.limit_process DSN ASKS MOST`
"""

from __future__ import annotations

import asyncio
import sys

from windlass.access.limiter import Limiter, PostgresLimits
from windlass.core.caller import CallerContext
from windlass.core.errors import Limited
from windlass.core.limit import FairShare
from windlass.store.database import Database


async def main(dsn: str, asks: int, most: int) -> None:
    db = await Database.open(dsn)
    limiter = Limiter(PostgresLimits(db), FairShare(capacity=most, floor=most, burst=1.0))
    await limiter.admit(CallerContext("warm-up"))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    admitted = 0

    async def ask() -> None:
        nonlocal admitted
        try:
            await limiter.admit(CallerContext("ada"))
            admitted += 1
        except Limited:
            pass

    for start in range(0, asks, 50):
        await asyncio.gather(*(ask() for _ in range(min(50, asks - start))))
    print(admitted, flush=True)
    await db.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
