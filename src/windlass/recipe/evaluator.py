"""Evaluates expressions in separate processes.

An `Evaluator` holds a few child processes (`cel_child.py`), started on first use and replaced when they die. The cost
of an expression is bounded: 100 ms of CPU, 600 MB of memory, 64 KB of context. A stall of the machine is not the
expression's fault. So an evaluation that died of anything but its own CPU or memory is tried once more.

Callers take turns (`turns.py`), and each has at most one evaluation in progress, so that a child is free for others.
A dead child is replaced at once, because its start takes longer than most evaluations. A caller whose expressions kill
children waits for a new child each time, and leaves the spare child to the others.

A failure is a `BadExpression`: the expression or its values are at fault, and another attempt would give the same
result. `Unavailable` means that no child can be started.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from windlass.core.errors import BadExpression, Unavailable
from windlass.core.expression import Expression, parse_expression
from windlass.core.template import Scope, Template
from windlass.recipe.framed_process import FramedProcess
from windlass.recipe.turns import Turns

CPU_S = 0.1
WALL_S = 1.0
MEMORY_BYTES = 600 << 20
CONTEXT_BYTES_MAX = 64 << 10
BATCH_MAX = 64
START_S = 20.0
# The maximum number of evaluations at a time, for all callers and for one caller.
CHILDREN_MAX = 2
PER_CALLER_MAX = 1
_DEADLY_MAX = 1_000

_CEL_ERROR = re.compile(r"ERROR: <input>:-?\d+:(-?\d+): (.*)")
_NO_MEMORY = [[False, "out of memory"]]
_CODE = re.compile(r" \[[A-Z_]+\]$")
_STATUS = re.compile(r"^[A-Z_]+: ")


@dataclass(frozen=True, slots=True)
class Checked:
    """The compiler's result for an expression: its type (`BOOL`, `DYN`, …), or an error."""

    type: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Died:
    """The child did not answer; `signal` is the signal that ended it, or 0."""

    signal: int


class Evaluator:
    """Evaluates expressions. It may be used from any number of threads and event loops."""

    def __init__(self) -> None:
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        # Guards the fields below; no thread waits for a child while it holds the lock.
        self._lock = threading.Lock()
        self._idle: list[FramedProcess] = []
        self._busy: set[FramedProcess] = set()
        self._turns: Turns[tuple[Future[Any], Any, tuple[Any, ...]]] = Turns(PER_CALLER_MAX)
        # Callers whose expressions have killed children.
        self._deadly: dict[str, None] = {}
        # One more than the threads that serve turns can use, for callers that block their own thread.
        self._places = threading.BoundedSemaphore(CHILDREN_MAX + 1)
        self._threads: ThreadPoolExecutor | None = None

    def evaluate(self, expression: str, scope: Scope) -> Any:
        """Return the expression's value in this scope; blocks until it is known."""
        (value,) = self.evaluate_many([(expression, scope)])
        if isinstance(value, BadExpression):
            raise value
        return value

    def evaluate_many(
        self, requests: Sequence[tuple[str, Scope]], caller: str = "", *, is_one: bool = False
    ) -> list[Any]:
        """Return the values in the order of the requests, in as few round trips as possible.

        A failed request has its `BadExpression` in the list and does not affect the others. With `is_one`, all requests
        are parts of one value: after a request that killed its child, no further request is evaluated.
        """
        answers: list[Any] = [None] * len(requests)
        frames: list[tuple[int, bytes]] = []
        for at, (text, scope) in enumerate(requests):
            try:
                frames.append((at, _request(text, scope)))
            except BadExpression as error:
                answers[at] = error
        replies = self._ask([frame for _, frame in frames], caller, is_one=is_one)
        for (at, _), reply in zip(frames, replies, strict=True):
            text = requests[at][0]
            answers[at] = reply[1] if reply[0] else BadExpression(f"`{text}` failed: {_reason(reply[1])}")
        return answers

    def check(self, expressions: Sequence[str]) -> list[Checked]:
        """Compile each expression, without evaluating it."""
        frames = [msgspec.json.encode(["check", text, None]) for text in expressions]
        return [Checked(type=reply[1]) if reply[0] else Checked(error=_reason(reply[1])) for reply in self._ask(frames)]

    def resolve(self, template: Template, scope: Scope, caller: str = "") -> Any:
        """Resolve a template with this evaluator; a template with only plain paths needs no child."""
        if not template.expressions:
            return template.resolve(scope, self.evaluate)
        texts = [expression.text for expression in template.expressions]
        values = self.evaluate_many([(text, scope) for text in texts], caller, is_one=True)
        return _resolve_with(template, scope, texts, values)

    async def evaluate_async(self, expression: str, scope: Scope) -> Any:
        """Evaluate an expression like `evaluate`, without blocking the event loop."""
        return await self._in_turn("", self.evaluate, expression, scope)

    async def evaluate_many_async(self, requests: Sequence[tuple[str, Scope]]) -> list[Any]:
        """Evaluate expressions like `evaluate_many`, without blocking the event loop."""
        values: list[Any] = await self._in_turn("", self.evaluate_many, requests)
        return values

    async def resolve_async(self, template: Template, scope: Scope, caller: str = "") -> Any:
        """Resolve a template in turn with other callers, without blocking the event loop. Plain paths do not wait."""
        if not template.expressions:
            return template.resolve(scope, self.evaluate)
        return await self._in_turn(caller, self.resolve, template, scope, caller)

    @property
    def is_closed(self) -> bool:
        """Return whether the evaluator is closed."""
        return self._is_closed

    def close(self) -> None:
        """Kill the children. An evaluation in progress fails with `Unavailable`."""
        self._is_closed = True
        self._disown()
        with self._lock:
            idle, self._idle = self._idle, []
            for child in self._busy:
                child.process.kill()
        for child in idle:
            child.process.kill()
            child.kill()
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    def _disown(self) -> None:
        """Start afresh in a forked process: the lock, threads and children belong to the original process."""
        if self._owner != os.getpid():
            for child in (*self._idle, *self._busy):
                child.forget()
            self._begin()

    async def _in_turn(self, caller: str, function: Any, *arguments: Any) -> Any:
        self._disown()
        future: Future[Any] = Future()
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(CHILDREN_MAX, thread_name_prefix="windlass-cel")
            self._turns.put(caller, (future, function, arguments))
        self._threads.submit(self._work)
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        """Run waiting work in a thread, in the order of turns.

        Work whose caller has no free place stays; the thread that works for that caller takes it later.
        """
        while True:
            with self._lock:
                taken = self._turns.take()
            if taken is None:
                return
            caller, (future, function, arguments) = taken
            begun_s = time.monotonic()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:
                    future.set_exception(error)
            with self._lock:
                self._turns.done(caller, time.monotonic() - begun_s)

    def _ask(self, frames: list[bytes], caller: str = "", *, is_one: bool = False) -> list[list[Any]]:
        replies: list[list[Any]] = []
        for start in range(0, len(frames), BATCH_MAX):
            batch = frames[start : start + BATCH_MAX]
            got = self._exchange(batch, caller)
            if isinstance(got, _Died) or got == _NO_MEMORY:
                # One of the requests killed the child; evaluating each alone shows which.
                got = []
                for frame in batch:
                    got.append(self._alone(frame, caller))
                    if is_one and not got[-1][0]:
                        return replies + got + [got[-1]] * (len(frames) - len(replies) - len(got))
            replies.extend(got)
        return replies

    def _alone(self, frame: bytes, caller: str) -> list[Any]:
        got = self._exchange([frame], caller)
        if isinstance(got, _Died) and got.signal != signal.SIGPROF:
            got = self._exchange([frame], caller)
        if not isinstance(got, _Died):
            return [False, f"it needs more than {MEMORY_BYTES >> 20} MB"] if got == _NO_MEMORY else got[0]
        if got.signal == signal.SIGPROF:
            return [False, f"it took more than {CPU_S * 1000:.0f} ms"]
        how = f"signal {got.signal}" if got.signal else "no answer"
        return [False, f"it ended the process that evaluates expressions ({how})"]

    def _exchange(self, batch: list[bytes], caller: str) -> list[list[Any]] | _Died:
        self._disown()
        with self._places:
            child = self._take(caller)
            reply = child.exchange(b"[" + b",".join(batch) + b"]", WALL_S * (1 + len(batch)))
            if reply is None:
                died = _Died(self._bury(child, caller))
                if self._is_closed:
                    raise Unavailable("the expression evaluator is closed")
                return died
            replies: list[list[Any]] = msgspec.json.decode(reply)
            if len(replies) != len(batch) or replies == _NO_MEMORY:
                self._bury(child, caller)
                return replies if len(batch) == 1 else _Died(0)
            self._give_back(child)
            return replies

    def _next(self, caller: str) -> FramedProcess | None:
        """Return the idle child for this caller, if there is one."""
        kept = 1 if caller in self._deadly else 0
        if len(self._idle) <= kept:
            return None
        return next((child for child in self._idle if child.is_ready), self._idle[0])

    def _take(self, caller: str) -> FramedProcess:
        with self._lock:
            if self._is_closed:
                raise Unavailable("the expression evaluator is closed")
            child = self._next(caller)
            if child is None:
                child = FramedProcess(_COMMAND)
            else:
                self._idle.remove(child)
            self._busy.add(child)
        if not child.started(START_S):
            code = self._bury(child, caller)
            raise Unavailable(
                f"the process that evaluates expressions did not start (signal {code})",
                remedy=f"Try: {' '.join(_COMMAND)}",
            )
        return child

    def _give_back(self, child: FramedProcess) -> None:
        with self._lock:
            self._busy.discard(child)
            is_kept = not self._is_closed and len(self._idle) < CHILDREN_MAX
            if is_kept:
                self._idle.append(child)
        if not is_kept:
            child.process.kill()
            child.kill()

    def _bury(self, child: FramedProcess, caller: str) -> int:
        """Kill a child, and start a spare one for the next caller."""
        with self._lock:
            self._busy.discard(child)
            self._deadly[caller] = None
            if len(self._deadly) > _DEADLY_MAX:
                del self._deadly[next(iter(self._deadly))]
            if child.is_ready and not self._idle and not self._is_closed:
                self._idle.append(FramedProcess(_COMMAND))
        return child.kill()


_COMMAND = [
    sys.executable,
    "-P",  # its imports must not come from this folder
    str(Path(__file__).with_name("cel_child.py")),
    str(CPU_S),
    str(WALL_S),
    str(MEMORY_BYTES),
]


@cache
def shared_evaluator() -> Evaluator:
    """Return the shared evaluator of this process, which is closed at exit."""
    evaluator = Evaluator()
    atexit.register(evaluator.close)
    return evaluator


def _resolve_with(template: Template, scope: Scope, texts: list[str], values: list[Any]) -> Any:
    known = dict(zip(texts, values, strict=True))

    def lookup(text: str, _: Scope) -> Any:
        value = known[text]
        if isinstance(value, BadExpression):
            raise value
        return value

    return template.resolve(scope, lookup)


def _request(text: str, scope: Scope) -> bytes:
    expression = parse_expression(text)
    frame = msgspec.json.encode(["evaluate", expression.text, _context(expression, scope)])
    if len(frame) > CONTEXT_BYTES_MAX:
        raise BadExpression(
            f"`{text}` reads {len(frame):,} bytes, and an expression may read {CONTEXT_BYTES_MAX:,}",
            remedy="Read a smaller part of the value, or do this in a step",
        )
    return frame


def _context(expression: Expression, scope: Scope) -> dict[str, Any]:
    """Return the part of the scope that the expression refers to, down to the named fields."""
    context: dict[str, Any] = {}
    for path in expression.paths:
        _graft(context, scope, path)
    return context


def _graft(context: dict[str, Any], scope: Mapping[str, Any], path: Sequence[str | int]) -> None:
    """Copy only the value at `path`. A missing value stays missing, because `has()` must see that.

    A value that an earlier path already copied as a whole is shared with the scope, and is left unchanged.
    """
    source: Any = scope
    target = context
    for at, part in enumerate(path):
        if not isinstance(source, Mapping) or part not in source:
            return
        value = source[part]
        key = str(part)
        is_last = at == len(path) - 1 or not isinstance(value, Mapping) or isinstance(path[at + 1], int)
        if is_last:
            target[key] = value
            return
        if key not in target:
            target[key] = {}
        elif target[key] is value:
            return
        source, target = value, target[key]


def _reason(text: str) -> str:
    """Return CEL's message without its status code, and with its position as a character of the expression."""
    found = _CEL_ERROR.search(text)
    if found:
        at = "" if found[1].startswith("-") else f" (at character {found[1]})"
        return _CODE.sub("", found[2]).removesuffix(" (in container '')") + at
    return _CODE.sub("", _STATUS.sub("", text)).replace(" : ", ": ").split("\n", 1)[0]
