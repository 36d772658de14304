"""The messages between a flow and its driver. A flow is a generator that decides; a driver performs its requests.

    flow                          driver
    Ask(…)            ──────►     sends the request
                      ◄──────     Answer, or Lost when there was none
    Ask(is_stream)    ──────►     opens a stream, and keeps it open if the answer is a 200
    More()            ──────►     reads on in the open stream
                      ◄──────     bytes; b"" at its end; Lost
    Pause(seconds)    ──────►     waits
    Give(value)       ──────►     yields the value to the caller's loop

So retries, paging, waiting and resuming are written once and tested without a socket. The two clients differ only in
how they perform these five messages.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request. `is_safe` means that sending it twice has the same effect as sending it once."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_stream: bool = False
    is_safe: bool = True
    # The time limit for the answer, or for the next bytes of a stream. None means the client's timeout.
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the server. Header names are in lower case; the body of an open stream is empty."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Lost:
    """A request without an answer. If `is_sent`, the request may still have reached the server."""

    message: str
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class More:
    """Read the next bytes of the open stream."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Give:
    """Yield a value to the caller that iterates over the flow."""

    value: Any


Wish: TypeAlias = Ask | More | Pause | Give
Got: TypeAlias = Answer | Lost | bytes | None
Flow: TypeAlias = Generator[Wish, Got, T]


@dataclass(frozen=True, slots=True)
class Sources:
    """The outside inputs of flows: a clock, random numbers, and unique idempotency keys."""

    clock: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = random.random
    new_key: Callable[[], str] = lambda: uuid.uuid4().hex
