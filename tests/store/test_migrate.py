"""The schema comes about in one way, however many processes bring it about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from tests.engine.lines import check as check_lines
from tests.engine.lines import declare, end, granted, keyed, slots
from tests.engine.rig import Rig
from tests.store.catalog import SNAPSHOT, catalog
from windlass.app.entropy import Ids
from windlass.core.errors import BadSetting
from windlass.engine import budgets
from windlass.store import migrate as migrations
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.store.migrate import SchemaState, check, known, migrate, missing, schema_state
from windlass.testing.clock import VirtualClock
from windlass.testing.postgres import fresh_database

NAMES = [name for name, _ in known()]


@pytest.fixture
async def bare_dsn() -> str:
    return await fresh_database(migrated=False)


@pytest.fixture
async def bare(bare_dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(bare_dsn)
    yield database
    await database.close()


async def test_migrating_twice_does_nothing_the_second_time(bare: Database) -> None:
    assert await missing(bare) == NAMES
    assert await migrate(bare) == NAMES
    assert await migrate(bare) == []
    assert await missing(bare) == []


async def test_processes_that_start_at_once_apply_each_migration_once(bare_dsn: str) -> None:
    databases = [await Database.open(bare_dsn) for _ in range(6)]
    try:
        applied = await asyncio.gather(*(migrate(database) for database in databases))
    finally:
        for database in databases:
            await database.close()
    assert sorted(name for names in applied for name in names) == sorted(NAMES)


@pytest.mark.covers("JN-17")
async def test_the_schema_is_what_the_snapshot_says(bare: Database, bare_dsn: str) -> None:
    await migrate(bare)
    found = await catalog(bare_dsn)
    assert found == SNAPSHOT.read_text(), "run `python -m tests.store.catalog` if the change is meant"


@pytest.mark.covers("CIX-27")
async def test_no_table_needs_a_tenant(db: Database) -> None:
    async with db.connection() as connection:
        columns = await connection.fetch(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'windlass'"
            " AND column_name LIKE '%tenant%' AND is_nullable = 'NO'"
        )
    assert columns == []


async def test_one_migration_at_a_time_comes_to_the_same_schema(
    bare: Database, bare_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = known()
    for count in range(1, len(everything) + 1):
        monkeypatch.setattr(migrations, "known", lambda count=count: everything[:count])
        assert await migrate(bare) == [everything[count - 1][0]]
    assert await catalog(bare_dsn) == SNAPSHOT.read_text()


async def test_a_migration_that_fails_leaves_nothing_behind(
    bare: Database, bare_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [*known(), ("9999_broken", "CREATE TABLE windlass.half (a int); SELECT 1 / 0")]
    monkeypatch.setattr(migrations, "known", lambda: broken)
    with pytest.raises(Exception, match="division by zero"):
        await migrate(bare)
    assert await catalog(bare_dsn) == "\n"


async def test_a_database_that_is_behind_is_refused(bare: Database) -> None:
    with pytest.raises(BadSetting, match="windlass db migrate"):
        await check(bare)
    await migrate(bare)
    await check(bare)


async def test_a_release_runs_on_a_newer_schema_until_that_schema_forbids_it(
    bare: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = known()
    forbid = "UPDATE windlass.installation SET oldest_schema = 9998, oldest_release = '9.0.0'"
    later = [("9997_adds", "CREATE TABLE windlass.more (a int)"), ("9998_changes", forbid), ("9999_adds", "SELECT 1")]
    monkeypatch.setattr(migrations, "known", lambda: [*everything, later[0]])
    await migrate(bare)

    monkeypatch.setattr(migrations, "known", lambda: everything)
    await check(bare)
    assert await migrate(bare) == []
    assert await schema_state(bare) == SchemaState(missing=[], unknown=["9997_adds"])

    monkeypatch.setattr(migrations, "known", lambda: [*everything, *later])
    assert await migrate(bare) == ["9998_changes", "9999_adds"]
    monkeypatch.setattr(migrations, "known", lambda: [*everything, *later[:2]])
    assert (await schema_state(bare)).unknown == ["9999_adds"], "the first release that is allowed"

    monkeypatch.setattr(migrations, "known", lambda: [*everything, later[0]])
    for look in (check, migrate):
        with pytest.raises(
            BadSetting, match=r"\(9999_adds\) needs windlass 9\.0\.0 or later; this is windlass \d"
        ) as got:
            await look(bare)
        assert "up to 9997_adds" in str(got.value) and "Upgrade windlass" in str(got.value)


async def test_the_numbers_of_migrations_differ() -> None:
    numbers = [migrations.number(name) for name in NAMES]
    assert numbers == sorted(set(numbers)), "releases are compared by them"


async def test_open_steps_of_an_older_release_get_their_lanes(bare: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = known()
    monkeypatch.setattr(migrations, "known", lambda: [one for one in everything if one[0] < "0006"])
    await migrate(bare)
    async with bare.connection() as connection:
        await connection.execute(_OLDER)
    monkeypatch.setattr(migrations, "known", lambda: everything)
    await migrate(bare)
    async with bare.connection() as connection:
        rows = await connection.fetch("SELECT state, lane FROM windlass.steps ORDER BY job_id, no")
    assert [tuple(row) for row in rows] == [
        ("COMPLETED", ""),
        ("QUEUED", "render ada b"),
        ("BLOCKED", ""),
        ("QUEUED", "render ada b"),
        ("COMPLETED", ""),
    ]


async def test_what_is_held_and_waited_for_survives_the_coming_of_amounts(
    bare: Database, ids: Ids, artifacts: FolderArtifacts
) -> None:
    await migrate(bare)
    rig = Rig(bare, VirtualClock(), ids, artifacts)
    await rig.enlist()
    await declare(bare, concurrency=2)
    await budgets.set(bare, "recipe", "r", 9)
    jobs = [await rig.submit(keyed("fal", limit=2, cost=1), {"key": "k"}) for _ in range(3)]
    assert await granted(rig) == jobs[:2]
    async with bare.connection() as connection:
        await connection.execute(_WITHOUT_AMOUNTS)
    assert await migrate(bare) == ["0013_resources"]
    assert [(row["state"], row["places"], row["takes"], row["fence"]) for row in await slots(bare)] == [
        ("HELD", 1, 1, 1),
        ("HELD", 1, 1, 1),
        ("WAITING", 1, 1, 0),
    ]
    assert await granted(rig) == []
    big = await rig.submit(keyed("fal", limit=2, takes=2, places=2), {"key": "k"})
    await end(rig, jobs[0])
    assert await granted(rig) == jobs[2:]
    await check_lines(bare)
    for job in jobs[1:]:
        await end(rig, job)
    assert await granted(rig) == [big]
    await check_lines(bare)


async def test_the_webhook_scheduler_continues_at_the_position_of_its_old_name(
    bare: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = known()
    monkeypatch.setattr(migrations, "known", lambda: [one for one in everything if one[0] < "0017"])
    await migrate(bare)
    async with bare.connection() as connection:
        await connection.execute(
            "INSERT INTO windlass.cursors (name, txid, job_id, seq)"
            " VALUES ('herald', '42', '00000000-0000-0000-0000-000000000001', 7)"
        )
    monkeypatch.setattr(migrations, "known", lambda: everything)
    await migrate(bare)
    async with bare.connection() as connection:
        rows = await connection.fetch("SELECT name, txid::text, job_id, seq FROM windlass.cursors ORDER BY name")
    assert [tuple(row) for row in rows] == [(name, "42", UUID(int=1), 7) for name in ("herald", "webhook_scheduler")]


# The slots as the release before left them.
_WITHOUT_AMOUNTS = """
    DROP INDEX windlass.slots_provider, windlass.slots_key;
    ALTER TABLE windlass.slots DROP COLUMN places, DROP COLUMN takes, DROP COLUMN fence;
    CREATE INDEX slots_provider ON windlass.slots (provider) WHERE state = 'HELD';
    CREATE INDEX slots_key ON windlass.slots (key) WHERE state = 'HELD' AND key <> '';
    DELETE FROM windlass.migrations WHERE name = '0013_resources';
"""
# An open job with a handler's step that is done, another one, a timer and a child of a fan-out; and a job that ended.
_OLDER = """
    INSERT INTO windlass.plans (hash, body) VALUES ('p', '{"steps": [
        {"name": "a", "run": "load"}, {"name": "b", "run": "render"}, {"name": "c", "kind": "timer"}]}');
    INSERT INTO windlass.jobs (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input,
                               created_at, due_at)
    SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, 'r', 'p', 'PROCESSING', 'ada b', 0, 1, 4, 3, '{}', now(),
           CASE n WHEN 1 THEN now() END
    FROM generate_series(1, 2) AS n;
    INSERT INTO windlass.steps (job_id, no, node, index, state, queue, priority, unmet, timeout_s) VALUES
        ('00000000-0000-0000-0000-000000000001', 0, 0, NULL, 'COMPLETED', 'q', 0, 0, 60),
        ('00000000-0000-0000-0000-000000000001', 1, 1, NULL, 'QUEUED', 'q', 0, 0, 60),
        ('00000000-0000-0000-0000-000000000001', 2, 2, NULL, 'BLOCKED', 'q', 0, 1, 60),
        ('00000000-0000-0000-0000-000000000001', 3, 1, 0, 'QUEUED', 'q', 0, 0, 60),
        ('00000000-0000-0000-0000-000000000002', 0, 0, NULL, 'COMPLETED', 'q', 0, 0, 60);
"""
