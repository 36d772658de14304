"""The context of every measure: the servers, the systems, the sizes, and the results."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.machine import QUIET_CORES, Load, wait_until_quiet
from bench.process import ROOT
from bench.results import Better, Results
from bench.roster import WINDLASS, Entry
from bench.session import Servers, Session, SystemFailed, make_database

# One figure, and further details of the run.
Reading = tuple[float, dict[str, Any]]


@dataclass(slots=True)
class Run:
    """One benchmark under way."""

    servers: Servers
    peers: tuple[Entry, ...]
    results: Results
    scale: float
    repeats: int
    # Further rounds for systems that lack clean runs, and how long to wait for a quiet machine before a run.
    extra: int = 0
    patience_s: float = 0.0
    sessions: dict[str, Session] = field(default_factory=dict)
    # Systems that could not be opened, and why: tried once, not in every test.
    _broken: dict[str, str] = field(default_factory=dict)

    def count(self, full: int, at_least: int = 20) -> int:
        """Return the count of a full run, scaled."""
        return max(min(full, at_least), int(full * self.scale))

    def say(self, text: str) -> None:
        """Print progress."""
        print(text, file=sys.stderr, flush=True)

    async def session(self, entry: Entry, database: str | None = None) -> Session:
        """Return the system's session, opened on first use."""
        name = database or entry.name
        if reason := self._broken.get(name):
            raise SystemFailed(reason)
        if name not in self.sessions:
            session = Session(entry, self.servers, await make_database(self.servers.postgres, name))
            try:
                session.open()
            except (SystemFailed, RuntimeError) as error:
                self._broken[name] = str(error)
                session.close()
                raise
            self.sessions[name] = session
        return self.sessions[name]

    def contestants(self, can: Callable[[Entry], bool]) -> list[Entry]:
        """Return the capable peers, then Windlass, so that they are measured close to one another in time."""
        found = [peer for peer in self.peers if can(peer)]
        return [*found, WINDLASS]

    async def interleave(
        self,
        test: str,
        entries: list[Entry],
        unit: str,
        better: Better,
        act: Callable[[Session], tuple[dict[str, Any], Load]],
        read: Callable[[Entry, dict[str, Any], Load], Reading],
        workers: int = 1,
        repeats: int | None = None,
    ) -> None:
        """Measure all systems in turn, then all again. A failed system is left out of later rounds."""
        failed: set[str] = set()
        wanted = repeats or self.repeats
        for round_no in range(wanted + self.extra):
            for entry in entries:
                if entry.name in failed or (round_no >= wanted and self._clean_runs(test, entry) >= wanted):
                    continue
                try:
                    session = await self.session(entry)
                    session.start(workers)
                    wait_until_quiet(self.patience_s)
                    try:
                        answer, load = act(session)
                    finally:
                        await session.stop()
                except (SystemFailed, RuntimeError) as error:
                    failed.add(entry.name)
                    self.results.fail(test, entry.name, str(error))
                    self.say(f"{test:24} {entry.name:14} failed: {error}")
                    continue
                value, detail = read(entry, answer, load)
                self.results.add(test, entry.name, unit, better, value, load.others, detail)
                self.say(f"{test:24} {entry.name:14} {value:12,.3f} {unit}  others {load.others}")

    def _clean_runs(self, test: str, entry: Entry) -> int:
        figure = self.results.get(test, entry.name)
        return sum(others < QUIET_CORES for others in figure.others) if figure else 0

    def versions(self) -> list[tuple[str, Path]]:
        """The versions of Windlass that tests of its service compare, each with its checkout. This one is last."""
        before = [(peer.name, Path(peer.tree)) for peer in self.peers if peer.tree is not None]
        return [*before, (WINDLASS.name, ROOT)]

    def close(self) -> None:
        """End every client process."""
        for session in self.sessions.values():
            session.close()


def cpu_us(load: Load, count: int) -> dict[str, float]:
    """Return the CPU microseconds per piece, by role: more stable than wall time on a shared machine."""
    return {f"{role}_us": round(seconds / count * 1e6, 1) for role, seconds in load.cpu_s.items()}


def all_us(load: Load, count: int) -> float:
    """Return the CPU microseconds per piece, of all roles together."""
    return sum(load.cpu_s.values()) / count * 1e6
