"""What an attempt can use outside its worker: its provider, a token for callbacks, and child jobs.

An `Outside` is made when a handler first needs it. Everything here runs on the worker's loop. An `async` handler awaits
the result; a plain handler blocks in its thread until it has the result.
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
from windlass.providers.desk import Desk, NotCurrent, Place, Worked, no_provider
from windlass.worker.context import Cancelled
from windlass.worker.output import encode

# A token stays valid this long after the attempt or its wait should be over, so that a late report gets a clear reply.
TOKEN_SPARE_S = 86_400.0


# Signs a token for one attempt, valid for the given seconds.
Sign = Callable[[UUID, int, int, float], str]


# Reads the constraints of the verdict under which a job goes on.
Limits = Callable[[UUID], Coroutine[Any, Any, dict[str, Any]]]


class Spawns(Protocol):
    """Starts a job for an attempt (`engine/children.py`)."""

    async def __call__(
        self, parent: tuple[UUID, int, int], worker: UUID, recipe: Any, inputs: Mapping[str, Any], key: str | None
    ) -> UUID:
        """Start the job and return its id. The same key returns the same job."""
        ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The access that a worker gives its handlers to providers, tokens and child jobs."""

    desk: Desk | None = None
    sign: Sign | None = None
    spawn: Spawns | None = None
    limits: Limits | None = None


class Outside:
    """The capabilities of one attempt."""

    __slots__ = (
        "_abandon",
        "_capabilities",
        "_is_over",
        "_loop",
        "_node",
        "_spend",
        "attempt",
        "job_id",
        "no",
        "worker",
    )

    def __init__(
        self,
        attempt: tuple[UUID, int, int],
        worker: UUID,
        node: Node,
        capabilities: Capabilities,
        *,
        spend: Callable[[Cost], None],
        is_over: Callable[[], bool],
        abandon: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.job_id, self.no, self.attempt = attempt
        self.worker = worker
        self._node = node
        self._capabilities = capabilities
        self._spend = spend
        self._is_over = is_over
        self._abandon = abandon
        self._loop = loop

    @property
    def provider(self) -> OwnProvider:
        """The step's provider."""
        return OwnProvider(self, self._node.provider)

    def token(self) -> str:
        """Sign a token for this attempt."""
        if self._capabilities.sign is None:
            raise WrongState("this process cannot sign tokens", remedy="Run the step on a worker of an installation")
        ttl_s = max(self._node.wait_s or 0.0, self._node.timeout_s) + TOKEN_SPARE_S
        return self._capabilities.sign(self.job_id, self.no, self.attempt, ttl_s)

    def spawn(self, recipe: Any, inputs: Mapping[str, Any], key: str | None) -> Any:
        """Start a job."""
        if self._capabilities.spawn is None:
            raise WrongState("this process cannot start jobs", remedy="Run the step on a worker of an installation")
        return self._run(
            self._capabilities.spawn((self.job_id, self.no, self.attempt), self.worker, recipe, inputs, key)
        )

    def constraints(self) -> Any:
        """Read the constraints of the job."""
        if self._capabilities.limits is None:
            raise WrongState("this process cannot read limits", remedy="Run the step on a worker of an installation")
        return self._run(self._capabilities.limits(self.job_id))

    def start(self, model: str, input: Any) -> Any:
        """Start the work at the provider."""
        name = self._node.provider
        if not name:
            raise WrongState(
                f"step {self._node.name} has no provider",
                remedy='Name it where the step is declared: @wl.step(provider="…")',
            )
        if not isinstance(model, str):
            raise BadInput(f"the model is a name, not {type(model).__name__}")
        if self._capabilities.desk is None:
            raise no_provider(name, {})
        plain = msgspec.json.decode(encode(input, "input"))
        place = Place(
            self.job_id, self.no, self.attempt, self._node.name, name, self._node.wait_s, self._is_over, self.worker
        )
        return self._run(self._start(self._capabilities.desk, place, model, plain))

    async def _start(self, desk: Desk, place: Place, model: str, input: Any) -> Any:
        try:
            made = await desk.start(place, model=model, input=input)
        except NotCurrent as error:
            # Not reported as a failure: after a crash this worker may claim the same attempt again.
            self._abandon()
            raise Cancelled(str(error)) from None
        if isinstance(made, Parked):
            return made
        assert isinstance(made, Worked)
        if made.cost is not None:
            self._spend(made.cost)
        return made.value

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return an awaitable on a loop; in a plain handler's thread, wait and return the result."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            return work
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result() if here is None else asyncio.wrap_future(future)


class OwnProvider:
    """The provider of the running step, as its handler sees it."""

    __slots__ = ("_outside", "name")

    def __init__(self, outside: Outside, name: str) -> None:
        self._outside = outside
        self.name = name

    def start(self, model: str = "", input: Any = None) -> Any:
        """Start this work at the provider; `context.StepProvider` describes the result."""
        return self._outside.start(model, input)
