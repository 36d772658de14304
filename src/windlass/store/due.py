"""Builds the statements that return a duty's next due time, from the table that the duty names.

The names come from duties in the code, never from a caller, and are still checked. The state is part of the text,
because the planner uses a partial index only for a constant.
"""

from __future__ import annotations

import re

from windlass.store.statements import sql

_NAME = re.compile(r"[a-z_]+")
_STATE = re.compile(r"[A-Z_]+")


def earliest(table: str, column: str, state: str | None = None) -> str:
    """Return a statement for the earliest time in this column, optionally among the rows in this state."""
    text = sql("due_earliest" if state is None else "due_earliest_in_state")
    return _put(text, table, state).replace(':"column"', _checked(_NAME, column))


def any_row(table: str, state: str | None = None) -> str:
    """Return a statement that is due now while the table has a row, optionally in this state."""
    return _put(sql("due_any" if state is None else "due_any_in_state"), table, state)


def _put(text: str, table: str, state: str | None) -> str:
    text = text.replace(':"table"', _checked(_NAME, table))
    return text if state is None else text.replace(":'state'", f"'{_checked(_STATE, state)}'")


def _checked(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text!r} cannot stand in a statement")
    return text
