"""Bringing a database up to what this installation needs: the schemas of the release and of
extensions, and the indexes of labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from windlass.app import extending
from windlass.app.settings import Settings
from windlass.store import labels
from windlass.store.database import Database
from windlass.store.migrate import migrate


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a call changed: migrations that it applied, labels that got an index."""

    applied: list[str]
    indexed: list[str]


async def prepare(db: Database, settings: Settings) -> Prepared:
    """Apply what is missing. Safe to run from several places at once, and again."""
    found = extending.load(settings)
    applied = await migrate(db, extending.folders(found))
    return Prepared(applied, await labels.declare(db, extending.indexed_labels(settings, found)))
