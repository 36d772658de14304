"""What a flow and its driver say to each other. A flow is a generator that decides; a driver does what it asks.

    flow                          driver
    Ask(…)            ──────►     sends the request
                      ◄──────     Answer, or Lost when there was none
    Ask(is_stream)    ──────►     opens a stream, and keeps it open if the answer is a 200
    More()            ──────►     reads on in the open stream
                      ◄──────     bytes; b"" at its end; Lost
    Pause(seconds)    ──────►     waits
    Give(value)       ──────►     hands the value to whoever iterates

So retries, paging, waiting and resuming are written once, and tested without a socket; the two clients differ only in
how they perform these five.
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
    """A request. `is_safe` says that sending it twice does no more than sending it once."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_stream: bool = False
    is_safe: bool = True
    # How long an answer, or in a stream the next bytes, may take. None: as the client was told.
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Names of headers are in small letters; the body of an open stream is empty."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Lost:
    """There was no answer. `is_sent`: the request may have arrived all the same."""

    message: str
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class More:
    """Read on in the open stream."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Give:
    """Hand a value to whoever iterates over the flow."""

    value: Any


Wish: TypeAlias = Ask | More | Pause | Give
Got: TypeAlias = Answer | Lost | bytes | None
Flow: TypeAlias = Generator[Wish, Got, T]


@dataclass(frozen=True, slots=True)
class Means:
    """What flows take from the world: a clock, chance, and keys that nobody else makes."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    new_key: Callable[[], str] = lambda: uuid.uuid4().hex
