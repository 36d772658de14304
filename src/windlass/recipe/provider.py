"""A provider's work as a step without a handler: the request is the whole step."""

from __future__ import annotations

from typing import Any, Unpack

from windlass.core.plan import PROVIDER_HANDLER, NodeKind
from windlass.core.queue import MAIN_PROCESSING
from windlass.recipe.asks import StepOptions, asks_of
from windlass.recipe.draft import PROVIDER_PARAMETERS
from windlass.recipe.handle import Pending, StepHandle, Value, item, uses_item
from windlass.recipe.options import check_provider
from windlass.recipe.trace import bound, current_trace, fanned, outside


class ProviderCall:
    """A provider for use in recipes. A call of it is a step, whose result is the provider's output."""

    def __init__(
        self,
        name: str,
        **options: Unpack[StepOptions],
    ) -> None:
        place = f"provider {name}"
        check_provider(name, place)
        self.name = name
        self.asks = asks_of(options, place, provider=name, queue=MAIN_PROCESSING)

    def __call__(self, **arguments: Any) -> StepHandle:
        """Add a step to the recipe that is being read: one request for this `model` and `input`."""
        trace = current_trace()
        if trace is None:
            raise outside(f'wl.provider("{self.name}")')
        return trace.add(self._pending(bound(PROVIDER_PARAMETERS, (), arguments, self.name)))

    def map(self, items: Any, **fixed: Any) -> StepHandle:
        """Add a fan-out with one request per item. `item` marks where each item goes; by default it is the input."""
        trace = current_trace()
        if trace is None:
            raise outside(f'wl.provider("{self.name}").map')
        if "input" not in fixed and not uses_item(fixed):
            fixed = {"input": item, **fixed}
        each, arguments = fanned(PROVIDER_PARAMETERS, (items,), fixed, self.name)
        return trace.add(self._pending(arguments, each))

    def _pending(self, arguments: dict[str, Any], each: Value | None = None) -> Pending:
        return Pending(
            base=self.name, kind=NodeKind.TASK, run=PROVIDER_HANDLER, with_=arguments, each=each, asks=self.asks
        )

    def __repr__(self) -> str:
        return f"<provider {self.name}>"


def provider(
    name: str,
    **options: Unpack[StepOptions],
) -> ProviderCall:
    """Return a provider of `providers.yaml`, for calls in recipes without a handler.

    `fal = wl.provider("fal", wait="30m")`, then in a recipe `fal(model="flux", input={"prompt": prompt})`, or
    `fal.map(prompts, model="flux", input={"prompt": wl.item})`. The options are those of `@wl.step`.
    """
    return ProviderCall(name, **options)


def call(name: str, /, **arguments: Any) -> StepHandle:
    """Add a step with one provider request, as `wl.provider(name)(model=…, input=…)` does."""
    return ProviderCall(name)(**arguments)
