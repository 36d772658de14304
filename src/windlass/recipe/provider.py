"""A provider's work as a step that needs no handler: what it is asked for is all there is to say."""

from __future__ import annotations

from typing import Any

from windlass.core.plan import PROVIDER_HANDLER, NodeKind
from windlass.core.queue import MAIN_PROCESSING
from windlass.core.retry import Retry
from windlass.recipe.compile import check_retry
from windlass.recipe.draft import PROVIDER_PARAMETERS, TIMEOUT_S
from windlass.recipe.duration import duration_s
from windlass.recipe.handle import Pending, StepHandle, Value, item, uses_item
from windlass.recipe.options import check_cost, check_limit, check_provider, key_template, length_s
from windlass.recipe.trace import bound, current_trace, fanned, outside


class ProviderCall:
    """A provider as recipes use it. A call of it is a step, whose result is what the provider made."""

    def __init__(
        self,
        name: str,
        *,
        retry: Retry | None = None,
        timeout: str | float | None = None,
        queue: str | None = None,
        concurrency: str | None = None,
        limit: int | None = None,
        cost: float | None = None,
        wait: str | float | None = None,
    ) -> None:
        place = f"provider {name}"
        check_provider(name, place)
        self.name = name
        self.retry = check_retry(retry if retry is not None else Retry(), f"{place}.retry")
        self.timeout_s = TIMEOUT_S if timeout is None else duration_s(timeout, f"{place}.timeout")
        self.queue = queue or MAIN_PROCESSING
        self.concurrency = concurrency
        self.limit = None if limit is None else check_limit(limit, f"{place}.limit")
        self.cost = None if cost is None else check_cost(cost, f"{place}.cost")
        self.wait_s = None if wait is None else length_s(wait, f"{place}.wait", "a wait")
        if concurrency is not None:
            key_template(concurrency, f"{place}.concurrency")

    def __call__(self, **arguments: Any) -> StepHandle:
        """In a recipe: ask the provider once, for this `model` and `input`."""
        trace = current_trace()
        if trace is None:
            raise outside(f'wl.provider("{self.name}")')
        return trace.add(self._pending(bound(PROVIDER_PARAMETERS, (), arguments, self.name)))

    def map(self, items: Any, **fixed: Any) -> StepHandle:
        """In a recipe: ask once for each item of a list. Say with `item` where each goes, or it is all of the input."""
        trace = current_trace()
        if trace is None:
            raise outside(f'wl.provider("{self.name}").map')
        if "input" not in fixed and not uses_item(fixed):
            fixed = {"input": item, **fixed}
        each, arguments = fanned(PROVIDER_PARAMETERS, (items,), fixed, self.name)
        return trace.add(self._pending(arguments, each))

    def _pending(self, arguments: dict[str, Any], each: Value | None = None) -> Pending:
        return Pending(
            base=self.name,
            kind=NodeKind.TASK,
            run=PROVIDER_HANDLER,
            with_=arguments,
            each=each,
            queue=self.queue,
            retry=self.retry,
            timeout_s=self.timeout_s,
            provider=self.name,
            concurrency=self.concurrency,
            limit=self.limit,
            cost=self.cost,
            wait_s=self.wait_s,
        )

    def __repr__(self) -> str:
        return f"<provider {self.name}>"


def provider(
    name: str,
    *,
    retry: Retry | None = None,
    timeout: str | float | None = None,
    queue: str | None = None,
    concurrency: str | None = None,
    limit: int | None = None,
    cost: float | None = None,
    wait: str | float | None = None,
) -> ProviderCall:
    """A provider of `providers.yaml`, to be called in recipes without a handler of your own.

    `fal = wl.provider("fal", wait="30m")`, then in a recipe `fal(model="flux", input={"prompt": prompt})`, or
    `fal.map(prompts, model="flux", input={"prompt": wl.item})`. The options are those of `@wl.step`.
    """
    return ProviderCall(
        name,
        retry=retry,
        timeout=timeout,
        queue=queue,
        concurrency=concurrency,
        limit=limit,
        cost=cost,
        wait=wait,
    )


def call(name: str, /, **arguments: Any) -> StepHandle:
    """In a recipe: ask a provider once, as `wl.provider(name)(model=…, input=…)` does."""
    return ProviderCall(name)(**arguments)
