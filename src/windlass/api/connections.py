"""Tracks the open connections of a server, limits their number, and chooses the connection that makes room.

Any client that reaches the port can open connections and send half a request on each, without a key. Descriptors are
the first resource to run out. So the number of connections is capped below the process's limit of open files, and per
address.

At a cap, the server drops the oldest half-sent request, then the oldest idle connection. This never hits a client that
sends its request in one go. A new connection is refused only if every connection is being answered.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from windlass.access.limiter import OverLimit
from windlass.api.address import network_of
from windlass.core.errors import Unavailable, WindlassError
from windlass.core.limit import full

SWEEP_EVERY_S = 1.0
# The default of `connections_max` if the limit of open files allows it. A half-sent head takes up to 32 KB.
DEFAULT_MAX = 4_000
# Descriptors for PostgreSQL, providers, artifacts, webhooks and worker processes.
RESERVED_FILES = 256
RETRY_AFTER_S = 2.0
_LOG_EVERY_S = 60.0
_log = logging.getLogger("windlass.access")


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on the data that one connection may send, and on the time that the server waits for it."""

    head_max_bytes: int = 32 * 1024
    url_max_bytes: int = 16 * 1024
    headers_max: int = 100
    pipelined_max: int = 100
    head_s: float = 10.0
    # A body has `body_grace_s`, and one second more for each `body_rate_min` bytes that arrive, up to `body_s` in all.
    body_grace_s: float = 10.0
    body_rate_min: int = 1024
    body_s: float = 120.0
    # After an early response the server reads and discards the rest of the request, so that the client can read the
    # response.
    linger_s: float = 10.0
    linger_max_bytes: int = 32 * 1024 * 1024
    # A client that reads nothing of its response for this long is cut off.
    unread_s: float = 60.0


class Held(Protocol):
    """A connection, as far as the caps need to know it."""

    @property
    def is_half_sent(self) -> bool:
        """Return whether the client has yet to send a part of its request."""
        ...

    @property
    def is_idle(self) -> bool:
        """Return whether no request is arriving or being answered."""
        ...

    def drop(self) -> None:
        """Close at once, without a response."""
        ...

    def tick(self, step_s: float) -> None:
        """Count `step_s` more seconds of waiting for the client."""
        ...


class Connections:
    """All connections of one server. `exempt` has the addresses without a cap per address: trusted proxies."""

    def __init__(self, limits: HttpLimits, most: int, per_address_max: int, exempt: frozenset[str]) -> None:
        self.limits = limits
        self.most = most
        self.per_address_max = per_address_max
        self._exempt = exempt
        self._open: dict[Held, str] = {}
        self._by_address: Counter[str] = Counter()
        # In order, the oldest first.
        self._half_sent: dict[Held, None] = {}
        self._idle: dict[Held, None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._swept_s = 0.0
        self._logged_s = float("-inf")

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        """Start to enforce deadlines."""
        loop = asyncio.get_running_loop()
        self._swept_s = loop.time()
        self._sweep = loop.call_later(SWEEP_EVERY_S, self._tick_all, loop)

    def stop(self) -> None:
        """Stop enforcing deadlines."""
        if self._sweep is not None:
            self._sweep.cancel()

    def enter(self, held: Held, peer: str | None) -> WindlassError | None:
        """Count a new connection, and drop an old connection if there is no room. Return an error if it is refused."""
        address = "local" if peer is None else network_of(peer)
        is_capped = peer is not None and peer not in self._exempt
        if is_capped and self._by_address[address] >= self.per_address_max and not self._make_room(address):
            self._log_full(f"{address} has {self.per_address_max} connections, none of them half-sent or idle")
            window = full(self.per_address_max, RETRY_AFTER_S, RETRY_AFTER_S)
            return OverLimit(window, "too many connections from this address")
        if len(self._open) >= self.most and not self._make_room(None):
            self._log_full(f"{self.most} connections are open, none of them half-sent or idle")
            return Unavailable("the server has no room for another connection")
        self._open[held] = address
        self._by_address[address] += 1
        self._half_sent[held] = None
        return None

    def leave(self, held: Held) -> None:
        """Forget a connection. A second call changes nothing."""
        address = self._open.pop(held, None)
        if address is None:
            return
        self._half_sent.pop(held, None)
        self._idle.pop(held, None)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def moved(self, held: Held) -> None:
        """Update what a connection waits for. A connection keeps its place in an order that it is already in."""
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
    """Raise this process's limit of open files to the hard limit if possible, and return the resulting limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            # Some systems report a hard limit that they do not grant.
            return soft
    return hard


def room_for(open_files: int, wanted: int | None) -> int:
    """Return how many connections may be open: at most `wanted`, and never so many that they use the reserve."""
    if open_files == resource.RLIM_INFINITY:
        return wanted or DEFAULT_MAX
    return min(wanted or DEFAULT_MAX, max(open_files // 2, open_files - RESERVED_FILES))
