"""Leases and outages: time in which no worker could renew is not a worker's silence.

A worker renews its lease three times in the lease's length. An engine looks at the leases at least as often, and the
database remembers when. While the database is away or read-only, workers cannot renew and engines cannot look. So a
long gap between two looks says nothing about the workers:

    looks     |    |    |  outage ...........................  |    |
    renewals   x    x    x                                      x    x
                         └── gap: all but a part is credited ──┘

After a gap every lease is prolonged by the gap, but for a small part of it, before a worker is marked as lost. That
part keeps a slow engine, whose every gap is long, from prolonging leases for ever. No lease becomes longer than a fresh
one.

The arithmetic, for a lease L: the last renewal was at most L/3 before the outage began. After the gap a worker has at
least L - L/3 - L/6 = L/2 left from the first look on, and it renews within seconds. An outage that is too short to
count as a gap (up to L/2) leaves it L - L/3 - L/2 = L/6.
"""

from __future__ import annotations

# All are parts of a lease's length.
LOOK_PART = 1 / 3
GAP_PART = 1 / 2
COUNTED_PART = 1 / 6


def look_every_s(lease_s: float) -> float:
    """How often an engine looks at leases of this length, at least."""
    return lease_s * LOOK_PART


def is_gap(gap_s: float, lease_s: float) -> bool:
    """Whether the time between two looks is so long that a worker's silence in it proves nothing."""
    return gap_s > lease_s * GAP_PART


def left_after(left_s: float, lease_s: float, gap_s: float) -> float:
    """What is left of a lease after the time between two looks; it is over if that is not more than 0.

    `left_s` is how long the lease lasts by the last renewal, and may be negative.
    """
    if not is_gap(gap_s, lease_s):
        return left_s
    return max(left_s, min(left_s + gap_s - lease_s * COUNTED_PART, lease_s))
