"""Awaits a coroutine inside the current task, with separate context variables.

A task per attempt costs more than a short handler. So attempts share tasks, one after the other. `Drive` gives each
attempt the isolation that its own task would: no later attempt sees a context variable that a handler sets. A real task
still runs the coroutine, so `asyncio.timeout`, `TaskGroup` and similar tools work.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from typing import Any


class Drive:
    """Await it once.

    `on_suspend` is called when the coroutine first waits, so a coroutine that never waits saves the cost.
    """

    __slots__ = ("_coroutine", "_on_suspend", "_variables")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], variables: Variables, on_suspend: Callable[[], None]
    ) -> None:
        self._coroutine = coroutine
        self._variables = variables
        self._on_suspend = on_suspend

    def __await__(self) -> Generator[Any, Any, Any]:
        run = self._variables.run
        send: Callable[[Any], Any] = self._coroutine.send
        try:
            waits_for = run(send, None)
        except StopIteration as stop:
            return stop.value
        self._on_suspend()
        while True:
            try:
                answer = yield waits_for
            except GeneratorExit:
                run(self._coroutine.close)
                raise
            except BaseException as error:
                proceed: Callable[[Any], Any] = self._coroutine.throw
                answer = error
            else:
                proceed = send
            try:
                waits_for = run(proceed, answer)
            except StopIteration as stop:
                return stop.value
            finally:
                answer = None
