"""Reports that arrive twice, or long after their attempt ended.

A network may repeat a report, and a process may be cut off while a report is under way. The fence must refuse each of
them.
"""

from __future__ import annotations

import random
from functools import partial

from windlass.core.outcome import Report, Success
from windlass.engine.settle import settle
from windlass.testing.sim.cast import Stage
from windlass.testing.sim.log import Told


async def run_echo(stage: Stage, rng: random.Random) -> None:
    """Repeat reports, sometimes as a sender that knows only the attempt."""
    log = stage.log
    while not stage.is_kind:
        await stage.db.scheduler.sleep(rng.expovariate(1 / 5.0))
        if not log.echoes:
            continue
        chosen = [rng.choice(log.echoes) for _ in range(rng.choice([1, 1, 1, 2]))]
        reports = [_plain(one) if rng.random() < 0.4 else one for one in chosen]
        for one in reports:
            log.send((one.job_id, one.no, one.attempt), one.outcome)
        settled = await stage.patiently(rng, partial(settle, stage.db, reports, spread=rng.random))
        for one, took_effect in zip(reports, settled.took_effect, strict=True):
            log.told.append(Told((one.job_id, one.no, one.attempt), one.outcome, "worker", took_effect, one.worker))
            if took_effect and isinstance(one.outcome, Success):
                log.over.setdefault((one.job_id, one.no), stage.db.scheduler.now)


def _plain(one: Report) -> Report:
    return Report(one.job_id, one.no, one.attempt, one.outcome, cost=one.cost, worker=one.worker)
