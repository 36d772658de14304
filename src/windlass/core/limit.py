"""How many requests a caller may make: the strategies that say so, and the sliding window that counts them.

The window is cut into sixty slices. Time fills the newest one and pushes the others along; a slice counts whole until
all of it has left the window, which makes 61:

    newest                                              oldest
    [ 3 ][ 0 ][ 7 ] …  58 more …                   [ 2 ][ 5 ]
      └ being filled, `into_slice` of it is past            └ partly out, counts whole

So no window holds more than the limit, wherever one lets it begin, and a request is forgotten at most a sixtieth of
the window late. What is refused is not counted: a caller who asks too often is served as much as one who does not.

PostgreSQL does the counting (`windlass.limit_take`), under a row lock; `take` is its arithmetic as a pure function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from windlass.core.caller import CallerContext, is_internal

SLICES = 60
# What one row can count.
MOST_MAX = 2**31 - 1
WINDOW_MAX_S = 31 * 86400
INTERNAL_MULTIPLIER = 20


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many requests in any window of this length, and as many more as `burst` says."""

    requests: int
    window_s: int
    burst: int = 0

    @property
    def most(self) -> int:
        """The most that any window may hold."""
        return min(self.requests + self.burst, MOST_MAX)

    @property
    def slice_s(self) -> float:
        """How long a slice is."""
        return self.window_s / SLICES


class Strategy(Protocol):
    """Says how many requests a caller may make."""

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """The caller's limit, when so many callers are active."""
        ...


@dataclass(frozen=True, slots=True)
class FairShare:
    """Those who are active share the capacity, nobody has less than the floor, and internal callers have their own."""

    capacity: int
    floor: int
    burst: float = 1.5
    window_s: int = 3600
    internal: frozenset[str] = frozenset()

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """See `Strategy`."""
        if is_internal(ctx, self.internal):
            return RateLimit(self.floor * INTERNAL_MULTIPLIER, self.window_s, 0)
        share = max(self.floor, self.capacity // max(1, active))
        return RateLimit(share, self.window_s, int(share * self.burst) - share)


@dataclass(frozen=True, slots=True)
class MembershipTier:
    """What Membership says of the caller: limits of its own, else its tier; what is not known is shared fairly."""

    tiers: Mapping[str, int]
    fair: FairShare

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """See `Strategy`."""
        own = _claimed(ctx.raw_claims.get("rate_limits"), self.fair.window_s)
        if own is not None:
            return own
        if ctx.tier is not None and ctx.tier in self.tiers:
            return RateLimit(self.tiers[ctx.tier], self.fair.window_s, 0)
        return self.fair.limit(ctx, active)


@dataclass(frozen=True, slots=True)
class Composite:
    """A caller of whom Membership says more than that it is valid has its tier's limits; the others share fairly."""

    fair: FairShare
    tier: MembershipTier

    def limit(self, ctx: CallerContext, active: int) -> RateLimit:
        """See `Strategy`."""
        if ctx.tier or ctx.raw_claims.get("rate_limits"):
            return self.tier.limit(ctx, active)
        return self.fair.limit(ctx, active)


@dataclass(frozen=True, slots=True)
class Window:
    """What a caller has used and has left."""

    limit: int
    window_s: int
    used: int
    remaining: int
    # Until all of it is free again, and until what was asked for has room: 0 when it has.
    reset_s: int
    retry_after_s: int

    @property
    def headers(self) -> dict[str, str]:
        """The same as headers of an answer: as most clients read them, and as the coming standard has them."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_s),
            "X-RateLimit-Window": str(self.window_s),
            "RateLimit-Policy": f'"requests";q={self.limit};w={self.window_s}',
            "RateLimit": f'"requests";r={self.remaining};t={self.reset_s}',
        }


def window(taken: Sequence[int], into_slice: float, limit: RateLimit, cost: int = 1) -> Window:
    """What these slices mean under a limit, for a request of this cost."""
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
    """Count the requests that fit, in order: the newest slice's number, the slices and which requests were granted.

    `before` is the number and the slices as they were, `at` the time in slices.
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
    """In how many whole seconds no more than `at_most` will be left of what was taken."""
    left = sum(taken)
    if left <= at_most:
        return 0
    for place in range(SLICES, -1, -1):
        left -= taken[place]
        if left <= at_most:
            return max(1, math.ceil((SLICES + 1 - place - into_slice) * limit.slice_s))
    # Not even an empty window has room for it.
    return math.ceil((SLICES + 1) * limit.slice_s)


def _claimed(claim: Any, window_s: int) -> RateLimit | None:
    """A limit that Membership states; None if it cannot be read."""
    if not isinstance(claim, Mapping):
        return None
    requests, window, burst = claim.get("requests"), claim.get("window_seconds", window_s), claim.get("burst", 0)
    if not (_is_count(requests) and _is_count(window) and _is_count(burst) and 0 < window <= WINDOW_MAX_S):
        return None
    return RateLimit(requests, window, burst)


def _is_count(number: Any) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0
