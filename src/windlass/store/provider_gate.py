"""A provider's row as a gate: rate, pause and breaker."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from windlass.core.breaker import Breaker
from windlass.core.gate import BREAKER, Gate


def gate_of(row: Any) -> Gate:
    """The gate that a provider's row is."""
    opened_s = None if row["opened_at"] is None else row["opened_at"].timestamp()
    breaker = replace(BREAKER, failures=row["failures"], opened_s=opened_s, probes=row["probes"])
    return Gate(row["rate"], row["free_at"], row["paused_until"], breaker)


def opened_at(breaker: Breaker) -> datetime | None:
    """When the breaker opened, as it is stored."""
    return None if breaker.opened_s is None else datetime.fromtimestamp(breaker.opened_s, tz=UTC)
