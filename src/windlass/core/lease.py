"""Leases and outages: a worker is not silent while no worker can renew its lease.

A worker renews its lease three times in the lease's length. An engine checks the leases at least as often, and the
database stores the time of each check. While the database is down or read-only, workers cannot renew and engines cannot
check. So a long gap between two checks proves nothing about the workers:

    checks    |    |    |  outage ...........................  |    |
    renewals   x    x    x                                      x    x
                         └── gap: all but a part is credited ──┘

After a gap the engine extends every lease by most of the gap, before it marks a worker as lost. It leaves out a small
part, so that a slow engine with only long gaps cannot extend leases for ever. No lease becomes longer than a new lease.

The arithmetic, for a lease L: the last renewal was at most L/3 before the outage began. After the gap a worker has at
least L - L/3 - L/6 = L/2 left from the first check on, and it renews within seconds. An outage too short to count as a
gap (up to L/2) leaves it L - L/3 - L/2 = L/6.
"""

from __future__ import annotations

from collections.abc import Iterable

# Fractions of a lease's length.
LOOK_PART = 1 / 3
GAP_PART = 1 / 2
COUNTED_PART = 1 / 6

# An engine waits this long after an attempt's time limit before it ends the attempt. The worker enforces the limit
# first, and has this long to report it.
RESCUE_AFTER_S = 5.0


def look_every_s(lease_s: float) -> float:
    """Return the longest interval between checks of leases of this length."""
    return lease_s * LOOK_PART


def is_gap(gap_s: float, lease_s: float) -> bool:
    """Return whether the time between two checks is too long for a worker's silence to prove anything."""
    return gap_s > lease_s * GAP_PART


def left_after(left_s: float, lease_s: float, gap_s: float) -> float:
    """Return the rest of a lease after the time between two checks; the lease is over if it is 0 or less.

    `left_s` is the rest of the lease since its last renewal, and may be negative.
    """
    if not is_gap(gap_s, lease_s):
        return left_s
    return max(left_s, min(left_s + gap_s - lease_s * COUNTED_PART, lease_s))


def may_be_over(reply_s: float, lease_s: float, timeouts_s: Iterable[float]) -> bool:
    """Return whether claimed attempts may have ended while the database's reply took `reply_s` to arrive.

    A reply as late as a lease may name attempts that other workers have run. A reply later than a time limit may name
    an attempt that the rescuer has ended.
    """
    if reply_s < min(lease_s, RESCUE_AFTER_S):
        return False
    return reply_s >= lease_s or any(reply_s >= timeout_s + RESCUE_AFTER_S for timeout_s in timeouts_s)
