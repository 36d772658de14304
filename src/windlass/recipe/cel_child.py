"""The child process that runs CEL, so that a hostile expression can be killed without affecting other work.

`evaluator.py` starts it as a plain script. It imports nothing of Windlass, because it must start in milliseconds.
Frames go both ways over its standard streams: four bytes of length, then JSON. A request is a list of
`[operation, expression, context]`, a reply a list of `[is_ok, value or reason]`, one for each.

    limit      how                                effect
    memory     RLIMIT_AS                          this process replies that it is out of memory, and ends
    CPU        ITIMER_PROF, per evaluation        the kernel ends this process (SIGPROF)
    time       ITIMER_REAL, per evaluation        the kernel ends this process (SIGALRM)
    parent     end of standard input              this process ends

The timers belong to the kernel: they work inside C++ code, and also if the parent is gone or too busy.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import sys
from datetime import datetime, timedelta
from typing import Any

from cel_expr_python import cel

COMPILED_MAX = 1024
REPLY_BYTES_MAX = 1 << 20


class _Refuse(Exception):
    """The expression is wrong, or its value cannot travel as JSON."""


def _read(size: int) -> bytes:
    chunks = []
    while size:
        chunk = os.read(0, min(size, 1 << 20))
        if not chunk:
            sys.exit(0)
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _write(reply: list[Any]) -> None:
    body = json.dumps(reply, allow_nan=False).encode()
    view = memoryview(len(body).to_bytes(4, "big") + body)
    while view:
        view = view[os.write(1, view) :]


def _plain(value: Any) -> Any:
    """Return a CEL value as JSON. A value that JSON cannot represent is refused, not changed silently."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Refuse(f"the value is {value}, which JSON cannot hold")
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise _Refuse("the value is a map with keys that are not strings")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise _Refuse("the value is not JSON: it is bytes or a type")


class _Cel:
    """The environment and its compiled expressions."""

    def __init__(self) -> None:
        dyn = cel.Type.DYN
        self.env = cel.NewEnv(variables={"inputs": dyn, "steps": dyn, "item": dyn, "index": cel.Type.INT})
        self.compiled: dict[str, Any] = {}

    def compile(self, expression: str) -> Any:
        known = self.compiled.get(expression)
        if known is None:
            try:
                known = self.env.compile(expression)
            except RuntimeError as error:
                raise _Refuse(str(error)) from None
            if len(self.compiled) >= COMPILED_MAX:
                self.compiled.clear()
            self.compiled[expression] = known
        return known

    def evaluate(self, expression: str, context: dict[str, Any]) -> Any:
        answer = self.compile(expression).eval(data=context)
        # A failed evaluation returns a value of type ERROR, not an exception.
        if answer.type() in (cel.Type.ERROR, cel.Type.UNKNOWN):
            raise _Refuse(str(answer.value()))
        value = _plain(answer.plain_value())
        if not isinstance(value, bool | int | float | None) and len(json.dumps(value)) > REPLY_BYTES_MAX:
            raise _Refuse(f"the value is over {REPLY_BYTES_MAX:,} bytes")
        return value

    def answer(self, operation: str, expression: str, context: dict[str, Any]) -> list[Any]:
        try:
            if operation == "check":
                return [True, str(self.compile(expression).return_type())]
            return [True, self.evaluate(expression, context)]
        except _Refuse as error:
            return [False, str(error)]
        except RecursionError:
            return [False, "the value is nested too deeply"]
        except MemoryError:
            raise
        except Exception as error:
            # The binding raises errors that CEL's C++ code does not turn into a value, such as an exhausted budget.
            return [False, str(error)]


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    cpu_s, wall_s, memory_bytes = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    runtime = _Cel()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS has this limit but refuses to set it; there only the timers protect.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    _write([[True, "ready"]])
    while True:
        requests = json.loads(_read(int.from_bytes(_read(4), "big")))
        replies = []
        for operation, expression, context in requests:
            signal.setitimer(signal.ITIMER_PROF, cpu_s)
            signal.setitimer(signal.ITIMER_REAL, wall_s)
            try:
                replies.append(runtime.answer(operation, expression, context))
            except MemoryError:
                # The memory may be held where this process cannot free it, so the process is not used again.
                _write([[False, "out of memory"]])
                sys.exit(1)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
        _write(replies)


if __name__ == "__main__":
    main()
