"""Small batches: every limit of one commit or one read is set so low that ordinary simulated jobs exceed it.

Most faults of a batch show only past its end: a fan-out whose children come in two commits, a duty that stops at its
limit. With the limits of a real installation no simulated job is large enough to get there.

A new limit of this kind belongs into `SMALL`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from windlass.core import route
from windlass.engine import claim, feed, settle
from windlass.engine.loops import answerer, auditor, expirer, granter, herald, relay, rescuer, router, waker
from windlass.store import drafts

SMALL: tuple[tuple[ModuleType, str, int], ...] = (
    (route, "FAN_BATCH_MAX", 2),
    (router, "BATCH_MAX", 3),
    (router, "CHILDREN_MAX", 3),
    (waker, "BATCH_MAX", 2),
    (rescuer, "BATCH_MAX", 2),
    (expirer, "BATCH_MAX", 1),
    (relay, "BATCH_MAX", 2),
    (relay, "CANCELS_MAX", 1),
    (answerer, "BATCH_MAX", 2),
    (granter, "CHANGES_MAX", 2),
    (granter, "GRANTS_MAX", 2),
    (granter, "LOOK_FURTHER", 1),
    (granter, "SHORT_MAX", 2),
    (auditor, "BATCH_MAX", 3),
    (herald, "BATCH_MAX", 3),
    (feed, "PAGE", 2),
    (claim, "LOOK_AHEAD", 1),
    (settle, "LOCKED_SETTLES", 2),
    (settle, "CONTENDED_MAX", 1),
    (drafts, "_TOLD_MAX", 1),
)


@contextmanager
def small_batches() -> Iterator[None]:
    """Apply `SMALL`, and put the limits of a real installation back at the end."""
    before = [(module, name, getattr(module, name)) for module, name, _ in SMALL]
    for module, name, value in SMALL:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, old in before:
            setattr(module, name, old)
