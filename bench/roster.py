"""The measured systems: their servers, their tests, and the counts."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

Server = Literal["redis", "restate"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One system. Counts are for a full run; a count of 0 leaves the test out."""

    name: str
    config: str
    jobs: int = 0
    chains: int = 0
    widths: tuple[int, ...] = ()
    roundtrips: int = 0
    can_be_killed: bool = False
    server: Server | None = None
    # The environment of the client: a separate one, or the benchmark's.
    venv: str | None = None
    # For an earlier Windlass: the checkout that its processes run from.
    tree: str | None = None

    @property
    def module(self) -> str:
        """The module of its `System`."""
        return f"bench.peers.{self.name}" if self.venv else "bench.windlass_client"


# The name of an earlier version in the tables.
BEFORE = "before"

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
    """Return the system of that name."""
    for candidate in (WINDLASS, *PEERS):
        if candidate.name == name:
            return candidate
    known = ", ".join(peer.name for peer in PEERS)
    raise ValueError(f"no peer is called {name!r}; known: {known}")


def before(tree: Path) -> Entry:
    """Return an earlier version of Windlass, measured in turn with this one, for the tests that compare versions."""
    if not (tree / "bench" / "host.py").is_file():
        raise ValueError(f"{tree} is not a checkout of Windlass: it has no bench/host.py")
    return replace(
        WINDLASS, name=BEFORE, config="an earlier version", widths=(100, 1_000), can_be_killed=False, tree=str(tree)
    )
