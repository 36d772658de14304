"""Notes that callers keep, and a recipe that shortens them."""

from typing import Any

from windlass.extension import Extension, Metric, Page, Setting


def _length(value: Any) -> int:
    if not str(value).isdigit() or not 1 <= int(value) <= 10_000:
        raise ValueError("it must be a whole number from 1 to 10,000")
    return int(value)


extension = Extension(
    name="notes",
    package="windlass_notes",
    about="Notes that callers keep.",
    recipes=("windlass_notes.recipes",),
    routers=("windlass_notes.routes:router",),
    commands="windlass_notes.commands:app",
    migrations="migrations",
    statements="sql",
    settings={"length_max": Setting(_length, "The longest note, in characters.", default=200, example="200")},
    indexed_labels=("note",),
    metrics={"notes_written_total": Metric("counter", "Notes that were written.", ("how",))},
    pages=(Page("Notes", module="notes.js", icon="notebook"),),
)
