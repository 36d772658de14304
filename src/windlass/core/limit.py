"""Rate limits: the strategies that choose a caller's limit, and the sliding window that counts its requests.

The window is divided into sixty slices. New requests count in the newest slice, and time shifts the older slices. A
slice counts fully until all of it has left the window, so the window keeps 61 slices:

    newest                                              oldest
    [ 3 ][ 0 ][ 7 ] …  58 more …                   [ 2 ][ 5 ]
      └ being filled, `into_slice` of it is past            └ partly out, counts fully

So no window exceeds the limit, at any starting point, and a request expires at most a sixtieth of the window late.
Refused requests do not count: a caller that asks too often gets as much as a caller that does not.

PostgreSQL does the counting (`windlass.limit_take`) under a row lock; `take` is its arithmetic as a pure function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeGuard

from windlass.core.caller import CallerContext, is_internal

SLICES = 60
# One row can count this many requests.
MOST_MAX = 2**31 - 1
WINDOW_MAX_S = 31 * 86400
INTERNAL_MULTIPLIER = 20


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit of `requests`, plus `burst`, in any window of this length."""

    requests: int
    window_s: int
    burst: int = 0

    @property
    def most(self) -> int:
        """The highest number of requests in any window."""
        return min(self.requests + self.burst, MOST_MAX)

    @property
    def slice_s(self) -> float:
        """The length of a slice."""
        return self.window_s / SLICES


class Strategy(Protocol):
    """Chooses the rate limit of a caller."""

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """Return the caller's limit while `active` callers are active."""
        ...


@dataclass(frozen=True, slots=True)
class FairShare:
    """Active callers share the capacity; each gets at least the floor. Internal callers have a fixed limit."""

    capacity: int
    floor: int
    burst: float = 1.5
    window_s: int = 3600
    internal: frozenset[str] = frozenset()

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """Return an equal share of the capacity, or the fixed limit of an internal caller."""
        if is_internal(ctx, self.internal):
            return RateLimit(self.floor * INTERNAL_MULTIPLIER, self.window_s, 0)
        share = max(self.floor, self.capacity // max(1, active))
        return RateLimit(share, self.window_s, int(share * self.burst) - share)


@dataclass(frozen=True, slots=True)
class MembershipTier:
    """The caller's limits from Membership, then its tier's limit, then a fair share if neither is known."""

    tiers: Mapping[str, int]
    fair: FairShare

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """Return the caller's own limit, its tier's limit, or a fair share."""
        own = _claimed(ctx.raw_claims.get("rate_limits"), self.fair.window_s)
        if own is not None:
            return own
        if ctx.tier is not None and ctx.tier in self.tiers:
            return RateLimit(self.tiers[ctx.tier], self.fair.window_s, 0)
        return self.fair.limit(ctx, active)


@dataclass(frozen=True, slots=True)
class Composite:
    """Callers with a tier or limits from Membership get them; all other callers share fairly."""

    fair: FairShare
    tier: MembershipTier

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """Return the limit from Membership if it sent one, otherwise a fair share."""
        if ctx.tier or ctx.raw_claims.get("rate_limits"):
            return self.tier.limit(ctx, active)
        return self.fair.limit(ctx, active)


# Without slots, as its headers are made once for all requests that share the window.
@dataclass(frozen=True)
class Window:
    """The used and remaining requests of a caller."""

    limit: int
    window_s: int
    used: int
    remaining: int
    # Seconds until the whole window is free again, and until the refused request fits (0 if it fits now).
    reset_s: int
    retry_after_s: int

    @property
    def headers(self) -> dict[str, str]:
        """The window as response headers: the names that most clients read, and the draft standard's."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_s),
            "X-RateLimit-Window": str(self.window_s),
            "RateLimit-Policy": f'"requests";q={self.limit};w={self.window_s}',
            "RateLimit": f'"requests";r={self.remaining};t={self.reset_s}',
        }

    @cached_property
    def lines(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers as they are sent."""
        return tuple((name.lower().encode(), value.encode()) for name, value in self.headers.items())


def full(limit: int, window_s: float, reset_s: float) -> Window:
    """A window in which nothing is left until `reset_s` have passed."""
    left_s = max(1, math.ceil(reset_s))
    return Window(limit, math.ceil(window_s), limit, 0, left_s, left_s)


def window(taken: Sequence[int], into_slice: float, limit: RateLimit, cost: int = 1) -> Window:
    """Return the state of the window under a limit, for a request of this cost."""
    used = sum(taken)
    return Window(
        limit=limit.most,
        window_s=limit.window_s,
        used=used,
        remaining=max(0, limit.most - used),
        reset_s=_room_s(taken, into_slice, limit, 0),
        retry_after_s=_room_s(taken, into_slice, limit, limit.most - cost),
    )


def take(
    before: tuple[int, Sequence[int]] | None, at: float, costs: Sequence[int], most: int
) -> tuple[int, list[int], list[bool]]:
    """Count the requests that fit, in order. Return the newest slice's number, the slices, and which requests fit.

    `before` is the previous slice number and slices; `at` is the time, measured in slices.
    """
    here = math.floor(at)
    was, counts = (here, [0] * (SLICES + 1)) if before is None else (before[0], list(before[1]))
    if was > here + SLICES + 1:
        was = here - SLICES - 1
    here = max(here, was)
    gap = min(here - was, SLICES + 1)
    counts = [0] * gap + counts[: SLICES + 1 - gap]
    granted = []
    for cost in costs:
        granted.append(sum(counts) + cost <= most)
        if granted[-1]:
            counts[0] += cost
    return here, counts, granted


def _room_s(taken: Sequence[int], into_slice: float, limit: RateLimit, at_most: int) -> int:
    """Return after how many whole seconds at most `at_most` of the taken requests still count."""
    left = sum(taken)
    if left <= at_most:
        return 0
    for place in range(SLICES, -1, -1):
        left -= taken[place]
        if left <= at_most:
            return max(1, math.ceil((SLICES + 1 - place - into_slice) * limit.slice_s))
    # Even an empty window has no room for this request.
    return math.ceil((SLICES + 1) * limit.slice_s)


def _claimed(claim: Any, window_s: int) -> RateLimit | None:
    """Return the limit that Membership stated, or None if it cannot be read."""
    if not isinstance(claim, Mapping):
        return None
    requests, window, burst = claim.get("requests"), claim.get("window_seconds", window_s), claim.get("burst", 0)
    if not (_is_count(requests) and _is_count(window) and _is_count(burst) and 0 < window <= WINDOW_MAX_S):
        return None
    return RateLimit(requests, window, burst)


def _is_count(number: Any) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
