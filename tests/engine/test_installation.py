"""An installation that is served, and its restore into another cluster."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.core.errors import BadSetting
from windlass.engine import feed, installation
from windlass.engine.installation import Installation
from windlass.pure.cursor import ORIGIN
from windlass.store.database import Database

CHECK = b"one"


async def told(rig: Rig) -> list[str]:
    """What the auditor still has to come to."""
    await undisturbed(rig.db)
    async with rig.db.connection() as connection:
        look = await feed.read(connection, await feed.cursor(connection, "auditor"))
    return [row.type for row in look.rows]


async def move(db: Database) -> None:
    """As if the tables had been restored into this cluster from another one, which had given many more numbers."""
    async with db.connection() as connection:
        await connection.execute("UPDATE windlass.installation SET system_id = system_id - 1")
        for table in ("events", "cursors"):
            await connection.execute(f"UPDATE windlass.{table} SET txid = (txid::text::bigint + 1000000)::text::xid8")


async def test_nobody_serves_a_new_installation(db: Database) -> None:
    assert await installation.read(db) == Installation(False, 1)


async def test_a_served_installation_stays_so(db: Database) -> None:
    for _ in range(2):
        assert await installation.serve(db, CHECK) == Installation(True, 1)
    assert await installation.read(db) == Installation(True, 1)


async def test_another_secret_is_refused(db: Database) -> None:
    await installation.serve(db, CHECK)
    with pytest.raises(BadSetting, match="not the secret of this installation"):
        await installation.serve(db, b"two")
    await installation.serve(db, b"two", [b"two", CHECK])
    with pytest.raises(BadSetting):
        await installation.serve(db, CHECK)


async def test_the_audit_begins_with_the_service(rig: Rig) -> None:
    await rig.submit(plan(task("a")), correlation_id="before")
    await installation.serve(rig.db, CHECK)
    await rig.submit(plan(task("a")), correlation_id="after")
    assert await told(rig) == ["job.submitted"]
    await installation.serve(rig.db, CHECK)
    assert await told(rig) == ["job.submitted"], "a second server leaves it where it is"


async def test_a_database_in_another_cluster_begins_a_new_epoch(rig: Rig) -> None:
    await installation.serve(rig.db, CHECK)
    await rig.submit(plan(task("a")), correlation_id="c")
    await undisturbed(rig.db)
    rows, end = await feed.after(rig.db, ORIGIN, callers=None)
    async with rig.db.connection() as connection:
        await feed.keep_cursor(connection, "auditor", end)
    await rig.run_out()
    await move(rig.db)
    assert await told(rig) == [], "its numbers are beyond this cluster's"
    assert await installation.serve(rig.db, CHECK) == Installation(True, 2)
    assert await told(rig) == ["job.processing", "job.completed"], "what was recorded is not told again, the rest is"
    await rig.submit(plan(task("a")), correlation_id="c")
    assert await told(rig) == ["job.processing", "job.completed", "job.submitted"]
    await undisturbed(rig.db)
    rows, _ = await feed.after(rig.db, ORIGIN, callers=None)
    assert len(rows) == 3
    assert await installation.serve(rig.db, CHECK) == Installation(True, 2), "once"


async def test_a_restore_can_be_said_by_hand(rig: Rig) -> None:
    assert await installation.restored(rig.db) == Installation(False, 2)
    await installation.serve(rig.db, CHECK)
    assert await installation.restored(rig.db) == Installation(True, 3)
    assert await installation.serve(rig.db, CHECK) == Installation(True, 3)


async def test_where_the_cluster_may_not_be_asked_for_the_epoch_stays(rig: Rig, fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn)
    try:
        async with db.connection() as connection:
            await connection.execute(
                "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC; CREATE ROLE guest LOGIN;"
                "GRANT USAGE ON SCHEMA windlass TO guest; GRANT ALL ON ALL TABLES IN SCHEMA windlass TO guest"
            )
        guest = await Database.open(fresh_dsn.replace("//postgres@", "//guest@"))
        try:
            assert await installation.serve(guest, CHECK) == Installation(True, 1)
        finally:
            await guest.close()
    finally:
        async with db.connection() as connection:
            await connection.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
            await connection.execute("DROP OWNED BY guest; DROP ROLE guest")
        await db.close()


async def on_timeline(db: Database, timeline: int) -> None:
    """As if the installation had been seen on this timeline last."""
    async with db.connection() as connection:
        await connection.execute("UPDATE windlass.installation SET timeline = $1", timeline)


async def test_a_new_timeline_raises_the_epoch_once_and_is_audited(rig: Rig) -> None:
    await installation.serve(rig.db, CHECK)
    assert await installation.look(rig.db) == Installation(True, 1), "the first timeline is only remembered"
    await on_timeline(rig.db, -1)
    found = await asyncio.gather(*(installation.look(rig.db) for _ in range(4)))
    # By the number of promotions: this server is on its first timeline, two after the stored timeline.
    assert found == [Installation(True, 3)] * 4
    async with rig.db.connection() as connection:
        notes = await connection.fetch("SELECT event, payload FROM windlass.audit_notes")
        assert await connection.fetchval("SELECT timeline FROM windlass.installation") == 1
    assert [(row["event"], json.loads(row["payload"])) for row in notes] == [
        ("timeline_changed", {"timeline": 1, "before": -1, "epoch": 3})
    ]


async def test_a_timeline_that_went_back_raises_the_epoch_too(rig: Rig) -> None:
    await on_timeline(rig.db, 9)
    assert await installation.look(rig.db) == Installation(False, 2)
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.audit_notes") == 0, "nobody reads them"


async def test_a_server_that_starts_after_a_failover_begins_the_new_epoch(rig: Rig) -> None:
    await installation.serve(rig.db, CHECK)
    await on_timeline(rig.db, 0)
    assert await installation.serve(rig.db, CHECK) == Installation(True, 2)


async def test_a_restore_into_another_cluster_raises_the_epoch_once(rig: Rig) -> None:
    await installation.serve(rig.db, CHECK)
    await on_timeline(rig.db, 7)
    await move(rig.db)
    assert await installation.serve(rig.db, CHECK) == Installation(True, 2)


async def test_where_the_timeline_may_not_be_asked_for_the_epoch_stays(fresh_dsn: str) -> None:
    db = await Database.open(fresh_dsn)
    try:
        async with db.connection() as connection:
            await connection.execute(
                "REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC; CREATE ROLE visitor LOGIN;"
                "GRANT USAGE ON SCHEMA windlass TO visitor; GRANT ALL ON ALL TABLES IN SCHEMA windlass TO visitor"
            )
        visitor = await Database.open(fresh_dsn.replace("//postgres@", "//visitor@"))
        try:
            assert await installation.look(visitor) == Installation(False, 1)
            async with db.connection() as connection:
                await connection.execute("GRANT EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) TO PUBLIC")
            assert await installation.look(visitor) == Installation(False, 1), "an ordinary role may ask"
            async with db.connection() as connection:
                assert await connection.fetchval("SELECT timeline FROM windlass.installation") == 1
        finally:
            await visitor.close()
    finally:
        async with db.connection() as connection:
            await connection.execute("GRANT EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) TO PUBLIC")
            await connection.execute("DROP OWNED BY visitor; DROP ROLE visitor")
        await db.close()
