"""The sources of ids and randomness. The engine takes both as arguments, so that a simulation can pass in its own."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Callable
from uuid import UUID

from asyncpg.pgproto import pgproto

_COUNTER_BITS = 12
_COUNTER_MAX = (1 << _COUNTER_BITS) - 1
_TAIL_BITS = 62


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


# Ids must be unique, not secret; a system call for each id would cost more than the rest. A forked child would draw the
# same numbers as its parent, so it reseeds.
_random = random.Random(secrets.randbits(256))
os.register_at_fork(after_in_child=lambda: _random.seed(secrets.randbits(256)))


def _bits(count: int) -> int:
    return _random.getrandbits(count)


class Ids:
    """Generates UUIDv7s, each greater than the last in this process, also when the clock stands still or goes back.

    The layout is that of RFC 9562: 48 bits of milliseconds, a 12-bit counter within the millisecond, 62 random bits. So
    a job's id sorts by its creation time; the order of claims and of listings depends on that. Ids of jobs take the
    time from the database's clock (`store/clock.py`).
    """

    def __init__(self, now_ms: Callable[[], int] = _clock_ms, bits: Callable[[int], int] = _bits) -> None:
        self._now_ms = now_ms
        self._bits = bits
        self._lock = threading.Lock()
        self._ms = 0
        self._count = 0

    def new(self) -> UUID:
        """Return the next id."""
        with self._lock:
            now_ms = self._now_ms()
            if now_ms > self._ms:
                # The counter starts in its lower half, to leave room for ids of the same millisecond.
                self._ms, self._count = now_ms, self._bits(_COUNTER_BITS - 1)
            elif self._count < _COUNTER_MAX:
                self._count += 1
            else:
                self._ms, self._count = self._ms + 1, 0
            ms, count = self._ms, self._count
        number = ms << 80 | 0x7 << 76 | count << 64 | 0b10 << _TAIL_BITS | self._bits(_TAIL_BITS)
        # The driver's UUID class is created, hashed and sent several times faster.
        made: UUID = pgproto.UUID(number.to_bytes(16, "big"))
        return made


def spread() -> float:
    """Return a random number in [0, 1), for jitter."""
    return random.random()
