"""A table of begun attempts in memory that a worker process shares with the process that watches it.

The worker marks an attempt right before it enters the handler, and clears the mark when the handler has ended. This
needs no lock and no system call: about half a microsecond. When the worker process dies, by any signal, the watching
process still has the table. The watcher is the heartbeat process; for an isolation worker it is also the worker that
started it.

    slot 0      the number of begun attempts that found no free slot
    slot 1 …    job id (16 bytes), step number, attempt number; all zero: free
"""

from __future__ import annotations

import mmap
import os
import tempfile
from struct import Struct
from uuid import UUID

Key = tuple[UUID, int, int]  # job, step number, attempt

_SLOT = Struct("=16sII")
_COUNT = Struct("=I")
_EMPTY = bytes(_SLOT.size)
# Attempts that ignore a stop may exceed the number of lanes.
SPARE = 64


class Begun:
    """The table of one process. Another process opens it by `descriptor`."""

    def __init__(self, concurrency: int, descriptor: int | None = None) -> None:
        size = (1 + concurrency + SPARE) * _SLOT.size
        self.descriptor = _new(size) if descriptor is None else descriptor
        self._map = mmap.mmap(self.descriptor, size)
        self._free = list(range(size - _SLOT.size, 0, -_SLOT.size))
        self._pack = _SLOT.pack_into
        self._crowded = 0

    def mark(self, key: Key) -> int:
        """Mark an attempt as begun. Returns the slot for `clear`."""
        if not self._free:
            self._count(1)
            return 0
        place = self._free.pop()
        self._pack(self._map, place, key[0].bytes, key[1], key[2])
        return place

    def clear(self, place: int) -> None:
        """Clear the mark of an ended handler."""
        if place:
            self._map[place : place + _SLOT.size] = _EMPTY
            self._free.append(place)
        else:
            self._count(-1)

    def close(self) -> None:
        """Release the memory. Other processes keep their mapping."""
        self._map.close()
        os.close(self.descriptor)

    def _count(self, change: int) -> None:
        self._crowded += change
        _COUNT.pack_into(self._map, 0, self._crowded)


def read(descriptor: int) -> tuple[set[Key], int]:
    """Return the attempts that have begun and not ended, and the number of further attempts without a slot."""
    size = os.fstat(descriptor).st_size
    with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as table:
        slots = table[:]
    rows = (_SLOT.unpack_from(slots, place) for place in range(_SLOT.size, size, _SLOT.size))
    return {(UUID(bytes=job), no, attempt) for job, no, attempt in rows if attempt}, _COUNT.unpack_from(slots)[0]


def _new(size: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("windlass-begun")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
