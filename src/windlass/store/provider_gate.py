"""Converts the row of a provider or of a kernel to a gate: its rate, pause and breaker."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from windlass.core.breaker import Breaker
from windlass.core.gate import BREAKER, KERNEL_BREAKER, Gate


def gate_of(row: Any) -> Gate:
    """Return the gate of a provider's row."""
    opened_s = None if row["opened_at"] is None else row["opened_at"].timestamp()
    breaker = replace(BREAKER, failures=row["failures"], opened_s=opened_s, probes=row["probes"])
    return Gate(row["rate"], row["free_at"], row["paused_until"], breaker)


def kernel_gate_of(row: Any, rate: float) -> Gate:
    """Return the gate of a kernel's row; every process is told the rate by its settings."""
    opened_s = None if row["opened_at"] is None else row["opened_at"].timestamp()
    names = ("failures", "probes", "successes", "round")
    breaker = replace(KERNEL_BREAKER, opened_s=opened_s, **{name: row[name] for name in names})
    return Gate(rate, row["free_at"], breaker=breaker)


def opened_at(breaker: Breaker) -> datetime | None:
    """Return the opening time of the breaker as it is stored."""
    return None if breaker.opened_s is None else datetime.fromtimestamp(breaker.opened_s, tz=UTC)
