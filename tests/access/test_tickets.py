from __future__ import annotations

import asyncio
import secrets
from uuid import UUID

import pytest

from windlass.access.keys import Keys
from windlass.access.secret import Secret
from windlass.access.tickets import Tickets
from windlass.core.caller import CallerContext, Scope
from windlass.core.errors import Unauthenticated
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock

SECRET = Secret.of(["a secret of the tests, long enough to be one"])
ANN = CallerContext(
    "ann", "user", "pro", frozenset({Scope.JOBS_READ}), {"rate_limits": {"requests": 5}}, key_id="abcdefghijkl"
)
JOB, OTHER = UUID(int=1), UUID(int=2)


def tickets(db: Database, secret: Secret = SECRET) -> Tickets:
    return Tickets(db, secret, entropy=secrets.token_bytes)


async def is_refused(db: Database, text: str, job: UUID | None = None) -> bool:
    try:
        await tickets(db).spend(text, job)
    except Unauthenticated as error:
        assert text not in str(error) or not text
        return True
    return False


async def test_a_ticket_is_its_callers_once(db: Database) -> None:
    text, _ = await tickets(db).make(ANN)
    assert await tickets(db).spend(text, JOB) == ANN
    assert await is_refused(db, text, JOB)


async def test_of_many_who_spend_it_at_once_one_does(db: Database) -> None:
    text, _ = await tickets(db).make(ANN)
    found = await asyncio.gather(*(is_refused(db, text) for _ in range(30)))
    assert found.count(False) == 1


async def test_a_ticket_for_a_job_opens_that_job_only(db: Database) -> None:
    text, _ = await tickets(db).make(ANN, JOB)
    assert await is_refused(db, text, OTHER)
    assert await is_refused(db, text, None)
    assert not await is_refused(db, text, JOB)


async def test_a_ticket_is_good_for_a_minute(timed_db: Database, clock: VirtualClock) -> None:
    text, until = await tickets(timed_db).make(ANN)
    assert (until - clock.now()).total_seconds() == 60
    clock.advance(59)
    late, _ = await tickets(timed_db).make(ANN)
    assert not await is_refused(timed_db, text)
    clock.advance(60)
    assert await is_refused(timed_db, late)


@pytest.mark.parametrize("text", ["", "wlt_", "wlt_" + "a" * 42, "x" * 10_000, "wlt_" + "ä" * 43, "wlt_" + "a" * 43])
async def test_what_is_no_ticket_is_refused(db: Database, text: str) -> None:
    assert await is_refused(db, text)


async def test_a_ticket_ends_with_the_key_that_asked_for_it(db: Database) -> None:
    keys = Keys(db, SECRET, entropy=secrets.token_bytes)
    key = await keys.create("ann", name="ann", by="test")
    caller = await keys.verify(key.text)
    text, _ = await tickets(db).make(caller)
    await keys.revoke(key.view.id, by="test")
    assert await is_refused(db, text)


async def test_a_ticket_outlives_a_change_of_the_secret(db: Database) -> None:
    text, _ = await tickets(db).make(ANN)
    both = Secret.of(["another secret of the tests, also long", "a secret of the tests, long enough to be one"])
    assert await tickets(db, both).spend(text, None) == ANN


async def test_the_table_does_not_hold_the_ticket(db: Database) -> None:
    text, _ = await tickets(db).make(ANN)
    async with db.connection() as connection:
        rows = await connection.fetch("SELECT digest, context::text FROM windlass.tickets")
    assert text not in str(rows)
    assert text.encode() not in rows[0]["digest"]
    assert len(rows[0]["digest"]) == 32
