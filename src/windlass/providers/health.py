"""Shares the state of a provider with all processes after a request: it answered, it is busy, or it is down.

The state moves the breaker and the pause, which the granter and the pollers of every process obey. It is secondary to
the work: when it cannot be written, the work goes on without it.
"""

from __future__ import annotations

import logging

from windlass.core.errors import Unavailable
from windlass.engine import providers
from windlass.providers.errors import ProviderError, RateLimited
from windlass.store.database import Database

# The pause of a busy provider that does not say for how long.
BUSY_S = 5.0

_log = logging.getLogger("windlass.providers")


async def tell(db: Database, name: str, error: ProviderError | None) -> None:
    """Record the result of one request; None: it was answered."""
    try:
        if isinstance(error, RateLimited):
            await providers.busy(db, name, BUSY_S if error.after_s is None else error.after_s)
        elif error is not None and error.counts_against_breaker:
            await providers.failed(db, name, f"{error.code}: {error.message}")
        else:
            # A refusal is an answer too.
            await providers.answered(db, name)
    except (Unavailable, OSError) as problem:
        _log.warning("the state of provider %s cannot be recorded now: %s", name, problem)
