"""A webhook sender as a process of its own, to be killed: `python -m tests.outbound.carrier DSN CLOCK`.

Its clock is what the file CLOCK says, so that the test decides when a lease runs out and when a try is due. It also
runs the webhook scheduler. Nothing here is gentle: the process ends by SIGKILL.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from tests.outbound.rig import INSTALLATION
from windlass.access.secret import Secret
from windlass.core.errors import Unavailable
from windlass.engine.loops.webhook_scheduler import WebhookScheduler
from windlass.outbound import webhook_sender as room
from windlass.outbound.send import Sender
from windlass.outbound.webhook_sender import WebhookSender
from windlass.store.database import Database

LOOK_S = 0.03


def clock_at(path: Path) -> datetime:
    return datetime.fromtimestamp(float(path.read_text()), UTC)


async def _carry(dsn: str, clock: Path) -> None:
    room.LOOK_EVERY_S = room.PAUSE_S = LOOK_S
    db = await Database.open(dsn, max_size=4, now=lambda: clock_at(clock))
    posts = Sender(is_loopback_allowed=True, within_s=0.4)
    sender = WebhookSender(
        db, Secret.of([INSTALLATION]), posts, spread=random.random, clock_s=time.monotonic, per_host_max=16
    )
    await sender.start()
    scheduler = WebhookScheduler(db)
    print("ready", flush=True)
    while True:
        with suppress(Unavailable):
            await scheduler.run_once()
        await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    asyncio.run(_carry(sys.argv[1], Path(sys.argv[2])))
