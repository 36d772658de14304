"""A recipe before any check: the common form of Python recipes and documents on the way to a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windlass.core.plan import NodeKind, OnFailure, UndoMode, UndoOrder
from windlass.recipe.asks import Asks


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step: templates in `with_` and in its options, whole expressions without `${}` in `when` and `each`."""

    name: str
    kind: NodeKind = NodeKind.TASK
    run: str = ""
    with_: Any = None
    when: str | None = None
    each: str | None = None
    after: tuple[str, ...] = ()
    asks: Asks = Asks()


@dataclass(frozen=True, slots=True)
class RecipeDraft:
    """A recipe: its steps in any order."""

    name: str
    steps: tuple[StepDraft, ...]
    inputs_schema: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    on_failure: OnFailure = OnFailure.FINISH
    ttl_s: float | None = None
    undo: UndoMode = UndoMode.AUTO
    undo_order: UndoOrder = UndoOrder.COMPLETION


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a handler or a recipe: their names in order, and the required ones."""

    names: tuple[str, ...]
    required: frozenset[str]
    # A function with **kwargs takes any name.
    takes_any: bool = False


# The parameters of a step that only calls its provider.
PROVIDER_PARAMETERS = Parameters(("model", "input"), frozenset())


@dataclass(frozen=True, slots=True)
class Known:
    """The handlers and recipes that a document may name. None disables the check."""

    handlers: Mapping[str, Parameters] | None = None
    recipes: Mapping[str, Parameters] | None = None
