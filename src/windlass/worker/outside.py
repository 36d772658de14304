"""What one attempt reaches beyond its worker: its provider, a token for whoever reports back, and other jobs.

It is made when a handler first asks for it. Everything here runs on the worker's loop. An `async` handler awaits it; a
plain one, in its thread, is simply given the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import msgspec

from windlass.core.errors import BadInput, WrongState
from windlass.core.outcome import Cost, Parked
from windlass.core.plan import Node
from windlass.providers.desk import Desk, Place, Worked, no_provider
from windlass.worker.output import encode

# A token is good for this long after the attempt, or its wait, should be over: a late report is told that it is late.
TOKEN_SPARE_S = 86_400.0


# Signs a token for one attempt, good for so many seconds.
Sign = Callable[[UUID, int, int, float], str]


class Spawns(Protocol):
    """Makes a job that belongs to an attempt (`engine/children.py`)."""

    async def __call__(
        self, parent: tuple[UUID, int, int], worker: UUID, recipe: Any, inputs: Mapping[str, Any], key: str | None
    ) -> UUID:
        """The new job's id; the same key gives the same job."""
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What a worker was given for its handlers."""

    desk: Desk | None = None
    sign: Sign | None = None
    spawn: Spawns | None = None


class Outside:
    """One attempt's."""

    __slots__ = ("_is_over", "_loop", "_means", "_node", "_spend", "attempt", "job_id", "no", "worker")

    def __init__(
        self,
        attempt: tuple[UUID, int, int],
        worker: UUID,
        node: Node,
        means: Means,
        *,
        spend: Callable[[Cost], None],
        is_over: Callable[[], bool],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.job_id, self.no, self.attempt = attempt
        self.worker = worker
        self._node = node
        self._means = means
        self._spend = spend
        self._is_over = is_over
        self._loop = loop

    @property
    def provider(self) -> OwnProvider:
        """The step's provider."""
        return OwnProvider(self, self._node.provider)

    def token(self) -> str:
        """Signs for this attempt."""
        if self._means.sign is None:
            raise WrongState("no tokens can be made here", remedy="Run the step on a worker of an installation")
        ttl_s = max(self._node.wait_s or 0.0, self._node.timeout_s) + TOKEN_SPARE_S
        return self._means.sign(self.job_id, self.no, self.attempt, ttl_s)

    def spawn(self, recipe: Any, inputs: Mapping[str, Any], key: str | None) -> Any:
        """Make a job."""
        if self._means.spawn is None:
            raise WrongState("no jobs can be made from here", remedy="Run the step on a worker of an installation")
        return self._run(self._means.spawn((self.job_id, self.no, self.attempt), self.worker, recipe, inputs, key))

    def start(self, model: str, input: Any) -> Any:
        """Have the provider begin the work."""
        name = self._node.provider
        if not name:
            raise WrongState(
                f"step {self._node.name} has no provider",
                remedy='Name it where the step is declared: @wl.step(provider="…")',
            )
        if not isinstance(model, str):
            raise BadInput(f"the model is a name, not {type(model).__name__}")
        if self._means.desk is None:
            raise no_provider(name, {})
        plain = msgspec.json.decode(encode(input, "input"))
        place = Place(
            self.job_id, self.no, self.attempt, self._node.name, name, self._node.wait_s, self._is_over, self.worker
        )
        return self._run(self._start(self._means.desk, place, model, plain))

    async def _start(self, desk: Desk, place: Place, model: str, input: Any) -> Any:
        made = await desk.start(place, model=model, input=input)
        if isinstance(made, Parked):
            return made
        assert isinstance(made, Worked)
        if made.cost is not None:
            self._spend(made.cost)
        return made.value

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """To be awaited where there is a loop; in a plain handler's thread, its result."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            return work
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result() if here is None else asyncio.wrap_future(future)


class OwnProvider:
    """The provider of the step that is running, as its handler sees it."""

    __slots__ = ("_outside", "name")

    def __init__(self, outside: Outside, name: str) -> None:
        self._outside = outside
        self.name = name

    def start(self, model: str = "", input: Any = None) -> Any:
        """See `context.StepProvider`."""
        return self._outside.start(model, input)
