"""Reads a recipe: runs its function once with symbolic inputs, and records every step that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.recipe.compile import check_arguments
from windlass.recipe.draft import Parameters, StepDraft
from windlass.recipe.handle import Pending, StepHandle, as_items, item, steps_in, template_tree, uses_item

_current: ContextVar[Trace | None] = ContextVar("windlass_trace", default=None)


@dataclass(slots=True)
class Trace:
    """The steps of one recipe in the order of their calls, with their handlers and recipes."""

    recipe: str
    steps: list[Pending] = field(default_factory=list)
    used: dict[tuple[NodeKind, str], Any] = field(default_factory=dict)

    def add(self, pending: Pending, used: Any = None) -> StepHandle:
        """Record a step."""
        if used is not None and self.used.setdefault((pending.kind, pending.run), used) is not used:
            what = "recipes" if pending.kind is NodeKind.RECIPE else "handlers"
            raise BadRecipe(
                f"two different {what} are called {pending.run!r}",
                place=f"steps.{pending.label}",
                remedy=f'Give one of them another name: @wl.{what.rstrip("s").replace("handler", "step")}(name="…")',
            )
        self.steps.append(pending)
        return StepHandle(pending)

    def finish(self, output: Any) -> tuple[tuple[StepDraft, ...], Any]:
        """Make the names final, and return the steps and the output as text."""
        self._settle_names()
        known = {id(step) for step in self.steps}
        for step in self.steps:
            parts = (
                ("with", step.with_),
                ("when", step.when),
                ("each", step.each),
                ("concurrency", step.asks.concurrency),
            )
            for place, tree in parts:
                self._check_own(tree, known, f"steps.{step.name}.{place}")
            for other in step.after:
                self._check_own(StepHandle(other), known, f"steps.{step.name}.after")
        self._check_own(output, known, "output")
        return tuple(step.draft() for step in self.steps), template_tree(output, "output")

    def _settle_names(self) -> None:
        taken: set[str] = set()
        for step in self.steps:
            if step.given_name is not None:
                if step.given_name in taken:
                    raise BadRecipe("two steps have this name", place=f"steps.{step.given_name}")
                taken.add(step.given_name)
                step.name = step.given_name
        # The last number used per stem; all lower numbers are taken.
        last: dict[str, int] = {}
        for step in self.steps:
            if step.given_name is None:
                stem = re.sub(r"[^A-Za-z0-9_]", "_", step.base)
                count = last.get(stem, 0) + 1
                while (name := stem if count == 1 else f"{stem}_{count}") in taken:
                    count += 1
                last[stem] = count
                taken.add(name)
                step.name = name

    def _check_own(self, tree: Any, known: set[int], place: str) -> None:
        for step in steps_in(tree):
            if id(step) not in known:
                raise BadRecipe(
                    f"{step.label!r} is a step of another recipe", place=place, remedy="Pass its result as an input"
                )


def current_trace() -> Trace | None:
    """Return the trace of the recipe that is being read, or None."""
    return _current.get()


@contextmanager
def tracing(recipe: str) -> Iterator[Trace]:
    """Read a recipe within this block."""
    trace = Trace(recipe)
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


def bound(parameters: Parameters, args: tuple[Any, ...], kwargs: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return the arguments by name. A missing, unknown or duplicate argument is refused."""
    place = f"steps.{label}.with"
    if len(args) > len(parameters.names):
        raise BadRecipe(f"{label} takes {len(parameters.names)} arguments, and {len(args)} are given", place=place)
    given = dict(zip(parameters.names, args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise BadRecipe(f"{label} is given {name!r} twice", place=f"{place}.{name}")
        given[name] = value
    check_arguments(given, parameters, place, label)
    return given


def fanned(
    parameters: Parameters, args: tuple[Any, ...], fixed: Mapping[str, Any], label: str
) -> tuple[Any, dict[str, Any]]:
    """Return the items of a fan-out, and the arguments of each child.

    The only positional argument has the items. Each item goes to the first parameter that `fixed` does not name, unless
    `fixed` uses `item` itself. Without a positional argument, the only named argument has the items.
    """
    place = f"steps.{label}.each"
    if len(args) == 1:
        items, rest = args[0], dict(fixed)
        free = [name for name in parameters.names if name not in rest]
        if not uses_item(rest):
            if not free:
                raise BadRecipe(f"{label} has no parameter left for the item", place=place)
            rest = {free[0]: item, **rest}
    elif not args and len(fixed) == 1:
        ((name, items),) = fixed.items()
        rest = {name: item}
    else:
        raise BadRecipe(
            f"{label}.map takes the items first and everything else by name",
            place=place,
            remedy=f"Write {label}.map(items, other=…)",
        )
    return as_items(items), bound(parameters, (), rest, label)


def outside(what: str) -> BadRecipe:
    """Return the error for a call that is only valid while a recipe is read."""
    return BadRecipe(f"{what} can only be called inside a function with @wl.recipe")
