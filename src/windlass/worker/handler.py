"""Prepares the nodes of plans for a worker: the function that runs a node, and the template of its arguments.

Everything that can be known before an attempt starts is computed once per node and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from windlass.core.errors import Permanent
from windlass.core.plan import PROVIDER_HANDLER, UNDO_HANDLER, Plan
from windlass.core.template import Template, plan_templates
from windlass.worker.binding import Binding
from windlass.worker.child import Address
from windlass.worker.context import Context

_KEPT_MAX = 10_000


class StepLike(Protocol):
    """The result of `@step`, as far as a worker needs it."""

    @property
    def name(self) -> str:
        """The step's name in plans."""
        ...

    @property
    def function(self) -> Callable[..., Any]:
        """The undecorated function."""
        ...

    @property
    def is_cpu(self) -> bool:
        """Whether it runs in a separate process."""
        ...


class Kind(Enum):
    """Where a handler runs."""

    ASYNC = "async"  # on the worker's loop
    THREAD = "thread"
    PROCESS = "process"


async def _ask_provider(ctx: Context, model: str = "", input: Any = None) -> Any:
    """Handle a step that has a provider and no handler of its author."""
    return await ctx.provider.start(model, input)


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """A handler that every worker has."""

    name: str
    function: Callable[..., Any]
    is_cpu: bool = False


async def _nothing() -> None:
    """Stand for the undo of a child job, which the worker itself asks for (`worker/undo.py`)."""


BUILT_IN: Mapping[str, StepLike] = {
    PROVIDER_HANDLER: _BuiltIn(PROVIDER_HANDLER, _ask_provider),
    UNDO_HANDLER: _BuiltIn(UNDO_HANDLER, _nothing),
}


class Handler:
    """A function that runs steps."""

    __slots__ = ("address", "binding", "complaint", "kind")

    def __init__(self, step: StepLike) -> None:
        self.binding = Binding(step.function)
        self.address: Address | None = None
        # Why it can never run here.
        self.complaint: str | None = None
        if not step.is_cpu:
            self.kind = Kind.ASYNC if self.binding.is_async else Kind.THREAD
            return
        self.kind = Kind.PROCESS
        try:
            self.address = Address.of(step.function)
        except Permanent as error:
            self.complaint = str(error)
        if self.binding.is_async:
            self.complaint = f"{step.name} is cpu=True and async; a process runs plain functions"


class Prepared:
    """A node of a plan, ready to run. `handler` is None when this worker does not have the node's function."""

    __slots__ = ("handler", "is_constant", "is_undo", "name", "plan", "run", "template")

    def __init__(self, plan: Plan, node: int, handler: Handler | None) -> None:
        self.plan = plan
        self.name = plan.nodes[node].name
        self.run = plan.nodes[node].run
        self.handler = handler
        self.is_undo = plan.nodes[node].undoes is not None or self.run == UNDO_HANDLER
        self.template: Template = plan_templates(plan).nodes[node].with_
        template = self.template
        reads = template.inputs or template.uses_all_inputs
        refers = template.steps or reads or template.uses_item or template.uses_index
        self.is_constant = not refers and not template.expressions


class Handlers:
    """The handlers of this worker, and the nodes prepared with them."""

    def __init__(self, steps: Mapping[str, StepLike]) -> None:
        self._steps = steps
        self._handlers: dict[str, Handler] = {}
        self._prepared: dict[tuple[str, int], Prepared] = {}

    def known(self, plan_hash: str, node: int) -> Prepared | None:
        """Return the node if it was prepared before."""
        return self._prepared.get((plan_hash, node))

    def prepare(self, plan: Plan, node: int) -> Prepared:
        """Prepare a node and cache it."""
        while len(self._prepared) >= _KEPT_MAX:
            del self._prepared[next(iter(self._prepared))]
        prepared = self._prepared[plan.hash, node] = Prepared(plan, node, self._handler(plan.nodes[node].run))
        return prepared

    def _handler(self, name: str) -> Handler | None:
        handler = self._handlers.get(name)
        if handler is None and (step := self._steps.get(name) or BUILT_IN.get(name)) is not None:
            handler = self._handlers[name] = Handler(step)
        return handler
