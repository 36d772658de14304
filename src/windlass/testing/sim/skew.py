"""Clocks of the simulated machines, which disagree: by seconds, or by an hour.

The engine takes nothing from a machine's clock, but the time inside an id can still be wrong: in ids of older releases,
and when a process estimates the server's time badly. So every simulated process has a separate clock for its ids, and
nothing but their order may depend on it.
"""

from __future__ import annotations

import random
from uuid import UUID

from windlass.app.entropy import Ids
from windlass.testing.sim.scheduler import Scheduler


class SkewedIds(Ids):
    """Ids for all processes of a run, by a clock for each process, which is up to `skew_s` ahead or behind."""

    def __init__(self, scheduler: Scheduler, rng: random.Random, skew_s: float) -> None:
        super().__init__(scheduler.now_ms, rng.getrandbits)
        self._scheduler = scheduler
        self._rng = rng
        self._skew_s = skew_s
        self._by_process: dict[str, Ids] = {}

    def new(self) -> UUID:
        """Return an id by the clock of the current process."""
        current = self._scheduler.current
        name = "" if current is None else current.process.name
        if name not in self._by_process:
            skew_ms = round(self._rng.uniform(-self._skew_s, self._skew_s) * 1000)
            bits = random.Random(self._rng.getrandbits(64)).getrandbits
            self._by_process[name] = Ids(lambda: self._scheduler.now_ms() + skew_ms, bits)
        return self._by_process[name].new()
