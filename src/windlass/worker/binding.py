"""How a step's arguments, which are JSON, become the parameters of its function.

What is looked up by reflection is looked up once per function: which names it takes and needs, where the context
goes, and which annotations ask for more than JSON has (dataclasses, datetimes, Structs, pydantic models).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from windlass.recipe.signature import read_signature
from windlass.worker.context import Context

# JSON's own types need no conversion, and a wrong one is the function's business, as in any call.
_PLAIN = (str, int, float, bool, dict, list, type(None), object, Any)


class BadArguments(ValueError):
    """The arguments do not fit the function; the message names the parameter."""


class Binding:
    """One function's parameters."""

    __slots__ = ("_context_name", "_convert", "_names", "_required", "_takes_any", "function", "is_async")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object may be called asynchronously
        )
        signature = read_signature(function)
        self._context_name = signature.context
        self._takes_any = signature.parameters.takes_any
        self._names = frozenset(signature.parameters.names)
        self._required = signature.parameters.required
        self._convert = {name: hint for name, hint in signature.hints.items() if _must_convert(hint)}

    def arguments(self, given: Any, ctx: Context) -> dict[str, Any]:
        """The keyword arguments of a call; raises BadArguments when they do not fit."""
        if given is not None and not isinstance(given, dict):
            raise BadArguments(f"the arguments are {type(given).__name__}, where names and values are needed")
        keywords: dict[str, Any] = given or {}
        names = keywords.keys()
        if not self._takes_any and not names <= self._names:
            unknown = ", ".join(sorted(map(str, names - self._names)))
            raise BadArguments(f"{self._title()} takes no argument {unknown}")
        if not self._required <= names:
            raise BadArguments(f"{self._title()} needs {', '.join(sorted(self._required - names))}")
        if self._convert:
            keywords = {name: self._converted(name, value) for name, value in keywords.items()}
        return keywords if self._context_name is None else {**keywords, self._context_name: ctx}

    def _converted(self, name: str, value: Any) -> Any:
        if name not in self._convert:
            return value
        try:
            return msgspec.convert(value, self._convert[name], dec_hook=_model)
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            raise BadArguments(f"argument {name} of {self._title()}: {error}") from error

    def _title(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))


def _must_convert(hint: Any) -> bool:
    """Whether the annotation is a type that msgspec, or pydantic, can make of a JSON value."""
    if hint in _PLAIN or isinstance(hint, TypeVar):
        return False
    try:
        return not _is_foreign(msgspec.inspect.type_info(hint))
    except Exception:
        return False


def _is_foreign(info: msgspec.inspect.Type) -> bool:
    return isinstance(info, msgspec.inspect.CustomType) and not hasattr(info.cls, "model_validate")


def _model(kind: type, value: Any) -> Any:
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    raise NotImplementedError(f"a JSON value cannot become {kind.__qualname__}")
