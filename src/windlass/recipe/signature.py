"""Reads the parameters of a function from its signature and type hints."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.recipe.draft import Parameters


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters without its context; `hints` has the readable hints, `unread` the errors of others."""

    parameters: Parameters
    hints: dict[str, Any]
    unread: dict[str, str]
    defaults: dict[str, Any]
    context: str | None


def check_function(function: Callable[..., Any], what: str) -> None:
    """Refuse, at decoration, a function that cannot be called with arguments by name."""
    if not inspect.isfunction(function):
        raise BadRecipe(f"@{what} decorates functions, and {function!r} is not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadRecipe(f"{what} {function.__name__} is a generator, and must return one value")
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise BadRecipe(
                f"{what} {function.__name__} takes {name!r} by position only, but arguments are passed by name",
                remedy="Remove / and *args from its parameters",
            )


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read a function's parameters. Hints are read late, so that they may name types defined later in the module."""
    names: list[str] = []
    hints: dict[str, Any] = {}
    unread: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    context: str | None = None
    takes_any = False
    for name, parameter in inspect.signature(function).parameters.items():
        hint, problem = _hint(parameter.annotation, function)
        if _is_context(hint) or (problem and str(parameter.annotation).split(".")[-1] == "Context"):
            context = name
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
            continue
        names.append(name)
        if problem:
            unread[name] = problem
        elif hint is not parameter.empty:
            hints[name] = hint
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
    required = frozenset(name for name in names if name not in defaults)
    return Signature(Parameters(tuple(names), required, takes_any), hints, unread, defaults, context)


def _hint(annotation: Any, function: Callable[..., Any]) -> tuple[Any, str]:
    """Return a hint's type, or the reason why it cannot be read."""
    if annotation is inspect.Parameter.empty:
        return annotation, ""
    holder = type("_Holder", (), {"__annotations__": {"it": annotation}})
    try:
        scope = getattr(function, "__globals__", {})
        return typing.get_type_hints(holder, globalns=scope, localns=scope, include_extras=True)["it"], ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _is_context(hint: Any) -> bool:
    """Return whether a hint is the handler's context. Recipes cannot import the worker's class."""
    if isinstance(hint, type):
        return hint.__name__ == "Context" and hint.__module__.split(".")[0] == "windlass"
    return any(_is_context(part) for part in typing.get_args(hint))
