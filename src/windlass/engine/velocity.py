"""Counts submissions for the velocity limits of a policy, in the commit that makes the jobs.

The counters are locked in the order of their names, so the count is exact over all processes. A submission counts once
its job was made, so neither a refusal nor a repeat of an earlier submission counts. If the counters cannot be locked,
the commit fails: no job passes uncounted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import asyncpg
import msgspec

from windlass.core.velocity import VelocityWindow
from windlass.core.verdict import Verdict
from windlass.policy.judge import Judgement
from windlass.policy.velocity import VelocityCheck
from windlass.store.columns import encode
from windlass.store.statements import sql

# A counter, and the length of its window in seconds.
_Key = tuple[str, int]
_counts = msgspec.json.Decoder(dict[int, int])


class Decided(NamedTuple):
    """A final verdict, and the checks under which its submission counts once the job is made."""

    verdict: Verdict
    checks: tuple[VelocityCheck, ...]


class Velocity:
    """The locked counters of one commit."""

    def __init__(self, now_s: float, windows: dict[_Key, VelocityWindow]) -> None:
        self._now_s = now_s
        self._windows = windows
        # The requests of this commit that pass, and those whose jobs were made.
        self._passing: dict[_Key, int] = {}
        self._made: dict[_Key, int] = {}

    @classmethod
    async def locked(cls, connection: asyncpg.Connection, judgements: Sequence[Judgement]) -> Velocity:
        """Lock the counters of these judgements."""
        keys = sorted({_key(check) for one in judgements for check in one.checks})
        if not keys:
            return cls(0.0, {})
        rows = await connection.fetch(sql("velocity_lock"), [name for name, _ in keys], [length for _, length in keys])
        windows = {}
        for row in rows:
            key = (row["counter"], row["window_s"])
            windows[key] = VelocityWindow(row["window_s"], _counts.decode(row["counts"]))
        return cls(rows[0]["now_s"], windows)

    def decide(self, judgement: Judgement) -> Decided:
        """Return the verdict about the next submission, and let it pass if the verdict does."""
        exceeded = {check.counter for check in judgement.checks if self._is_exceeded(check)}
        checks = judgement.counted(exceeded)
        for check in checks:
            _count(self._passing, check)
        return Decided(judgement.given(exceeded), checks)

    def count(self, decided: Decided) -> None:
        """Count a submission whose job was made."""
        for check in decided.checks:
            _count(self._made, check)

    async def write(self, connection: asyncpg.Connection) -> None:
        """Write what was counted."""
        rows = [(*key, self._windows[key].add(made, self._now_s).counts) for key, made in sorted(self._made.items())]
        if rows:
            names, lengths, counts = zip(*rows, strict=True)
            texts = [encode({str(at): count for at, count in one.items()}) for one in counts]
            await connection.execute(sql("velocity_write"), list(names), list(lengths), texts)

    def _is_exceeded(self, check: VelocityCheck) -> bool:
        key = _key(check)
        used = self._windows[key].count(self._now_s) + self._passing.get(key, 0)
        return used >= check.limit.max_requests


async def exceeded(connection: asyncpg.Connection, checks: Sequence[VelocityCheck]) -> set[str]:
    """Return the counters whose limits are exceeded now, without counting and without locks."""
    found = set()
    for check in checks:
        row = await connection.fetchrow(sql("velocity_read"), *_key(check))
        if row is not None:
            used = VelocityWindow(check.limit.window_s, _counts.decode(row["counts"])).count(row["now_s"])
            if used >= check.limit.max_requests:
                found.add(check.counter)
    return found


def _count(counts: dict[_Key, int], check: VelocityCheck) -> None:
    key = _key(check)
    counts[key] = counts.get(key, 0) + 1


def _key(check: VelocityCheck) -> _Key:
    return check.counter, check.limit.window_s
