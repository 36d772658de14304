"""The one shape in which every measured system is driven, Windlass and peers alike."""

import asyncio
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """Where the servers of this run are. It travels to clients and workers in the environment."""

    dsn: str
    folder: str
    redis_url: str = ""
    restate_ingress: str = ""
    restate_admin: str = ""
    restate_service_port: int = 0

    def environment(self) -> dict[str, str]:
        """The variables from which `target()` rebuilds this value in another process."""
        return {"BENCH_TARGET": json.dumps(asdict(self)), "BENCH_COUNTER": str(Path(self.folder) / "counter.bin")}


def target() -> Target:
    """The target that this process was started for."""
    return Target(**json.loads(os.environ["BENCH_TARGET"]))


class System:
    """What a measured system can be asked to do. A system that cannot do one of them leaves it out.

    Bodies call `counter.tick()`. Nothing here measures; `host.py` does, the same way for all.
    """

    def prepare(self) -> None:
        """Make the schema in an empty database. Called once, before any worker."""

    def worker(self) -> list[str]:
        """The command line of one worker process."""
        raise NotImplementedError

    def submit(self, count: int) -> None:
        """Hand in `count` one-step jobs with the system's own fastest call."""
        raise NotImplementedError

    def open_jobs(self) -> int:
        """How many jobs the system has not yet recorded as ended; 0 where it cannot say."""
        return 0

    def roundtrip(self) -> None:
        """Hand in one job and return when its end, or its result, is seen."""
        raise NotImplementedError

    def commit(self) -> bool:
        """Commit a single row durably, the unit in which latency is told; False where the client has no driver."""
        return False

    def chain(self, count: int) -> None:
        """Hand in `count` jobs of three steps, one after another."""
        raise NotImplementedError

    def fan(self, width: int) -> None:
        """Run `width` steps side by side and return when all have ended."""
        raise NotImplementedError

    def slow(self) -> None:
        """Hand in one job whose body is `slow_body`."""
        raise NotImplementedError

    def park(self, count: int) -> None:
        """Hand in `count` jobs that wait for the outside world, and return when all of them do."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of connections."""


def slow_log() -> Path:
    """The file in which slow bodies say when and where they began."""
    return Path(target().folder) / "slow.log"


def slow_release() -> Path:
    """The file whose existence lets slow bodies end."""
    return Path(target().folder) / "slow.release"


async def slow_body() -> None:
    """Say at once where it runs, then stay until released."""
    with slow_log().open("a") as log:
        log.write(f"{time.monotonic()} {os.getpid()}\n")
    while not slow_release().exists():
        await asyncio.sleep(0.05)
