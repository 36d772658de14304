"""Everything that runs in a process has one shape, and a group of them starts in order and stops in reverse."""

from __future__ import annotations

import logging
from typing import Protocol, TypeVar

OK = "ok"
# A service that has not had a turn for this long hangs; the longest that one waits by itself is a third of it.
STUCK_AFTER_S = 30.0

_log = logging.getLogger("windlass.process")


class Service(Protocol):
    """A part of a process that goes on until it is stopped.

    - `start` returns once the service does its work. It may be cut off; `stop` ends what it began.
    - `stop` returns once nothing of it goes on any more. It may be called again, and without a `start`.
    - `alive` and `ready` return at once and ask nobody.
    """

    name: str

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End."""
        ...

    def alive(self) -> float | None:
        """How many seconds ago it had a turn; None if it has none to have."""
        ...

    def ready(self) -> bool:
        """Whether it does its work now."""
        ...


S = TypeVar("S", bound=Service)


def state_of(age_s: float | None, is_ready: bool = True) -> str:
    """`ok`, or what is wrong with a service."""
    if age_s is not None and age_s > STUCK_AFTER_S:
        return f"has not turned for {age_s:.0f} s"
    return OK if is_ready else "is not ready"


class Services:
    """The services of a process, in the order of their start."""

    def __init__(self) -> None:
        self._started: list[Service] = []

    async def start(self, service: S) -> S:
        """Start one more."""
        # Before it starts: a start that is cut off leaves something to stop.
        self._started.append(service)
        await service.start()
        return service

    async def stop(self) -> None:
        """Stop all, the last first. An error of one is raised when all have ended."""
        failed: BaseException | None = None
        while self._started:
            service = self._started.pop()
            try:
                await service.stop()
            except BaseException as error:
                _log.warning("%s failed while it was stopped: %r", service.name, error)
                failed = failed or error
        if failed is not None:
            raise failed

    def alive(self) -> dict[str, float]:
        """How many seconds ago each had a turn."""
        ages_s = {service.name: service.alive() for service in self._started}
        return {name: age_s for name, age_s in ages_s.items() if age_s is not None}

    def states(self) -> dict[str, str]:
        """`ok` or what is wrong, for each."""
        return {service.name: state_of(service.alive(), service.ready()) for service in self._started}
