"""Prepares a database for this installation: the schemas of the release and of extensions, and label indexes."""

from __future__ import annotations

from dataclasses import dataclass

from windlass.app import extending
from windlass.app.settings import Settings
from windlass.store import labels
from windlass.store.database import Database
from windlass.store.migrate import migrate


@dataclass(frozen=True, slots=True)
class Prepared:
    """The changes of a call: the migrations that it applied, and the labels that got an index."""

    applied: list[str]
    indexed: list[str]


async def prepare(db: Database, settings: Settings) -> Prepared:
    """Apply missing migrations and label indexes. Safe to run from several places at once, and again."""
    found = extending.load(settings)
    applied = await migrate(db, extending.folders(found))
    return Prepared(applied, await labels.declare(db, extending.indexed_labels(settings, found)))
