"""The common interface of every measured system, Windlass and peers alike."""

import asyncio
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """The addresses of this run's servers. Clients and workers get it in the environment."""

    dsn: str
    folder: str
    redis_url: str = ""
    restate_ingress: str = ""
    restate_admin: str = ""
    restate_service_port: int = 0

    def environment(self) -> dict[str, str]:
        """Return the variables from which `target()` rebuilds this value in another process."""
        return {"BENCH_TARGET": json.dumps(asdict(self)), "BENCH_COUNTER": str(Path(self.folder) / "counter.bin")}


def target() -> Target:
    """Return the target that this process was started for."""
    return Target(**json.loads(os.environ["BENCH_TARGET"]))


class System:
    """The operations of a measured system. A system leaves out an operation that it does not support.

    Bodies call `counter.tick()`. Nothing here measures; `host.py` does, the same way for all.
    """

    def prepare(self) -> None:
        """Create the schema in an empty database. Called once, before any worker."""

    def worker(self) -> list[str]:
        """Return the command line of one worker process."""
        raise NotImplementedError

    def submit(self, count: int) -> None:
        """Submit `count` one-step jobs with the system's fastest call."""
        raise NotImplementedError

    def open_jobs(self) -> int:
        """Return the jobs without a recorded end; 0 where the system cannot tell."""
        return 0

    def roundtrip(self) -> None:
        """Submit one job and return when its end, or its result, is seen."""
        raise NotImplementedError

    def commit(self) -> bool:
        """Commit a single row durably, the unit of latency; return False where the client has no driver."""
        return False

    def chain(self, count: int) -> None:
        """Submit `count` jobs of three steps, one after another."""
        raise NotImplementedError

    def fan(self, width: int) -> None:
        """Run `width` steps side by side and return when all have ended."""
        raise NotImplementedError

    def slow(self) -> None:
        """Submit one job whose body is `slow_body`."""
        raise NotImplementedError

    def park(self, count: int) -> None:
        """Submit `count` jobs that wait for an external answer, and return when all of them wait."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections."""


def slow_log() -> Path:
    """Return the file in which slow bodies record when and where they began."""
    return Path(target().folder) / "slow.log"


def slow_release() -> Path:
    """Return the file whose existence lets slow bodies end."""
    return Path(target().folder) / "slow.release"


async def slow_body() -> None:
    """Record at once where it runs, then wait until released."""
    with slow_log().open("a") as log:
        log.write(f"{time.monotonic()} {os.getpid()}\n")
    while not slow_release().exists():
        await asyncio.sleep(0.05)
