"""Checks that a commit locks rows in the documented order (ARCHITECTURE.md): two commits then never deadlock.

Only the statements of the writers (store/writers.py) are ranked. A statement that skips rows locked by another commit
waits for none, so its place does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from windlass.store.statements import sql

# The statements of each writer, in the order of locks.
RANKS = (
    ("draft_write", "draft_complete", "draft_finish"),
    ("draft_prolong",),
    ("verdict_good", "verdict_put"),
    ("draft_children",),
    ("undo_attempts_put", "undo_put"),
    ("draft_sweep", "inbox_cancel_children"),
    ("inbox_put",),
    ("work_moved", "work_recorded", "work_swept", "event_known"),
    ("waits_clear", "waits_drop", "waits_put"),
    ("approval_clear", "approval_leave", "approval_end", "approval_put"),
    # Later statements that write these rows find them locked.
    ("slot_lock_all",),
    ("slot_lock",),
    ("cost_put",),
    ("budget_lock", "budget_add"),
)


def _ranks() -> dict[str, tuple[int, str]]:
    return {sql(name): (rank, name) for rank, names in enumerate(RANKS) for name in names}


def out_of_order(statements: Iterable[str]) -> str | None:
    """Return a complaint about the first statement made too late, if any. A new draft begins a new order."""
    ranks = _ranks()
    highest, last = 0, ""
    for statement in statements:
        if (found := ranks.get(statement)) is None:
            continue
        rank, name = found
        if rank and rank < highest:
            return f"{name} after {last}: rows were locked out of order"
        highest, last = rank, name
    return None
