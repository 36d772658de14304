"""Where ids and chance come from. The engine takes both as arguments, so that a simulation can hand in its own."""

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


# Ids must differ, not be secret; a system call for each would cost more than the rest of it. A forked child would draw
# the same numbers as its parent, so it begins anew.
_random = random.Random(secrets.randbits(256))
os.register_at_fork(after_in_child=lambda: _random.seed(secrets.randbits(256)))


def _bits(count: int) -> int:
    return _random.getrandbits(count)


class Ids:
    """UUIDv7s, each greater than the one before in this process, also when the clock stands still or goes back.

    The layout is RFC 9562's: 48 bits of milliseconds, 12 bits that count within one, 62 bits of chance. A job's id
    therefore sorts by when it was made, which is what the order of claims and of listings rests on. Jobs' ids take the
    time from the database's clock (`store/clock.py`).
    """

    def __init__(self, now_ms: Callable[[], int] = _clock_ms, bits: Callable[[int], int] = _bits) -> None:
        self._now_ms = now_ms
        self._bits = bits
        self._lock = threading.Lock()
        self._ms = 0
        self._count = 0

    def new(self) -> UUID:
        """The next id."""
        with self._lock:
            now_ms = self._now_ms()
            if now_ms > self._ms:
                # Half the counter's room is left for ids of the same millisecond.
                self._ms, self._count = now_ms, self._bits(_COUNTER_BITS - 1)
            elif self._count < _COUNTER_MAX:
                self._count += 1
            else:
                self._ms, self._count = self._ms + 1, 0
            ms, count = self._ms, self._count
        number = ms << 80 | 0x7 << 76 | count << 64 | 0b10 << _TAIL_BITS | self._bits(_TAIL_BITS)
        # The driver's own class is a UUID that is made, hashed and sent several times faster.
        made: UUID = pgproto.UUID(number.to_bytes(16, "big"))
        return made


def chance() -> float:
    """A number in [0, 1), for jitter."""
    return random.random()
