"""The parent's side of a child process that answers requests over its two pipes.

A frame is four bytes of length and a body. The child says that it is ready with a first frame. Expressions are
evaluated in such a process (`cel_child.py`), and scanners of plug-ins run in one (`policy/scan/plugin_child.py`).
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence


class FramedProcess:
    """The process and its two pipes. No operation blocks for longer than its time limit."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=environment,
            # A Ctrl-C in the terminal is for the parent; the child ends with its standard input.
            process_group=0,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.into = self.process.stdin
        self.out_of = self.process.stdout
        os.set_blocking(self.into.fileno(), False)
        os.set_blocking(self.out_of.fileno(), False)
        self.is_ready = False

    def started(self, within_s: float) -> bool:
        """Wait for the first frame, and return whether the process is ready."""
        if not self.is_ready:
            self.is_ready = self.exchange(b"", within_s) is not None
        return self.is_ready

    def exchange(self, body: bytes, within_s: float) -> bytes | None:
        """Send a frame, if not empty, and read one. Return None if the child died or was too slow."""
        until = time.monotonic() + within_s
        try:
            if body and not self._send(len(body).to_bytes(4, "big") + body, until):
                return None
            head = self._receive(4, until)
            return None if head is None else self._receive(int.from_bytes(head, "big"), until)
        except (OSError, ValueError):
            return None

    def kill(self) -> int:
        """End the process if necessary; return the signal that ended it, or 0."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A process that crashed reports its own signal; the kernel may need a moment for it.
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


def _wait(descriptor: int, event: int, until: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))
