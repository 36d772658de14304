"""`@recipe`: a function that declares the steps of a recipe and the flow of values between them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NoReturn, overload

from windlass.core.errors import BadRecipe, WindlassError
from windlass.core.plan import NodeKind, OnFailure, Plan
from windlass.recipe.compile import compile_plan
from windlass.recipe.description import description_of
from windlass.recipe.draft import Parameters, RecipeDraft
from windlass.recipe.duration import duration_s
from windlass.recipe.handle import Pending, StepHandle, Value
from windlass.recipe.schema import input_names, required_names, schema_from_hints
from windlass.recipe.signature import check_function, read_signature
from windlass.recipe.step import Step
from windlass.recipe.trace import bound, current_trace, fanned, outside, tracing
from windlass.recipe.undoing import check_mode, check_order
from windlass.recipe.user_code import described


class Recipe:
    """A named definition. It is read when its plan is first used, so it may use names that are defined after it."""

    name: str

    @property
    def plan(self) -> Plan:
        """The compiled graph; raises `BadRecipe` if the recipe is invalid."""
        raise NotImplementedError

    @property
    def parameters(self) -> Parameters:
        """The names of the inputs."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        """The recipe's purpose, for people; empty if its author wrote none."""
        return ""

    @property
    def steps(self) -> Mapping[str, Step]:
        """The known handlers of the recipe, by name."""
        return {}

    @property
    def children(self) -> Mapping[str, Recipe]:
        """The known recipes that this recipe uses as steps, by name."""
        return {}

    @property
    def where(self) -> str:
        """The position of the recipe's source."""
        return ""

    def __call__(self, *args: Any, **kwargs: Any) -> StepHandle:
        """Add a step to the recipe that is being read; the step is a child job. Refused outside of a recipe."""
        trace = current_trace()
        if trace is None:
            self._refuse_call()
        return trace.add(self._pending(bound(self.parameters, args, kwargs, self.name)), self)

    def map(self, *items: Any, **fixed: Any) -> StepHandle:
        """Add a fan-out to the recipe that is being read: one child job per item of a list known only at run time."""
        trace = current_trace()
        if trace is None:
            raise outside(f"{self.name}.map")
        each, arguments = fanned(self.parameters, items, fixed, self.name)
        return trace.add(self._pending(arguments, each), self)

    def _pending(self, arguments: dict[str, Any], each: Value | None = None) -> Pending:
        return Pending(base=self.name, kind=NodeKind.RECIPE, run=self.name, with_=arguments, each=each)

    def _refuse_call(self) -> NoReturn:
        raise BadRecipe(
            f"recipe {self.name} cannot be called: submit a job of it",
            remedy=f"Run it with `windlass run`, submit it, or look at {self.name}.plan",
        )

    def __repr__(self) -> str:
        return f"<recipe {self.name}>"


class FunctionRecipe(Recipe):
    """A recipe that is a Python function."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        on_failure: OnFailure | str = OnFailure.FINISH,
        ttl: str | float | None = None,
        undo: str = "auto",
        undo_order: str = "completion",
    ) -> None:
        check_function(function, "recipe")
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__
        if inspect.iscoroutinefunction(function):
            raise BadRecipe(f"recipe {self.name} is async, but it only describes steps: write it with a plain def")
        try:
            self.on_failure = OnFailure(on_failure)
        except ValueError:
            raise BadRecipe(f"{on_failure!r} is not finish or stop", place="on_failure") from None
        self.ttl_s = None if ttl is None else duration_s(ttl, "ttl")
        self.undo, self.undo_order = check_mode(undo), check_order(undo_order)

    @property
    def plan(self) -> Plan:
        """The compiled graph; raises `BadRecipe` if the recipe is invalid."""
        return self._read[0]

    @property
    def description(self) -> str:
        """The function's docstring."""
        return description_of(inspect.cleandoc(self.function.__doc__ or ""))

    @property
    def parameters(self) -> Parameters:
        """The names of the inputs."""
        return self._inputs[1]

    @property
    def steps(self) -> Mapping[str, Step]:
        """The handlers of the recipe, by name."""
        found = {run: used for (kind, run), used in self._read[1].items() if kind is NodeKind.TASK}
        return found | {step.undo.name: step.undo for step in found.values() if step.undo is not None}

    @property
    def children(self) -> Mapping[str, Recipe]:
        """The recipes that this recipe uses as steps, by name."""
        return {run: used for (kind, run), used in self._read[1].items() if kind is NodeKind.RECIPE}

    @property
    def where(self) -> str:
        """The file and line of the function."""
        code = self.function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @cached_property
    def _inputs(self) -> tuple[dict[str, Any], Parameters]:
        signature = read_signature(self.function)
        parameters = signature.parameters
        if signature.context is not None:
            raise BadRecipe("a recipe has no context; only handlers have one", place=f"inputs.{signature.context}")
        if parameters.takes_any:
            raise BadRecipe(f"recipe {self.name} takes **arguments, but inputs must have names", place="inputs")
        for name, problem in signature.unread.items():
            raise BadRecipe(f"the type hint cannot be read: {problem}", place=f"inputs.{name}")
        hints = {name: signature.hints.get(name, Any) for name in parameters.names}
        return schema_from_hints(hints, signature.defaults), parameters

    @cached_property
    def _read(self) -> tuple[Plan, dict[tuple[NodeKind, str], Any]]:
        try:
            schema, parameters = self._inputs
            with tracing(self.name) as trace:
                output = self._called(parameters)
                steps, output = trace.finish(output)
            plan = compile_plan(
                RecipeDraft(self.name, steps, schema, output, self.on_failure, self.ttl_s, self.undo, self.undo_order)
            )
        except BadRecipe as error:
            error.message = f"{error.message} (in recipe {self.name}, {self.where})"
            raise
        return plan, trace.used

    def _called(self, parameters: Parameters) -> Any:
        try:
            return self.function(**{name: Value((f"inputs.{name}",)) for name in parameters.names})
        except WindlassError:
            raise
        except Exception as error:
            raise BadRecipe(described(error)) from error


class DocumentRecipe(Recipe):
    """A recipe that was written as a document, and is already a plan."""

    def __init__(self, plan: Plan, source: str = "", description: str = "") -> None:
        self.name = plan.recipe
        self._plan = plan
        self._description = description
        self._source = source

    @property
    def plan(self) -> Plan:
        """The compiled graph."""
        return self._plan

    @property
    def description(self) -> str:
        """The document's `description`."""
        return self._description

    @property
    def where(self) -> str:
        """The file of the document."""
        return self._source

    @property
    def parameters(self) -> Parameters:
        """The names of the inputs."""
        schema = self._plan.inputs_schema
        names = tuple(schema.get("properties", {}))
        return Parameters(names, required_names(schema), takes_any=input_names(schema) is None)


@overload
def recipe(function: Callable[..., Any], /) -> FunctionRecipe: ...
@overload
def recipe(
    *,
    name: str | None = None,
    on_failure: OnFailure | str = OnFailure.FINISH,
    ttl: str | float | None = None,
    undo: str = "auto",
    undo_order: str = "completion",
) -> Callable[[Callable[..., Any]], FunctionRecipe]: ...
def recipe(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a recipe. Its parameters are the inputs, and the steps it calls are the graph. Its return value
    is the job's output. `on_failure="stop"` cancels the other branches as soon as a step has failed for good.
    `ttl="7d"` limits the lifetime of its jobs; the default is 24 hours plus the waits that the recipe declares. The
    docstring is the recipe's description.

    If a job ends badly, the effects of its steps are undone, the newest first. `undo="ask"` lets a person decide;
    `undo_order="graph"` undoes independent branches together.
    """
    if function is not None:
        return FunctionRecipe(function)
    return lambda decorated: FunctionRecipe(decorated, **options)
