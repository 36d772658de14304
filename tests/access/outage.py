"""A database that cannot be reached, from one moment to the next."""

from __future__ import annotations

from windlass.store.database import Database


def cut_off(db: Database) -> None:
    """Break what is open, and let nothing new be opened."""

    async def away() -> None:
        raise ConnectionRefusedError("nobody is there")

    while db._pool._idle:
        db._pool._idle.pop().terminate()
    db._pool._connect = away  # type: ignore[method-assign, assignment]
