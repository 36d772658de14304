"""The child process that runs the scanner of a plug-in, so that a scanner that hangs or dies harms nobody.

`plugin.py` starts it. Frames go both ways over its standard streams (`recipe/framed_process.py`). A request is a line
of JSON, then the text. A reply is JSON: `{"found": [[rule, type, start, end, severity, confidence], …]}`, or
`{"error": reason}` without anything of the text.

    limit      how                          effect
    memory     RLIMIT_AS                    the scanner gets a MemoryError, and this process ends
    CPU        ITIMER_PROF, per request     the kernel ends this process
    time       ITIMER_REAL, per request     the kernel ends this process
    parent     end of standard input        this process ends
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
from typing import Any, NoReturn

from windlass.policy.scan.port import Scanner, ScanText

FOUND_MAX = 10_000


class _Pipes:
    """Frames over descriptors that the scanner does not know: what it prints goes nowhere."""

    def __init__(self) -> None:
        self._into, self._out_of = os.dup(0), os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)

    def read(self) -> bytes:
        """Return the next frame; end this process if there is none."""
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def write(self, reply: dict[str, Any]) -> None:
        """Send a frame."""
        body = json.dumps(reply).encode()
        view = memoryview(len(body).to_bytes(4, "big") + body)
        while view:
            view = view[os.write(self._out_of, view) :]

    def _exactly(self, size: int) -> bytes:
        chunks = []
        while size:
            chunk = os.read(self._into, min(size, 1 << 20))
            if not chunk:
                os._exit(0)
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)


def _loaded(reference: str) -> Scanner:
    module, _, name = reference.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    scanner: Scanner = found() if isinstance(found, type) else found
    return scanner


def _answer(scanner: Scanner, body: bytes) -> dict[str, Any]:
    head, _, data = body.partition(b"\n")
    found = list(scanner.scan(ScanText(data, json.loads(head)["media_type"])))
    if len(found) > FOUND_MAX:
        return {"error": f"it found more than {FOUND_MAX:,} places"}
    return {"found": [[one.rule, one.type, one.start, one.end, one.severity, one.confidence] for one in found]}


def main() -> NoReturn:
    """Answer requests until the parent closes the pipe."""
    reference, cpu_s, wall_s, memory_bytes = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    pipes = _Pipes()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # macOS has this limit but refuses to set it; there only the timers protect.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        scanner = _loaded(reference)
    except BaseException as error:
        pipes.write({"error": f"it cannot be loaded: {type(error).__name__}: {error}"})
        os._exit(1)
    pipes.write({"ready": scanner.name})
    while True:
        body = pipes.read()
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        signal.setitimer(signal.ITIMER_REAL, wall_s)
        try:
            reply = _answer(scanner, body)
        except MemoryError:
            # The memory may be held where this process cannot free it, so the process is not used again.
            os._exit(1)
        except BaseException as error:
            # The message of the error may contain the text, so only its class is told.
            reply = {"error": f"it raised {type(error).__name__}"}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        pipes.write(reply)


if __name__ == "__main__":
    main()
