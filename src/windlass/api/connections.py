"""The open connections of a server: how many there may be, and which one makes room for the next.

Anybody who reaches the port can open connections and send half a request on each, without a key. Descriptors are the
first thing to run out, so the number of connections is capped below the process's limit of open files, and per address.

When a cap is reached the oldest half-sent request is dropped, then the oldest idle connection. A client that sends its
request in one go is never among those. Only if every connection is being answered is a new one refused.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from windlass.api.address import network_of
from windlass.core.errors import Limited, Unavailable, WindlassError

SWEEP_EVERY_S = 1.0
# The default of `connections_max`, where the limit of open files allows it. A half-sent head takes up to 32 KB.
DEFAULT_MAX = 4_000
# Descriptors for PostgreSQL, providers, artifacts, webhooks and worker processes.
RESERVED_FILES = 256
RETRY_AFTER_S = 2.0
_LOG_EVERY_S = 60.0
_log = logging.getLogger("windlass.access")


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one connection may send, and for how long the server waits for it."""

    head_max_bytes: int = 32 * 1024
    url_max_bytes: int = 16 * 1024
    headers_max: int = 100
    pipelined_max: int = 100
    head_s: float = 10.0
    # A body has `body_grace_s`, and one second more for each `body_rate_min` bytes that arrive, up to `body_s` in all.
    body_grace_s: float = 10.0
    body_rate_min: int = 1024
    body_s: float = 120.0
    # After an early answer the rest of the request is read and thrown away, so that the client can read the answer.
    linger_s: float = 10.0
    linger_max_bytes: int = 32 * 1024 * 1024
    # A client that takes nothing of its answer for so long is cut off.
    unread_s: float = 60.0


class Held(Protocol):
    """A connection, as far as the caps need to know it."""

    @property
    def is_half_sent(self) -> bool:
        """Whether the client has yet to send a part of its request."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked and nothing is answered."""
        ...

    def drop(self) -> None:
        """Close at once, without an answer."""
        ...

    def tick(self, step_s: float) -> None:
        """Count `step_s` more seconds of waiting for the client."""
        ...


class Connections:
    """All connections of one server. `exempt` are addresses without a cap of their own: trusted proxies."""

    def __init__(self, limits: HttpLimits, most: int, per_address_max: int, exempt: frozenset[str]) -> None:
        self.limits = limits
        self.most = most
        self.per_address_max = per_address_max
        self._exempt = exempt
        self._open: dict[Held, str] = {}
        self._by_address: Counter[str] = Counter()
        # Ordered: the oldest first.
        self._half_sent: dict[Held, None] = {}
        self._idle: dict[Held, None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._swept_s = 0.0
        self._logged_s = float("-inf")

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        """Begin to enforce deadlines."""
        loop = asyncio.get_running_loop()
        self._swept_s = loop.time()
        self._sweep = loop.call_later(SWEEP_EVERY_S, self._tick_all, loop)

    def stop(self) -> None:
        """Enforce no deadlines any more."""
        if self._sweep is not None:
            self._sweep.cancel()

    def enter(self, held: Held, peer: str | None) -> WindlassError | None:
        """Count a new connection, and drop another one if there is no room. The error of a refused connection."""
        address = "local" if peer is None else network_of(peer)
        is_capped = peer is not None and peer not in self._exempt
        if is_capped and self._by_address[address] >= self.per_address_max and not self._make_room(address):
            self._log_full(f"{address} has {self.per_address_max} connections, none of them half-sent or idle")
            return Limited("too many connections from this address", retry_after_s=RETRY_AFTER_S)
        if len(self._open) >= self.most and not self._make_room(None):
            self._log_full(f"{self.most} connections are open, none of them half-sent or idle")
            return Unavailable("the server has no room for another connection")
        self._open[held] = address
        self._by_address[address] += 1
        self._half_sent[held] = None
        return None

    def leave(self, held: Held) -> None:
        """Forget a connection; again changes nothing."""
        address = self._open.pop(held, None)
        if address is None:
            return
        self._half_sent.pop(held, None)
        self._idle.pop(held, None)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def moved(self, held: Held) -> None:
        """Take note of what a connection waits for now. It keeps its place in an order that it is in already."""
        if held not in self._open:
            return
        if held.is_half_sent:
            self._half_sent[held] = None
            self._idle.pop(held, None)
            return
        self._half_sent.pop(held, None)
        if held.is_idle:
            self._idle[held] = None
        else:
            self._idle.pop(held, None)

    def _make_room(self, address: str | None) -> bool:
        for order in (self._half_sent, self._idle):
            oldest = next((held for held in order if address is None or self._open[held] == address), None)
            if oldest is not None:
                self.leave(oldest)
                oldest.drop()
                self._log_full("the oldest half-sent request or idle connection makes room for a new one")
                return True
        return False

    def _tick_all(self, loop: asyncio.AbstractEventLoop) -> None:
        now_s = loop.time()
        # A stall of this process is not charged to its clients.
        step_s = min(now_s - self._swept_s, 2 * SWEEP_EVERY_S)
        self._swept_s = now_s
        for held in list(self._open):
            held.tick(step_s)
        self._sweep = loop.call_later(SWEEP_EVERY_S, self._tick_all, loop)

    def _log_full(self, what: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now_s
            _log.warning("connections are at their limit: %s", what)


def raise_open_files() -> int:
    """Raise this process's limit of open files as far as it may be raised; the limit then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            # Some systems name a hard limit that they do not grant.
            return soft
    return hard


def room_for(open_files: int, wanted: int | None) -> int:
    """How many connections there may be: as many as wanted, and never so many that the reserve is touched."""
    if open_files == resource.RLIM_INFINITY:
        return wanted or DEFAULT_MAX
    return min(wanted or DEFAULT_MAX, max(open_files // 2, open_files - RESERVED_FILES))
