"""The common interface of all parts that run in a process. A group starts them in order and stops them in reverse."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol, TypeVar

OK = "ok"
# The state of a service that only makes the process faster.
WITHOUT = "is not ready; the process works without it"
# A service without a turn for this long hangs. A healthy service waits at most a third of it.
STUCK_AFTER_S = 30.0

_log = logging.getLogger("windlass.process")


class Service(Protocol):
    """A part of a process that runs until it is stopped.

    - `start` returns once the service works. It may be cancelled; `stop` ends what it began.
    - `stop` returns once the service has ended completely. It may be called again, and without a `start`.
    - `alive` and `ready` return at once, without I/O.
    """

    name: str

    async def start(self) -> None:
        """Start the service."""
        ...

    async def stop(self) -> None:
        """Stop the service."""
        ...

    def alive(self) -> float | None:
        """Return the seconds since the last turn of its loop, or None if it has no loop."""
        ...

    def ready(self) -> bool:
        """Return whether the service works now."""
        ...


S = TypeVar("S", bound=Service)


class Part:
    """A service made of functions, for a part that runs from its creation or first use until one call."""

    def __init__(
        self,
        name: str,
        end: Callable[[], Awaitable[None] | None] | None = None,
        *,
        is_ready: Callable[[], bool] = lambda: True,
        age_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.name = name
        self._end = end
        self._is_ready = is_ready
        self._age_s = age_s

    async def start(self) -> None:
        """Do nothing: the part already runs, or starts at its first use."""

    async def stop(self) -> None:
        """Call the end function."""
        ended = None if self._end is None else self._end()
        if ended is not None:
            await ended

    def alive(self) -> float | None:
        """Return the result of `age_s`."""
        return self._age_s()

    def ready(self) -> bool:
        """Return the result of `is_ready`."""
        return self._is_ready()


def state_of(age_s: float | None, is_ready: bool = True) -> str:
    """Return `ok`, or the problem of a service."""
    if age_s is not None and age_s > STUCK_AFTER_S:
        return f"has not run for {age_s:.0f} s"
    return OK if is_ready else "is not ready"


class Services:
    """The services of a process, in the order of their start.

    A group may be made `within` another. It is started and stopped separately, and the outer group reports on both. So
    each part of a process owns what it starts, and one place reports on everything.
    """

    def __init__(self, within: Services | None = None) -> None:
        self._started: list[Service] = []
        self._spared: set[str] = set()
        # Late services whose start has not returned yet.
        self._starting: set[str] = set()
        self._within = within
        self._groups: list[Services] = []

    async def start(self, service: S, *, is_needed: bool = True, is_late: bool = False) -> S:
        """Start another service. The process counts as ready without a service that is not needed.

        A late service joins a process that is ready already. Its state is reported once it has started, so that the
        process does not stop being ready for that moment.
        """
        if self._within is not None and self not in self._within._groups:
            self._within._groups.append(self)
        if not is_needed:
            self._spared.add(service.name)
        # Added before the start, so that a cancelled start leaves something to stop.
        self._started.append(service)
        if is_late:
            self._starting.add(service.name)
        await service.start()
        self._starting.discard(service.name)
        return service

    async def stop(self) -> None:
        """Stop the inner groups, then the services in reverse order. Errors are raised after everything has stopped."""
        failed: BaseException | None = None
        while self._groups or self._started:
            one: Service | Services = self._groups.pop() if self._groups else self._started.pop()
            try:
                await one.stop()
            except GeneratorExit:
                # The coroutine is being discarded and cannot wait for the others.
                raise
            except BaseException as error:
                if not isinstance(one, Services):  # a group has logged its own errors
                    _log.warning("%s failed while it was stopped: %r", one.name, error)
                failed = failed or error
        if self._within is not None and self in self._within._groups:
            self._within._groups.remove(self)
        if failed is not None:
            raise failed

    def alive(self) -> dict[str, float]:
        """Return the seconds since the last turn of each service."""
        ages_s = {service.name: service.alive() for service in self._all()}
        return {name: age_s for name, age_s in ages_s.items() if age_s is not None}

    def states(self) -> dict[str, str]:
        """Return `ok` or the problem of each service."""
        found: dict[str, str] = {}
        for service in self._started:
            if service.name in self._starting:
                continue
            state = state_of(service.alive(), service.ready())
            found[service.name] = WITHOUT if state != OK and service.name in self._spared else state
        for group in self._groups:
            found |= group.states()
        return found

    def _all(self) -> Iterator[Service]:
        yield from self._started
        for group in self._groups:
            yield from group._all()
