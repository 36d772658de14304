"""Handlers that fail on purpose, to test how a recipe reacts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from windlass.recipe.step import Step


def fail_times(times: int, error: Exception | type[Exception], then: Callable[..., Any] | Step) -> Callable[..., Any]:
    """Return a handler that raises `error` on its first `times` calls, and then calls `then`."""
    function = then.function if isinstance(then, Step) else then
    calls = iter(range(times))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def failing_async(*args: Any, **kwargs: Any) -> Any:
            for _ in calls:
                raise error
            return await function(*args, **kwargs)

        return failing_async

    @functools.wraps(function)
    def failing(*args: Any, **kwargs: Any) -> Any:
        for _ in calls:
            raise error
        return function(*args, **kwargs)

    return failing


def fail_always(error: Exception | type[Exception]) -> Callable[..., Any]:
    """Return a handler that takes any arguments and always raises `error`."""

    async def failing(**_: Any) -> None:
        raise error

    return failing


def returning(value: Any) -> Callable[..., Any]:
    """Return a handler that takes any arguments and returns `value`."""

    async def answer(**_: Any) -> Any:
        return value

    return answer
