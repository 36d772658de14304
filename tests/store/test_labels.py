"""A declared label has its indexes, in any order of declarations, and a job without it has no entry in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.crowd import Row, insert
from windlass.core.errors import BadSetting
from windlass.store import labels
from windlass.store import migrate as migrations
from windlass.store.database import Database
from windlass.store.migrate import known, migrate
from windlass.testing.postgres import fresh_database


async def _entries(db: Database, index: str) -> int:
    """How many rows of an index there are, by what the index itself reports to a vacuum."""
    async with db.connection() as connection:
        await connection.execute("VACUUM (ANALYZE) windlass.jobs")
        return int(await connection.fetchval("SELECT reltuples FROM pg_class WHERE relname = $1", index))


async def test_a_declared_label_is_indexed_once_however_many_declare_it(fresh_dsn: str) -> None:
    databases = [await Database.open(fresh_dsn) for _ in range(4)]
    made = await asyncio.gather(*(labels.declare(db, ["team", "a.b-c"]) for db in databases))
    assert sorted(name for names in made for name in names) == ["a.b-c", "team"]
    assert await labels.listed(databases[0]) == {"a.b-c": True, "team": True}
    assert await labels.declare(databases[0], ["team"]) == []
    for db in databases:
        await db.close()


async def test_a_job_without_the_label_has_no_entry_in_its_index(fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn)
    await labels.declare(db, ["team"])
    async with db.connection() as connection:
        await insert(connection, [Row(n, labels={"team": "a"} if n < 3 else {"k": "v"}) for n in range(20)])
    assert await _entries(db, "jobs_label_team") == 3
    assert await _entries(db, "jobs_all_label_team") == 3
    await db.close()


async def test_an_index_that_was_left_half_made_is_made_again(fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn)
    await labels.declare(db, ["team"])
    async with db.connection() as connection:
        await connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'windlass.jobs_label_team'::regclass"
        )
        assert await labels.indexed(connection, ["team"], labels.OF_A_CALLER) == []
        assert await labels.indexed(connection, ["team"], labels.OF_ALL) == ["team"]
    assert await labels.listed(db) == {"team": False}
    assert await labels.declare(db, ["team"]) == ["team"]
    assert await labels.listed(db) == {"team": True}
    assert await labels.drop(db, "team") and not await labels.drop(db, "team")
    await db.close()


@pytest.mark.parametrize("name", ["", "a'b", 'a"b', "a b", "é", "x" * 49, "-a", "a\x00"])
async def test_a_label_that_can_have_no_index_is_refused(db: Database, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be an indexed label"):
        await labels.declare(db, [name])
    async with db.connection() as connection:
        assert await labels.indexed(connection, [name], labels.OF_ALL) == []
    with pytest.raises(ValueError, match="cannot be an indexed label"):
        labels.statement("list_all_label", name)


async def test_labels_that_are_declared_have_a_limit(db: Database) -> None:
    with pytest.raises(BadSetting, match="17 labels are declared indexed; the limit is 16"):
        await labels.declare(db, [f"l{n}" for n in range(17)])


@pytest.mark.parametrize("has_corpora", [True, False])
async def test_an_installation_with_corpora_keeps_their_index(
    monkeypatch: pytest.MonkeyPatch, has_corpora: bool
) -> None:
    everything: Any = known()
    db = await Database.open(await fresh_database(migrated=False))
    monkeypatch.setattr(migrations, "known", lambda: [one for one in everything if one[0] < "0010"])
    await migrate(db)
    async with db.connection() as connection:
        await insert(connection, [Row(n, labels={"corpus": "c"} if has_corpora else {"k": "v"}) for n in range(3)])
    monkeypatch.setattr(migrations, "known", lambda: everything)
    await migrate(db)
    async with db.connection() as connection:
        found = await labels.indexed(connection, ["corpus"], labels.OF_A_CALLER)
        assert not await connection.fetchval("SELECT to_regclass('windlass.jobs_corpus')")
    assert found == (["corpus"] if has_corpora else [])
    assert await labels.declare(db, ["corpus"]) == ["corpus"]
    assert await labels.listed(db) == {"corpus": True}
    await db.close()
