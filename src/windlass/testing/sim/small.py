"""Small batches: every limit of one commit or one read is so low that ordinary simulated jobs exceed it.

Most faults of a batch show only past its end: a fan-out whose children come in two commits, a duty that stops at its
limit. With the limits of a real installation no simulated job is large enough to get there. A new limit of this kind
belongs in `SMALL`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from windlass.core import route
from windlass.engine import feed, settle
from windlass.engine.loops import (
    auditor,
    expirer,
    granter,
    parent_notifier,
    rescuer,
    router,
    waker,
    webhook_applier,
    webhook_scheduler,
)
from windlass.store import drafts
from windlass.worker import settler

SMALL: tuple[tuple[ModuleType, str, int], ...] = (
    (route, "FAN_BATCH_MAX", 2),
    (router, "BATCH_MAX", 3),
    (router, "CHILDREN_MAX", 3),
    (waker, "BATCH_MAX", 2),
    (rescuer, "BATCH_MAX", 2),
    (expirer, "BATCH_MAX", 1),
    (parent_notifier, "BATCH_MAX", 2),
    (parent_notifier, "CANCELS_MAX", 1),
    (webhook_applier, "BATCH_MAX", 2),
    (granter, "CHANGES_MAX", 2),
    (granter, "GRANTS_MAX", 2),
    (granter, "LOOK_FURTHER", 1),
    (granter, "SHORT_MAX", 2),
    (auditor, "BATCH_MAX", 3),
    (webhook_scheduler, "BATCH_MAX", 3),
    (feed, "PAGE", 2),
    (settle, "LOCKED_SETTLES", 2),
    (settle, "CONTENDED_MAX", 1),
    (drafts, "_TOLD_MAX", 1),
    (settler, "BATCH_MAX", 3),
    (settler, "HELP_MIN", 2),
)


@contextmanager
def small_batches() -> Iterator[None]:
    """Apply `SMALL`, and restore the limits of a real installation at the end."""
    before = [(module, name, getattr(module, name)) for module, name, _ in SMALL]
    for module, name, value in SMALL:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, old in before:
            setattr(module, name, old)
