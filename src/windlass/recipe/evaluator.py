"""Expressions evaluated in a process of their own.

An `Evaluator` holds one child process (`cel_child.py`), started when it is first needed and started again whenever it
dies. What an expression costs is bounded: 100 ms of CPU, 600 MB of memory, 64 KB of context. A stall of the machine
is not the expression's fault, so an evaluation that died of anything but its own CPU or memory is tried once more.

A failure is a `BadExpression`: the expression, or the values it met, are at fault and another try would give the same.
`Unavailable` means that the child cannot be started at all.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from windlass.core.errors import BadExpression, Unavailable
from windlass.core.expression import Expression, parse_expression
from windlass.core.template import Scope, Template

CPU_S = 0.1
WALL_S = 1.0
MEMORY_BYTES = 600 << 20
CONTEXT_BYTES_MAX = 64 << 10
BATCH_MAX = 64
START_S = 20.0

_CEL_ERROR = re.compile(r"ERROR: <input>:-?\d+:(-?\d+): (.*)")
_NO_MEMORY = [[False, "out of memory"]]
_CODE = re.compile(r" \[[A-Z_]+\]$")
_STATUS = re.compile(r"^[A-Z_]+: ")


@dataclass(frozen=True, slots=True)
class Checked:
    """What the compiler says of an expression: its type (`BOOL`, `DYN`, …), or what is wrong with it."""

    type: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Died:
    """The child did not answer; `signal` is what ended it, 0 when it was not a signal."""

    signal: int


class Evaluator:
    """Evaluates expressions; may be used from any number of threads and event loops."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._is_closed = False

    def evaluate(self, expression: str, scope: Scope) -> Any:
        """The expression's value in this scope; blocks until it is known."""
        (value,) = self.evaluate_many([(expression, scope)])
        if isinstance(value, BadExpression):
            raise value
        return value

    def evaluate_many(self, requests: Sequence[tuple[str, Scope]]) -> list[Any]:
        """The values in the order of the requests, in as few round trips as there can be.

        A request that fails has its `BadExpression` in the list; the others are not touched by it.
        """
        answers: list[Any] = [None] * len(requests)
        frames: list[tuple[int, bytes]] = []
        for at, (text, scope) in enumerate(requests):
            try:
                frames.append((at, _request(text, scope)))
            except BadExpression as error:
                answers[at] = error
        for (at, _), reply in zip(frames, self._ask([frame for _, frame in frames]), strict=True):
            text = requests[at][0]
            answers[at] = reply[1] if reply[0] else BadExpression(f"`{text}` failed: {_reason(reply[1])}")
        return answers

    def check(self, expressions: Sequence[str]) -> list[Checked]:
        """Compile each expression, without evaluating it."""
        frames = [msgspec.json.encode(["check", text, None]) for text in expressions]
        return [Checked(type=reply[1]) if reply[0] else Checked(error=_reason(reply[1])) for reply in self._ask(frames)]

    def resolve(self, template: Template, scope: Scope) -> Any:
        """Resolve a template with this evaluator; the child is not troubled when there are only plain paths."""
        if not template.expressions:
            return template.resolve(scope, self.evaluate)
        texts = [expression.text for expression in template.expressions]
        return _resolve_with(template, scope, texts, self.evaluate_many([(text, scope) for text in texts]))

    async def evaluate_async(self, expression: str, scope: Scope) -> Any:
        """As `evaluate`, without blocking the event loop."""
        return await self._in_thread(self.evaluate, expression, scope)

    async def evaluate_many_async(self, requests: Sequence[tuple[str, Scope]]) -> list[Any]:
        """As `evaluate_many`, without blocking the event loop."""
        values: list[Any] = await self._in_thread(self.evaluate_many, requests)
        return values

    async def resolve_async(self, template: Template, scope: Scope) -> Any:
        """As `resolve`, without blocking the event loop; plain paths cost no switch of threads."""
        if not template.expressions:
            return template.resolve(scope, self.evaluate)
        return await self._in_thread(self.resolve, template, scope)

    def close(self) -> None:
        """End the child. An evaluation that is under way fails with `Unavailable`."""
        self._is_closed = True
        self._disown()
        if self._child is not None:
            self._child.process.kill()
        with self._lock:
            if self._child is not None:
                self._child.kill()
                self._child = None
        if self._thread is not None:
            self._thread.shutdown(wait=True)

    def _disown(self) -> None:
        """Start afresh when we are a fork: lock, thread and child belong to the process we were copied from."""
        if self._owner != os.getpid():
            self._owner = os.getpid()
            self._lock = threading.Lock()
            self._thread = None
            if self._child is not None:
                self._child.forget()
                self._child = None

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        self._disown()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="windlass-cel")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _ask(self, frames: list[bytes]) -> list[list[Any]]:
        replies: list[list[Any]] = []
        for start in range(0, len(frames), BATCH_MAX):
            batch = frames[start : start + BATCH_MAX]
            got = self._exchange(batch)
            if isinstance(got, _Died) or got == _NO_MEMORY:
                # One of them was deadly; which one shows when each goes alone.
                replies.extend(self._alone(frame) for frame in batch)
            else:
                replies.extend(got)
        return replies

    def _alone(self, frame: bytes) -> list[Any]:
        got = self._exchange([frame])
        if isinstance(got, _Died) and got.signal != signal.SIGPROF:
            got = self._exchange([frame])
        if not isinstance(got, _Died):
            return [False, f"it needs more than {MEMORY_BYTES >> 20} MB"] if got == _NO_MEMORY else got[0]
        if got.signal == signal.SIGPROF:
            return [False, f"it took more than {CPU_S * 1000:.0f} ms"]
        how = f"signal {got.signal}" if got.signal else "no answer"
        return [False, f"it ended the process that evaluates expressions ({how})"]

    def _exchange(self, batch: list[bytes]) -> list[list[Any]] | _Died:
        self._disown()
        with self._lock:
            child = self._started()
            reply = child.exchange(b"[" + b",".join(batch) + b"]", WALL_S * (1 + len(batch)))
            if reply is None:
                died = _Died(child.kill())
                self._child = None
                if self._is_closed:
                    raise Unavailable("the expression evaluator is closed")
                return died
            replies: list[list[Any]] = msgspec.json.decode(reply)
            if len(replies) != len(batch) or replies == _NO_MEMORY:
                child.kill()
                self._child = None
                return replies if len(batch) == 1 else _Died(0)
            return replies

    def _started(self) -> _Child:
        if self._is_closed:
            raise Unavailable("the expression evaluator is closed")
        child = self._child
        if child is None:
            child = self._child = _Child()
            if child.exchange(b"", START_S) is None:
                code = child.kill()
                self._child = None
                raise Unavailable(
                    f"the process that evaluates expressions did not start (signal {code})",
                    remedy=f"Try: {' '.join(_COMMAND)}",
                )
        return child


_COMMAND = [
    sys.executable,
    "-P",  # our own folder must not be where its imports come from
    str(Path(__file__).with_name("cel_child.py")),
    str(CPU_S),
    str(WALL_S),
    str(MEMORY_BYTES),
]


class _Child:
    """The process and the two pipes to it, which never block for longer than they are told."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            # A Ctrl-C in the terminal is for us; the child ends when its standard input does.
            process_group=0,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.into = self.process.stdin
        self.out_of = self.process.stdout
        os.set_blocking(self.into.fileno(), False)
        os.set_blocking(self.out_of.fileno(), False)

    def exchange(self, body: bytes, within_s: float) -> bytes | None:
        """Send a frame (none when it is empty) and read one; None when the child died or was too slow."""
        until = time.monotonic() + within_s
        try:
            if body and not self._send(len(body).to_bytes(4, "big") + body, until):
                return None
            head = self._receive(4, until)
            return None if head is None else self._receive(int.from_bytes(head, "big"), until)
        except (OSError, ValueError):
            return None

    def kill(self) -> int:
        """End the process, if it has not ended, and say which signal did it; 0 when none did."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # One that died by itself has a signal to tell; give the kernel a moment to say so.
            self.process.wait(0.05)
        self.process.kill()
        code = self.process.wait()
        self.forget()
        return max(0, -code)

    def forget(self) -> None:
        """Close our ends of the pipes."""
        for pipe in (self.into, self.out_of):
            with contextlib.suppress(OSError):
                pipe.close()

    def _send(self, data: bytes, until: float) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.into.fileno(), view) :]
            except BlockingIOError:
                if not _wait(self.into.fileno(), select.POLLOUT, until):
                    return False
        return True

    def _receive(self, size: int, until: float) -> bytes | None:
        chunks = []
        while size:
            try:
                chunk = os.read(self.out_of.fileno(), size)
            except BlockingIOError:
                if not _wait(self.out_of.fileno(), select.POLLIN, until):
                    return None
                continue
            if not chunk:
                return None
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)


@cache
def shared_evaluator() -> Evaluator:
    """The evaluator of this process, closed when it ends."""
    evaluator = Evaluator()
    atexit.register(evaluator.close)
    return evaluator


def _wait(descriptor: int, event: int, until: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))


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
    """The part of the scope that the expression refers to, down to the fields that it names."""
    context: dict[str, Any] = {}
    for path in expression.paths:
        _graft(context, scope, path)
    return context


def _graft(context: dict[str, Any], scope: Mapping[str, Any], path: Sequence[str | int]) -> None:
    """Copy what is at `path`, and nothing beside it. What is missing stays missing: `has()` must see that.

    A part that an earlier path already copied as a whole is shared with the scope, and is left as it is.
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
    """CEL's own message without its status code, and with its position as a place in the expression."""
    found = _CEL_ERROR.search(text)
    if found:
        at = "" if found[1].startswith("-") else f" (at character {found[1]})"
        return _CODE.sub("", found[2]).removesuffix(" (in container '')") + at
    return _CODE.sub("", _STATUS.sub("", text)).replace(" : ", ": ").split("\n", 1)[0]
