"""The systems that are measured: what each needs, what it is asked, and how much of it."""

from dataclasses import dataclass
from typing import Literal

Server = Literal["redis", "restate"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One system. Counts are for a full run; a test with a count of 0 is not asked of it."""

    name: str
    config: str
    jobs: int = 0
    chains: int = 0
    widths: tuple[int, ...] = ()
    roundtrips: int = 0
    can_be_killed: bool = False
    server: Server | None = None
    # Where the code of the client runs: an environment of its own, or ours.
    venv: str | None = None

    @property
    def module(self) -> str:
        """Where its `System` is."""
        return f"bench.peers.{self.name}" if self.venv else "bench.windlass_client"


WINDLASS = Entry(
    name="windlass",
    config="one worker",
    jobs=30_000,
    chains=5_000,
    widths=(100, 1_000, 10_000, 100_000),
    roundtrips=200,
    can_be_killed=True,
)

PEERS = (
    Entry(
        name="pgqueuer",
        config="batch 100, bulk enqueue",
        jobs=20_000,
        chains=1_000,
        widths=(100, 1_000, 10_000),
        roundtrips=50,
        can_be_killed=True,
        venv="pgqueuer",
    ),
    Entry(
        name="dbos",
        config="PostgreSQL, poll 20 ms",
        jobs=500,
        chains=200,
        widths=(100, 1_000),
        roundtrips=60,
        venv="dbos",
    ),
    Entry(
        name="procrastinate",
        config="concurrency 10, batch defer",
        jobs=1_500,
        chains=400,
        widths=(100, 1_000),
        roundtrips=100,
        venv="procrastinate",
    ),
    Entry(
        name="celery",
        config="Redis, prefork -c2",
        jobs=2_000,
        chains=500,
        widths=(100, 1_000),
        roundtrips=150,
        server="redis",
        venv="celery",
    ),
    Entry(
        name="restate",
        config="one service process",
        jobs=500,
        chains=500,
        widths=(100, 1_000),
        roundtrips=150,
        server="restate",
        venv="restate",
    ),
    Entry(name="saq", config="PostgreSQL, defaults", roundtrips=150, venv="saq"),
)


def entry(name: str) -> Entry:
    """The system of that name."""
    for candidate in (WINDLASS, *PEERS):
        if candidate.name == name:
            return candidate
    known = ", ".join(peer.name for peer in PEERS)
    raise ValueError(f"no peer is called {name!r}; known: {known}")
