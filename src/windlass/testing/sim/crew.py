"""The worker processes of a run: starts, kills, stops and restarts them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

from windlass.app.apart_worker import YIELD_S
from windlass.providers.desk import HasAdapter
from windlass.testing.sim.cast import Stage
from windlass.testing.sim.handlers import Conduct
from windlass.testing.sim.isolation import SimChild, SimProgram
from windlass.testing.sim.log import Key
from windlass.testing.sim.lookout import check_rung
from windlass.testing.sim.plans import QUEUES
from windlass.testing.sim.scheduler import Process
from windlass.testing.sim.suspects import is_poison, run_heartbeat
from windlass.testing.sim.worker import CONCURRENCY, WatchedBegun, WatchedWorker

HEARTBEAT_CHANCE = 0.75
STOP_NOW_CHANCE = 0.3


class Crew:
    """All workers of a run. `processes` are the processes that may be paused."""

    def __init__(
        self, stage: Stage, processes: list[Process], providers: Mapping[str, HasAdapter], rng: random.Random
    ) -> None:
        self._stage = stage
        self._scheduler = stage.db.scheduler
        self._processes = processes
        self._providers = providers
        self._rng = rng
        self._living: dict[Process, WatchedWorker] = {}
        self._tables: list[WatchedBegun] = []

    def start(self, name: str, handlers: str, after_s: float = 0.0) -> None:
        """Start a worker process, and restart it whenever it has ended."""
        rng = random.Random(self._rng.getrandbits(64))
        process = Process(name)
        program = self._program(name, handlers, rng) if rng.random() < 0.5 else None
        begun = self._table(WatchedBegun(CONCURRENCY))

        async def main() -> None:
            await self._hire(process, rng, handlers, QUEUES, begun, program).run()

        def restart() -> None:
            self._processes.remove(process)
            if program is not None:
                program.orphan()
            self._bury(self._living.pop(process, None), rng, rng.uniform(0.0, 2.0))
            self.start(name, handlers, rng.uniform(0.1, 5))

        process.restart = restart
        process.is_busy = lambda: process in self._living and self._living[process].is_asking()
        self._processes.append(process)
        self._scheduler.start(process, main, after_s)

    def stop_one(self) -> None:
        """Stop a worker, as SIGTERM does; a second call ends it at once."""
        if self._living:
            process, worker = self._rng.choice(list(self._living.items()))
            if process.loop is not None and not process.is_dead:
                process.loop.call_soon(partial(worker.stop, now=self._rng.random() < STOP_NOW_CHANCE))

    def clear(self) -> None:
        """Close the tables after the run."""
        for table in self._tables:
            table.close()

    def _table(self, begun: WatchedBegun) -> WatchedBegun:
        self._tables.append(begun)
        return begun

    def _hire(
        self,
        process: Process,
        rng: random.Random,
        handlers: str,
        queues: Sequence[str],
        begun: WatchedBegun,
        program: SimProgram | None,
    ) -> WatchedWorker:
        stage, log = self._stage, self._stage.log

        def is_deadly(key: Key) -> bool:
            return log.has_poison and is_poison(key[0], key[1])

        conduct = Conduct(rng, begun.newest, lambda: stage.is_kind, is_deadly, self._scheduler.die)
        worker = WatchedWorker(
            stage.db, log, stage.ids, conduct, begun, now=lambda: self._scheduler.now, handlers=handlers,
            queues=queues, providers=self._providers, program=program,
        )  # fmt: skip
        self._living[process] = worker
        process.looked = partial(check_rung, worker, stage.db)
        return worker

    def _program(self, name: str, handlers: str, rng: random.Random) -> SimProgram:
        def hire(process: Process, twins: Sequence[str], begun: WatchedBegun) -> WatchedWorker:
            return self._hire(process, random.Random(rng.getrandbits(64)), handlers, twins, self._table(begun), None)

        def buried(child: SimChild) -> None:
            for process, worker in list(self._living.items()):
                if worker is child.worker:
                    del self._living[process]
                    self._bury(worker, rng, YIELD_S + rng.uniform(0.0, 1.0))

        return SimProgram(self._scheduler, rng, name, hire, buried)

    def _bury(self, dead: WatchedWorker | None, rng: random.Random, after_s: float) -> None:
        """Start the heartbeat process of a dead worker, if it survived: it hands the worker's steps back."""
        if dead is None or dead.has_left:
            return
        dead.haunt()
        log, begun = self._stage.log, dead.begun.now()
        log.cut_off |= begun
        if log.has_poison and rng.random() < HEARTBEAT_CHANCE:
            log.died.add(dead.id)
            process = Process("heartbeat", restart=lambda: None)
            self._scheduler.spawn(process, run_heartbeat(self._stage.db, rng, dead.id, begun), after_s)
