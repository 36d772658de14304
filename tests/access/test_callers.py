from __future__ import annotations

import asyncio
import secrets

import pytest

from tests.access.outage import cut_off
from windlass.access.callers import Callers, named_id
from windlass.access.secret import Secret
from windlass.core.errors import DatabaseUnavailable, MembershipUnavailable
from windlass.store.database import Database

OLD = "the former secret of the tests, long enough"
NEW = "the present secret of the tests, long enough"


def callers(db: Database) -> Callers:
    return Callers(db, entropy=secrets.token_bytes)


def digests(*secret: str, key: str = "key") -> list[bytes]:
    return Secret.of(secret).digests("alias", key.encode())


@pytest.mark.covers("CIX-55")
async def test_a_named_caller_costs_no_row(db: Database) -> None:
    assert await callers(db).id_of(digests(NEW), {"caller_id": "ann"}) == "ann"
    assert await callers(db).id_of(digests(NEW), {"caller_id": 42}) == "42"
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.caller_aliases") == 0


@pytest.mark.covers("CIX-55")
async def test_a_caller_without_a_name_keeps_its_id(db: Database) -> None:
    first = await callers(db).id_of(digests(NEW), {})
    assert first.startswith("caller-")
    assert len(first) == len("caller-") + 12
    assert await callers(db).id_of(digests(NEW), {"caller_id": None}) == first
    assert await callers(db).id_of(digests(NEW), {"caller_id": ""}) == first


@pytest.mark.covers("CIX-07")
async def test_two_keys_are_two_callers(db: Database) -> None:
    known = callers(db)
    assert await known.id_of(digests(NEW, key="a"), {}) != await known.id_of(digests(NEW, key="b"), {})


async def test_the_id_outlives_a_change_of_the_secret(db: Database) -> None:
    before = await callers(db).id_of(digests(OLD), {})
    assert await callers(db).id_of(digests(NEW, OLD), {}) == before


async def test_processes_that_meet_a_key_at_once_agree(db: Database) -> None:
    found = await asyncio.gather(*(callers(db).id_of(digests(NEW), {}) for _ in range(20)))
    assert len(set(found)) == 1


@pytest.mark.covers("CIX-55")
async def test_the_table_does_not_hold_the_key(db: Database) -> None:
    await callers(db).id_of(digests(NEW, key="a-very-secret-key"), {})
    async with db.connection() as connection:
        rows = await connection.fetch("SELECT * FROM windlass.caller_aliases")
    assert "a-very-secret-key" not in str(rows)


async def test_a_database_that_is_away_is_no_refusal(db: Database) -> None:
    known = callers(db)
    cut_off(db)
    with pytest.raises(DatabaseUnavailable):
        await known.id_of(digests(NEW), {})


@pytest.mark.parametrize("named", [True, 1.5, {"a": 1}, ["ann"], "a\nb", "x" * 256, "*", "local", "\ud800"])
def test_an_unusable_name_is_a_fault_of_the_service(named: object) -> None:
    with pytest.raises(MembershipUnavailable):
        named_id({"caller_id": named})
