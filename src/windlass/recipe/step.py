"""`@step`: a function that becomes a handler. In a recipe a call of it is a step; anywhere else it is just a call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, overload

from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.core.queue import BACKGROUND_PROCESSING, MAIN_PROCESSING
from windlass.core.retry import Retry
from windlass.recipe.compile import check_retry
from windlass.recipe.draft import TIMEOUT_S, Parameters
from windlass.recipe.duration import duration_s
from windlass.recipe.handle import Pending, StepHandle, Value
from windlass.recipe.options import check_cost, check_limit, check_provider, key_template, length_s
from windlass.recipe.signature import Signature, check_function, read_signature
from windlass.recipe.trace import bound, current_trace, fanned, outside


class Step:
    """A handler and how its attempts are run.

    `function` is what was decorated. `context` is the name of the parameter that takes the handler's context, if it
    has one; the worker fills it, and no recipe may.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: str | float | None = None,
        queue: str | None = None,
        cpu: bool = False,
        provider: str | None = None,
        concurrency: str | None = None,
        limit: int | None = None,
        cost: float | None = None,
        wait: str | float | None = None,
        parks: bool = False,
    ) -> None:
        check_function(function, "step")
        functools.update_wrapper(self, function)
        if name is not None and not isinstance(name, str):
            raise BadRecipe(f"a step's name is text, not {name!r}", place=f"step {function.__name__}")
        self.name = name or function.__name__
        place = f"step {self.name}"
        self.function = function
        self.retry = check_retry(retry if retry is not None else Retry(), f"{place}.retry")
        self.timeout_s = TIMEOUT_S if timeout is None else duration_s(timeout, f"{place}.timeout")
        self.queue = queue or (BACKGROUND_PROCESSING if cpu else MAIN_PROCESSING)
        self.is_cpu = cpu
        self.is_async = inspect.iscoroutinefunction(function)
        self.provider = provider
        self.concurrency = concurrency
        self.limit = None if limit is None else check_limit(limit, f"{place}.limit")
        self.cost = None if cost is None else check_cost(cost, f"{place}.cost")
        self.wait_s = None if wait is None else length_s(wait, f"{place}.wait", "a wait")
        self.parks = parks
        if provider is not None:
            check_provider(provider, f"{place}.provider")
        if concurrency is not None:
            key_template(concurrency, f"{place}.concurrency")
        if self.name.startswith("windlass."):
            raise BadRecipe("names that begin with windlass. are of built-in handlers", place=place)
        if cpu and self.is_async:
            raise BadRecipe("a handler with cpu=True runs in a process, and cannot be async", place=place)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """In a recipe: a step of it, as a `StepHandle`. Anywhere else: the function's own result."""
        trace = current_trace()
        if trace is None:
            return self.function(*args, **kwargs)
        return trace.add(self._pending(bound(self.parameters, args, kwargs, self.name)), self)

    def map(self, *items: Any, **fixed: Any) -> StepHandle:
        """In a recipe: one step for each item of a list that is known only when the job runs.

        Each item goes to the first parameter that is not given by name; the result is the list of the results.
        """
        trace = current_trace()
        if trace is None:
            raise outside(f"{self.name}.map")
        each, arguments = fanned(self.parameters, items, fixed, self.name)
        return trace.add(self._pending(arguments, each), self)

    def _pending(self, arguments: dict[str, Any], each: Value | None = None) -> Pending:
        return Pending(
            base=self.name,
            kind=NodeKind.TASK,
            run=self.name,
            with_=arguments,
            each=each,
            queue=self.queue,
            retry=self.retry,
            timeout_s=self.timeout_s,
            provider=self.provider,
            concurrency=self.concurrency,
            limit=self.limit,
            cost=self.cost,
            wait_s=self.wait_s,
        )

    @cached_property
    def signature(self) -> Signature:
        """What the function takes."""
        return read_signature(self.function)

    @property
    def parameters(self) -> Parameters:
        """The names that a recipe gives values to."""
        return self.signature.parameters

    @property
    def context(self) -> str | None:
        """The parameter that takes the handler's context, None when the handler asks for none."""
        return self.signature.context

    @property
    def where(self) -> str:
        """The file and line of the function."""
        code = inspect.unwrap(self.function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def __repr__(self) -> str:
        return f"<step {self.name}>"

    def __reduce__(self) -> str:
        # Pickled by its name in its module, as the function would be: so a process pool can be given it.
        return self.function.__qualname__


@overload
def step(function: Callable[..., Any], /) -> Step: ...
@overload
def step(
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: str | float | None = None,
    queue: str | None = None,
    cpu: bool = False,
    provider: str | None = None,
    concurrency: str | None = None,
    limit: int | None = None,
    cost: float | None = None,
    wait: str | float | None = None,
    parks: bool = False,
) -> Callable[[Callable[..., Any]], Step]: ...
def step(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a handler.

    `retry` and `timeout` apply to its attempts; `queue` says which workers take it; `cpu=True` runs it in a process
    of its own; `parks=True` says that it may return `Parked`.

    `provider` names the external service it uses, and a step of it waits for a place there. At most `limit` steps with
    one `concurrency` key (`"render:{inputs.user}"`) run at once. `cost` is what an attempt may cost, which is set aside
    in the budgets before it runs. `wait` is how long it may wait for an answer from outside.
    """
    if function is not None:
        return Step(function)
    return lambda decorated: Step(decorated, **options)
