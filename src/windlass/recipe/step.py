"""`@step`: a function that becomes a handler. In a recipe, its call adds a step; elsewhere it is an ordinary call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, Unpack, overload

from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.core.queue import BACKGROUND_PROCESSING, MAIN_PROCESSING
from windlass.recipe.asks import StepOptions, asks_of
from windlass.recipe.draft import Parameters
from windlass.recipe.handle import Pending, StepHandle, Value
from windlass.recipe.signature import Signature, check_function, read_signature
from windlass.recipe.trace import bound, current_trace, fanned, outside


class Step:
    """A handler and its options for attempts.

    `function` is the decorated function. `context` is the name of the parameter for the handler's context, if it has
    one. The worker passes that argument; a recipe may not.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        cpu: bool = False,
        provider: str | None = None,
        parks: bool = False,
        **options: Unpack[StepOptions],
    ) -> None:
        check_function(function, "step")
        functools.update_wrapper(self, function)
        if name is not None and not isinstance(name, str):
            raise BadRecipe(f"a step's name is text, not {name!r}", place=f"step {function.__name__}")
        self.name = name or function.__name__
        place = f"step {self.name}"
        self.function = function
        self.is_cpu = cpu
        self.is_async = inspect.iscoroutinefunction(function)
        self.parks = parks
        queue = BACKGROUND_PROCESSING if cpu else MAIN_PROCESSING
        self.asks = asks_of(options, place, provider=provider, queue=queue)
        undo = options.get("undo")
        # The step that undoes this one: a worker that has this handler has that one too.
        self.undo: Step | None = undo if isinstance(undo, Step) else None
        if self.name.startswith("windlass."):
            raise BadRecipe("names that begin with windlass. are reserved for built-in handlers", place=place)
        if cpu and self.is_async:
            raise BadRecipe("a handler with cpu=True runs in a process, and cannot be async", place=place)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a step, as a `StepHandle`, to the recipe that is being read. Elsewhere, call the function."""
        trace = current_trace()
        if trace is None:
            return self.function(*args, **kwargs)
        return trace.add(self._pending(bound(self.parameters, args, kwargs, self.name)), self)

    def map(self, *items: Any, **fixed: Any) -> StepHandle:
        """Add a fan-out to the recipe that is being read: one step per item of a list known only when the job runs.

        Each item goes to the first parameter that is not given by name. The result is the list of the results.
        """
        trace = current_trace()
        if trace is None:
            raise outside(f"{self.name}.map")
        each, arguments = fanned(self.parameters, items, fixed, self.name)
        return trace.add(self._pending(arguments, each), self)

    def _pending(self, arguments: dict[str, Any], each: Value | None = None) -> Pending:
        return Pending(base=self.name, kind=NodeKind.TASK, run=self.name, with_=arguments, each=each, asks=self.asks)

    @cached_property
    def signature(self) -> Signature:
        """The parameters of the function."""
        return read_signature(self.function)

    @property
    def parameters(self) -> Parameters:
        """The parameters that a recipe gives values to."""
        return self.signature.parameters

    @property
    def context(self) -> str | None:
        """The parameter for the handler's context, or None."""
        return self.signature.context

    @property
    def where(self) -> str:
        """The file and line of the function."""
        code = inspect.unwrap(self.function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def __repr__(self) -> str:
        return f"<step {self.name}>"

    def __reduce__(self) -> str:
        # Pickled by its qualified name, as a function is, so that a process pool can receive it.
        return self.function.__qualname__


@overload
def step(function: Callable[..., Any], /) -> Step: ...
@overload
def step(
    *,
    name: str | None = None,
    cpu: bool = False,
    provider: str | None = None,
    parks: bool = False,
    **options: Unpack[StepOptions],
) -> Callable[[Callable[..., Any]], Step]: ...
def step(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a handler.

    `retry` and `timeout` apply to its attempts. `queue` selects the workers that run it. `cpu=True` runs it in a
    separate process. `parks=True` declares that it may return `Parked`.

    `provider` names the external service that it uses. A step then waits for a place there, or for `places` places. At
    most `limit` steps with one `concurrency` key (`"render:{inputs.user}"`) run at once; a step that `takes` 3 counts
    as three. `cost` is the maximum cost of an attempt, which is reserved in the budgets before it runs. `wait` limits
    the wait for an answer from outside.

    `undo` is the step that removes this step's effect if the job ends badly. It gets this step's arguments and its
    `output`. With `undo_when="started"` it also runs for a step that began and did not complete. `effect` says how
    lasting the effect is: "reversible", "expiring" or "final".
    """
    if function is not None:
        return Step(function)
    return lambda decorated: Step(decorated, **options)
