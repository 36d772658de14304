"""Binds a step's JSON arguments to the parameters of its function.

Reflection runs once per function. It finds the names that the function takes and needs, the parameter for the context,
and the annotations beyond JSON (dataclasses, datetimes, Structs, pydantic models).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from windlass.recipe.signature import read_signature
from windlass.worker.context import Context

# JSON's own types need no conversion. The function itself handles a wrong type, as in any call.
_PLAIN = (str, int, float, bool, dict, list, type(None), object, Any)


class BadArguments(ValueError):
    """Raised when the arguments do not fit the function; the message names the parameter."""


class Binding:
    """The parameters of one function."""

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
        """Build the keyword arguments of a call. Raises BadArguments when they do not fit."""
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

    def known(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the values that the function takes. An undo handler names only what it needs."""
        return given if self._takes_any else {name: value for name, value in given.items() if name in self._names}

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
    """Whether msgspec or pydantic can convert a JSON value to the annotated type."""
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
