"""The process of a `cpu=True` handler: it runs one attempt after another until its pipe closes.

The worker starts it as a fresh interpreter (forking a process with threads is unsafe). It loads the handler by its
address, and sends the handler's notes and the outcome back. It exits when its worker is gone, even while a handler
runs.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any
from uuid import UUID

from windlass.core.errors import Permanent
from windlass.core.outcome import Cost, Failure, Fault, Outcome
from windlass.telemetry.logs import configure
from windlass.worker.binding import BadArguments, Binding
from windlass.worker.context import Cancelled, Context, Words, enter, join_words, refuse_cpu
from windlass.worker.fault import failure_of
from windlass.worker.log_tail import caught
from windlass.worker.output import outcome_of

# The process sends notes at most this often; the worker writes them at a slower pace still.
SAY_EVERY_S = 0.1
_MAIN = "__windlass_main__"


@dataclass(frozen=True, slots=True)
class Address:
    """The location from which another process can load a function."""

    module: str
    qualname: str
    file: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Address:
        """Return the address of a module-level function.

        Raises Permanent for a function that only this process can see.
        """
        module, qualname = function.__module__, function.__qualname__
        if "<locals>" in qualname or "<lambda>" in qualname:
            raise Permanent(f"{qualname} is cpu=True, so it must be at the top of a module")
        return cls(module, qualname, getattr(sys.modules.get(module), "__file__", None))

    def load(self) -> Callable[..., Any]:
        """Load the function in this process. The function of a decorated step is its `function`."""
        found: Any = self._module()
        for name in self.qualname.split("."):
            found = getattr(found, name)
        return getattr(found, "function", found)  # type: ignore[no-any-return]

    def _module(self) -> ModuleType:
        name = _MAIN if self.module == "__main__" else self.module
        if name in sys.modules:
            return sys.modules[name]
        if name != _MAIN:
            with contextlib.suppress(ModuleNotFoundError):
                return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(name, self.file) if self.file else None
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"module {self.module} of handler {self.qualname} cannot be loaded here")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt as it is sent to the process: plain values only."""

    address: Address
    arguments: Any
    job_id: UUID
    step: str
    index: int | None
    attempt: int
    checkpoint: str | None
    timeout_s: float
    request_id: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """Sent to the worker: notes of the handler."""

    words: Words


@dataclass(frozen=True, slots=True)
class Spent:
    """Sent to the worker: the total cost of the attempt so far."""

    cost: Cost


@dataclass(frozen=True, slots=True)
class Done:
    """Sent to the worker: the outcome, or None when the handler stopped because it was cancelled."""

    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Stop:
    """Sent to the process: the attempt should stop."""


class _Mouth:
    """Sends the handler's notes, joined, at most every SAY_EVERY_S. A timer sends the last notes of a burst."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._words: Words = {}
        self._sent_s = 0.0
        self._timer: threading.Timer | None = None

    def say(self, words: Words) -> None:
        """Send the notes now or soon."""
        with self._lock:
            join_words(self._words, words)
            wait_s = self._sent_s + SAY_EVERY_S - time.monotonic()
            if wait_s > 0:
                if self._timer is None:
                    self._timer = threading.Timer(wait_s, self.flush)
                    self._timer.daemon = True
                    self._timer.start()
                return
        self.flush()

    def flush(self) -> None:
        """Send the waiting notes."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._words:
                words, self._words = self._words, {}
                self._sent_s = time.monotonic()
                self._send(Said(words))


class Child:
    """The main loop of the process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._tasks: list[Task] = []
        self._has_task = threading.Semaphore(0)
        self._bindings: dict[Address, Binding] = {}
        self._context: Context | None = None

    def serve(self) -> None:
        """Run tasks until the worker is gone."""
        threading.Thread(target=self._listen, name="windlass-pipe", daemon=True).start()
        while True:
            self._has_task.acquire()
            self._send(Done(self._run(self._tasks.pop())))

    def _listen(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                # The worker is gone, so a result would have no reader.
                os._exit(0)
            if isinstance(message, Task):
                self._tasks.append(message)
                self._has_task.release()
            elif self._context is not None:
                self._context._cancel()

    def _send(self, message: Any) -> None:
        with self._lock:
            try:
                self._connection.send(message)
            except OSError:
                os._exit(0)

    def _run(self, task: Task) -> Outcome | None:
        mouth = _Mouth(self._send)
        ctx = self._context = Context(
            task.job_id,
            task.step,
            task.index,
            task.attempt,
            checkpoint=task.checkpoint,
            timeout_s=task.timeout_s,
            say=mouth.say,
            request_id=task.request_id,
            outside=refuse_cpu,
            spend=lambda cost: self._send(Spent(cost)),
            key=task.key,
        )
        enter(ctx)
        try:
            binding = self._bindings.get(task.address)
            if binding is None:
                binding = self._bindings[task.address] = Binding(task.address.load())
            return outcome_of(binding.function(**binding.arguments(task.arguments, ctx)))
        except Cancelled:
            return None
        except BadArguments as error:
            return Failure(Fault("bad_arguments", str(error), "BadArguments"), is_retryable=False)
        except BaseException as error:
            return failure_of(error)
        finally:
            ctx._close()
            self._context = None
            mouth.flush()


def main(descriptor: int, *, log_level: int, log_format: str | None = None) -> None:
    """Serve the worker at the other end of this socket.

    Handlers' log lines go to standard error, as the worker's do.
    """
    if log_format is None:
        logging.basicConfig(level=log_level, format="%(levelname)s %(name)s: %(message)s")
    else:
        configure(log_format, log_level)
    # Ctrl-C and a service manager's SIGTERM reach the whole group; the worker decides when its children end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with caught():
        Child(Connection(descriptor)).serve()
