"""Worker processes that die in a simulation, by a step that kills them or by a fault; and the rules for their steps.

A step is poisonous by its place alone, so every attempt of it kills the process that runs it. The heartbeat process of
a dead worker hands its steps back as the real one does, unless it dies as well (the whole host).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from uuid import UUID

import msgspec

from windlass.core.retry import ALONE_LOSSES, SILENT_LOSSES_MAX, SUSPECT_LOSSES
from windlass.core.settle import WORKER_LOST
from windlass.engine.hand_back import SOURCE, hand_back
from windlass.testing.checker import Tables
from windlass.testing.replay import Row
from windlass.testing.sim.database import SimDatabase
from windlass.testing.sim.log import Key, Log
from windlass.worker.resolve import is_away

# One step in this many is poisonous, in a run that has any.
POISON_EVERY = 6
HANDS_BACK_WITHIN_S = 15.0
_ALONE_SILENT = SILENT_LOSSES_MAX - SUSPECT_LOSSES


def is_poison(job_id: UUID, no: int) -> bool:
    """Tell whether this step kills every process that runs it."""
    return zlib.crc32(job_id.bytes + no.to_bytes(4)) % POISON_EVERY == 0


async def run_heartbeat(db: SimDatabase, rng: random.Random, worker: UUID, begun: set[Key]) -> None:
    """Hand a dead worker's steps back, for as long as its lease would have lasted."""
    until = db.scheduler.now + HANDS_BACK_WITHIN_S
    while db.scheduler.now < until:
        try:
            await hand_back(db, worker, begun, spread=rng.random)
            return
        except Exception as error:
            if not is_away(error):
                raise
            await db.scheduler.sleep(rng.uniform(0.1, 1.0))


def check_suspects(tables: Tables, log: Log) -> list[str]:
    """Return every complaint about steps blamed for the deaths of workers."""
    return [
        f"step {row['no']} of {row['job_id']} {text}"
        for rows in tables.steps.values()
        for row in rows
        for text in _step(row, tables.events[row["job_id"]], log)
    ]


def _step(row: Row, events: list[Row], log: Log) -> Iterator[str]:
    lost: set[int] = set()
    runs_apart: list[Key] = []
    for event in events:
        if event["no"] != row["no"]:
            continue
        key = (row["job_id"], row["no"], event["attempt"])
        payload = {} if event["payload"] is None else msgspec.json.decode(event["payload"])
        because = payload.get("because") or payload.get("error", {}).get("code")
        if event["type"] == "step.running" and len(lost) >= SUSPECT_LOSSES:
            runs_apart.append(key)
            if key in log.accompanied and key not in log.forgotten:
                yield f"was lost {len(lost)} times, and attempt {event['attempt']} ran in company"
        if because == WORKER_LOST:
            lost.add(event["attempt"])
            if event["source"] == SOURCE and key not in log.cut_off:
                yield f"was charged with the death of a worker in attempt {event['attempt']}, which had not begun"
    if row["losses"] > len(lost):
        yield f"counts {row['losses']} losses, and {len(lost)} attempts were lost"
    if row["state"] == "FAILED" and msgspec.json.decode(row["error"]).get("code") == WORKER_LOST:
        alone = [key for key in runs_apart if key[2] in lost]
        least = ALONE_LOSSES if is_poison(row["job_id"], row["no"]) and log.has_poison else _ALONE_SILENT
        if len(alone) < least:
            yield f"failed as {WORKER_LOST}, and was alone in {len(alone)} of its {len(lost)} losses"
