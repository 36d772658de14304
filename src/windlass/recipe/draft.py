"""A recipe as its author wrote it, before any check: what Python and documents both become on the way to a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windlass.core.plan import NodeKind, OnFailure
from windlass.core.queue import MAIN_PROCESSING
from windlass.core.retry import Retry

# How long an attempt may take when nobody says.
TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class StepDraft:
    """One step: templates in `with_` and `concurrency`, whole expressions without `${}` in `when` and `each`."""

    name: str
    kind: NodeKind = NodeKind.TASK
    run: str = ""
    with_: Any = None
    when: str | None = None
    each: str | None = None
    after: tuple[str, ...] = ()
    queue: str = MAIN_PROCESSING
    retry: Retry = Retry()
    timeout_s: float = TIMEOUT_S
    provider: str | None = None
    concurrency: str | None = None
    limit: int | None = None
    cost: float | None = None
    wait_s: float | None = None
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class RecipeDraft:
    """A recipe: its steps in any order."""

    name: str
    steps: tuple[StepDraft, ...]
    inputs_schema: dict[str, Any] = field(default_factory=dict)
    output: Any = None
    on_failure: OnFailure = OnFailure.FINISH
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a handler or a recipe takes: the names in their order, and which of them may be left out."""

    names: tuple[str, ...]
    required: frozenset[str]
    # A function with **kwargs takes any name.
    takes_any: bool = False


# What a step is given that only asks its provider.
PROVIDER_PARAMETERS = Parameters(("model", "input"), frozenset())


@dataclass(frozen=True, slots=True)
class Known:
    """The handlers and recipes that a document may name. None means that nothing is known, so nothing is checked."""

    handlers: Mapping[str, Parameters] | None = None
    recipes: Mapping[str, Parameters] | None = None
