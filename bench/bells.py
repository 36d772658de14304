"""Writers that commit one row after the other: `python -m bench.bells DSN WRITERS SECONDS none|after|inside`.

`after` is Windlass's way: the bell goes with the commit if no other commit carries one, else right after it. `none` is
the same statement without bells. `inside` is a NOTIFY in every commit, for comparison.
"""

import asyncio
import sys
import time
from functools import partial
from typing import Any
from uuid import UUID

from windlass.core.bell import JobsEnded, payloads
from windlass.store.database import Database

CARRIED = """
    WITH row AS (INSERT INTO bell_row (value) VALUES ($1))
    SELECT CASE WHEN cardinality($2::text[]) > 0 AND pg_try_advisory_xact_lock(6015005) THEN (
        SELECT count(pg_notify(channel, payload)) FROM unnest($2, $3::text[]) AS b (channel, payload)
    ) > 0 END"""
INSIDE = "WITH row AS (INSERT INTO bell_row (value) VALUES ($1)) SELECT pg_notify($2, $3)"


async def write_one(connection: Any, kind: str, number: int) -> None:
    """Make one durable commit."""
    bell = JobsEnded((UUID(int=number),))
    match kind:
        case "none":
            await connection.fetchval(CARRIED, number, [], [])
        case "after":
            if not await connection.fetchval(CARRIED, number, *connection.carried([bell])):
                connection.ring(bell)
        case _:
            await connection.execute(INSIDE, number, bell.channel, payloads(bell)[0])


async def main(dsn: str, writers: int, seconds: float, kind: str) -> None:
    """Print the commits per second."""
    database = await Database.open(dsn, max_size=writers)
    await database.listen(JobsEnded, lambda _: None)
    ends_s = time.monotonic() + seconds
    done = 0

    async def write() -> None:
        nonlocal done
        while time.monotonic() < ends_s:
            await database.run(partial(write_one, kind=kind, number=done))
            done += 1

    await asyncio.gather(*(write() for _ in range(writers)))
    print(done / seconds)
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
