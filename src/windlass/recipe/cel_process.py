"""The process that evaluates expressions (`cel_child.py`), as its parent sees it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Sequence


class CelProcess:
    """The process and the two pipes to it, which never block for longer than they are told."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command,
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
        self.is_ready = False

    def started(self, within_s: float) -> bool:
        """Whether the process is ready; waits for its first frame."""
        if not self.is_ready:
            self.is_ready = self.exchange(b"", within_s) is not None
        return self.is_ready

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


def _wait(descriptor: int, event: int, until: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))
